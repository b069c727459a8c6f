"""The commands of the app. flask-smorest adds ``openapi``."""

from __future__ import annotations

from typing import Any

from flask import Flask
from werkzeug.local import LocalProxy

from app.cli import import_woocommerce  # noqa: F401  # adds its commands to the group
from app.cli.coupons import coupons
from app.cli.db import db as db_commands
from app.cli.demo.command import demo
from app.cli.doctor import doctor
from app.cli.export import export
from app.cli.failures import Commands
from app.cli.import_files import add_commands
from app.cli.import_group import imports
from app.cli.keys import keys
from app.cli.serve import serve
from app.cli.webhooks import webhooks
from app.cli.worker import worker
from app.db.migrations import MIGRATIONS
from app.db.session import db


def init_app(app: Flask) -> None:
    """Add the commands to an app. Commands that are added later also report their errors."""
    app.cli = Commands(name=app.name)

    def migrate() -> Any:
        # Import on first use, because only commands need Alembic and the import is slow.
        from flask_migrate import Migrate  # noqa: PLC0415  # see above

        Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)
        app.cli.add_command(db_commands)  # Migrate has replaced them by those of its own
        return app.extensions["migrate"]  # set by Migrate, which replaces the proxy

    app.extensions["migrate"] = LocalProxy(migrate)
    app.cli.add_command(db_commands)
    app.cli.add_command(coupons)
    app.cli.add_command(demo)
    app.cli.add_command(doctor)
    app.cli.add_command(export)
    add_commands(imports)
    app.cli.add_command(imports)
    app.cli.add_command(keys)
    app.cli.add_command(serve)
    app.cli.add_command(webhooks)
    app.cli.add_command(worker)
