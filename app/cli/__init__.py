"""The commands; Flask-Migrate adds ``db`` and flask-smorest ``openapi``."""

from __future__ import annotations

from typing import Any

import click
from flask import Flask
from werkzeug.local import LocalProxy

from app.cli.demo import demo
from app.cli.doctor import doctor
from app.cli.keys import keys
from app.cli.serve import serve
from app.db.session import MIGRATIONS, db


class Migrations(click.Command):
    """``flask db``, which is imported when it is called."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Return the context of Flask-Migrate's own command."""
        from flask_migrate.cli import db as group  # noqa: PLC0415  # see the class

        context: click.Context = group.make_context(info_name, args, parent, **extra)
        return context


def init_app(app: Flask) -> None:
    """Add the commands to an app."""

    def migrate() -> Any:
        # Alembic is wanted by commands only, and takes longer to import than all of ours.
        from flask_migrate import Migrate  # noqa: PLC0415  # see above

        Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)
        return app.extensions["migrate"]  # put there by Migrate, in the place of the proxy

    app.extensions["migrate"] = LocalProxy(migrate)
    app.cli.add_command(Migrations("db", short_help="Perform database migrations."))
    app.cli.add_command(demo)
    app.cli.add_command(doctor)
    app.cli.add_command(keys)
    app.cli.add_command(serve)
