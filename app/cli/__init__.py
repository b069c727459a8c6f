"""The commands of the app. Flask-Migrate adds ``db`` and flask-smorest adds ``openapi``."""

from __future__ import annotations

from typing import Any

import click
from flask import Flask
from werkzeug.local import LocalProxy

from app.cli.demo import demo
from app.cli.doctor import doctor
from app.cli.failures import Commands, reporting
from app.cli.keys import keys
from app.cli.serve import serve
from app.db.session import MIGRATIONS, db


class Migrations(click.Command):
    """``flask db``, imported on first use."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command of Flask-Migrate."""
        from flask_migrate.cli import db as group  # noqa: PLC0415  # see the class

        return reporting(group).make_context(info_name, args, parent, **extra)


def init_app(app: Flask) -> None:
    """Add the commands to an app. Commands that are added later also report their errors."""
    app.cli = Commands(name=app.name)

    def migrate() -> Any:
        # Import on first use, because only commands need Alembic and the import is slow.
        from flask_migrate import Migrate  # noqa: PLC0415  # see above

        Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)
        return app.extensions["migrate"]  # set by Migrate, which replaces the proxy

    app.extensions["migrate"] = LocalProxy(migrate)
    app.cli.add_command(Migrations("db", short_help="Perform database migrations."))
    app.cli.add_command(demo)
    app.cli.add_command(doctor)
    app.cli.add_command(keys)
    app.cli.add_command(serve)
