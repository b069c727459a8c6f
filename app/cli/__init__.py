"""The commands of the app. Flask-Migrate adds ``db`` and flask-smorest adds ``openapi``."""

from __future__ import annotations

import copy
from typing import Any

import click
from flask import Flask
from werkzeug.local import LocalProxy

from app.cli import import_woocommerce  # noqa: F401  # adds its commands to the group
from app.cli.coupons import coupons
from app.cli.demo import demo
from app.cli.doctor import doctor
from app.cli.export import export
from app.cli.failures import Commands, reporting
from app.cli.import_files import add_commands
from app.cli.import_group import imports
from app.cli.keys import keys
from app.cli.serve import serve
from app.cli.worker import worker
from app.db.migrations import MIGRATIONS
from app.db.session import db


class Migrations(click.Command):
    """``flask db``, imported on first use."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command of Flask-Migrate."""
        from flask_migrate.cli import db as group  # noqa: PLC0415  # see the class

        from app.cli.db_copy import copy as copy_shop  # noqa: PLC0415  # for this command only

        commands = copy.copy(group)
        commands.commands = {**group.commands, "copy": copy_shop}
        return reporting(commands).make_context(info_name, args, parent, **extra)


def init_app(app: Flask) -> None:
    """Add the commands to an app. Commands that are added later also report their errors."""
    app.cli = Commands(name=app.name)
    migrations = Migrations("db", short_help="Perform database migrations, and copy a shop.")

    def migrate() -> Any:
        # Import on first use, because only commands need Alembic and the import is slow.
        from flask_migrate import Migrate  # noqa: PLC0415  # see above

        Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)
        app.cli.add_command(migrations)  # Migrate has replaced it
        return app.extensions["migrate"]  # set by Migrate, which replaces the proxy

    app.extensions["migrate"] = LocalProxy(migrate)
    app.cli.add_command(migrations)
    app.cli.add_command(coupons)
    app.cli.add_command(demo)
    app.cli.add_command(doctor)
    app.cli.add_command(export)
    add_commands(imports)
    app.cli.add_command(imports)
    app.cli.add_command(keys)
    app.cli.add_command(serve)
    app.cli.add_command(worker)
