"""The command group of the app, which imports a command when it is used."""

import copy
from importlib import import_module

import click
from flask import Flask
from flask.cli import AppGroup
from werkzeug.local import LocalProxy

from app.cli import COMMANDS
from app.cli.failures import reported
from app.db.migrations import MIGRATIONS
from app.db.session import db


class Commands(AppGroup):
    """The command group of the app, whose commands report errors in one line.

    Extension point: ``Flask.cli``.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands of the service, and of those that were added."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command that reports its errors."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, attribute, _ = COMMANDS[cmd_name]
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        command = super().get_command(ctx, cmd_name)
        return command and reporting(command)


def reporting(command: click.Command) -> click.Command:
    """Return a copy of a command that reports errors in one line."""

    class Reporting(type(command)):  # type: ignore[misc]  # a dynamic base class
        def invoke(self, ctx: click.Context) -> object:
            with reported(ctx):
                return super().invoke(ctx)

    wrapped = copy.copy(command)
    wrapped.__class__ = Reporting
    return wrapped


def init_app(app: Flask) -> None:
    """Add the commands to an app. Commands that are added later also report their errors."""
    app.cli = Commands(name=app.name)

    def migrate() -> object:
        # Import on first use, because only commands need Alembic and the import is slow.
        from flask_migrate import Migrate  # see above

        Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=False)
        app.cli.commands.pop("db", None)  # Migrate has added commands of its own
        return app.extensions["migrate"]  # set by Migrate, which replaces the proxy

    app.extensions["migrate"] = LocalProxy(migrate)
