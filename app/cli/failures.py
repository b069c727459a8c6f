"""What went wrong around a command, in one line that says what to do."""

from __future__ import annotations

import copy
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg
from flask import current_app
from flask.cli import AppGroup, ScriptInfo
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.db.session import is_schema_mismatch, is_unavailable
from app.db.timeouts import is_statement_timeout

UPGRADE = ".venv/bin/flask --app wsgi db upgrade"

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}
_OWNER = "Give it to the user of the service"

# What libpq says when it cannot connect: there is no SQLSTATE yet. The remedies follow the reason.
_CONNECTING = {
    "password authentication failed": "Correct the user and the password in DATABASE_URL.",
    "no password supplied": "Add the password to DATABASE_URL.",
    "no pg_hba.conf entry": "Allow this user and address in pg_hba.conf.",
    "too many clients": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "remaining connection slots": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "resolve host": "Correct the host in DATABASE_URL.",
    "translate host": "Correct the host in DATABASE_URL.",
}
_START = "Start the database server, or correct DATABASE_URL."

_SQLITE = {
    "SQLITE_CANTOPEN": "Create its folder, make it writable for you, or correct DATABASE_URL.",
    "SQLITE_READONLY": f"{_OWNER}, with its folder.",
    "SQLITE_FULL": "Make room on the disk.",
    "SQLITE_NOTADB": "Correct DATABASE_URL, or restore a backup.",
    "SQLITE_CORRUPT": "Restore a backup.",
    "SQLITE_BUSY": "Stop the other program that uses the database.",
    "SQLITE_LOCKED": "Stop the other program that uses the database.",
    "SQLITE_IOERR": "Check the disk.",
}
_POSTGRESQL = {
    "42501": "Grant the right to the user in DATABASE_URL, or make the user owner of the database.",
    "53100": "Make room on the disk of the database server.",
    "53300": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "25006": "Name the primary server in DATABASE_URL; this one is read-only.",
}


class Commands(AppGroup):
    """The commands of the app. A failure around one is reported in one line.

    Seam: ``Flask.cli``.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command that reports its failures."""
        command = super().get_command(ctx, cmd_name)
        return command and reporting(command)


def reporting(command: click.Command) -> click.Command:
    """Return a copy of a command that reports failures around it in one line."""

    class Reporting(type(command)):  # type: ignore[misc]  # the class of the command, whatever it is
        def invoke(self, ctx: click.Context) -> Any:
            with reported(ctx):
                return super().invoke(ctx)

    made = copy.copy(command)
    made.__class__ = Reporting
    return made


@contextmanager
def reported(ctx: click.Context) -> Iterator[None]:
    """Turn a failure of the database or the system into a message for the operator."""
    try:
        yield
    except (DBAPIError, PoolTimeoutError, sqlite3.Error, psycopg.Error, OSError) as error:
        with ctx.ensure_object(ScriptInfo).load_app().app_context():
            message = explain(error)
        if message is None:
            raise
        raise click.ClickException(message) from error


def explain(error: BaseException) -> str | None:
    """Return one line: what failed around the service, why, and what to do.

    Returns:
        None for a bug, whose traceback is needed.
    """
    found = diagnose(error)
    return found and " ".join(f"{part}." for part in found if part)


def diagnose(error: BaseException) -> tuple[str, str] | None:
    """Return what failed around the service and what to do, without full stops.

    Returns:
        None for a bug, which no change of the environment fixes.
    """
    if isinstance(error, OSError):
        return _of_the_system(error)
    if is_statement_timeout(error):
        return "The database needs more time", "Raise SHOP_STATEMENT_TIMEOUT_SECONDS"
    if is_schema_mismatch(error):
        return "The database schema is not current", f"Run `{UPGRADE}`"
    if isinstance(error, PoolTimeoutError):
        return "All connections to the database are in use", "Try again"
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    reason = _first_line(cause)
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        remedy = next((todo for start, todo in _SQLITE.items() if name.startswith(start)), None)
    elif state := getattr(cause, "sqlstate", None):
        remedy = _POSTGRESQL.get(state) or (_START if is_unavailable(error) else None)
    elif is_unavailable(error) or isinstance(cause, psycopg.OperationalError):
        remedy = _to_connect(reason)
    else:
        remedy = None
    return (
        (f"The database {_database()} cannot be used: {reason}", remedy.rstrip("."))
        if remedy
        else None
    )


def _to_connect(reason: str) -> str:
    if "database" in reason and "does not exist" in reason:
        url = make_url(current_app.config["DATABASE_URL"])
        return f"Create it (createdb {url.database}), or correct DATABASE_URL."
    if "role" in reason and "does not exist" in reason:
        return "Create the user (createuser --pwprompt), or correct DATABASE_URL."
    return next((todo for text, todo in _CONNECTING.items() if text in reason), _START)


def _first_line(error: BaseException) -> str:
    """Return what a driver says, without the hints on its further lines."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


def _database() -> str:
    url = make_url(current_app.config["DATABASE_URL"])
    return url.render_as_string(hide_password=True)


def _of_the_system(error: OSError) -> tuple[str, str] | None:
    if error.errno is None or error.errno == errno.EPIPE:
        return None  # click ends quietly when nobody reads what it prints
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    if error.errno in _NO_SPACE:
        return what, "Make room on the disk"
    if error.errno in _NOT_PERMITTED and error.filename:
        return what, f"{_OWNER}, or run the command as its owner"
    if error.errno == errno.EADDRINUSE:
        return what, "Choose another port with PORT"
    return what, ""
