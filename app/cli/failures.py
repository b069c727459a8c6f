"""One-line error messages for commands, with suggested fixes."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import click
import psycopg
from flask import current_app
from flask.cli import ScriptInfo
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.cli import program
from app.config.urls import without_password
from app.db.errors import first_line, is_schema_mismatch, is_unavailable
from app.db.session import schema_state
from app.db.timeouts import is_statement_timeout

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}
_OWNER = "Make the service user its owner"

# Fixes for messages of libpq about failed connections, which have no SQLSTATE.
_CONNECTION_FIXES = {
    "password authentication failed": "Correct the user and the password in DATABASE_URL.",
    "no password supplied": "Add the password to DATABASE_URL.",
    "no pg_hba.conf entry": "Allow this user and address in pg_hba.conf.",
    "unsupported startup parameter": "Set DATABASE_POOLER=transaction, as PgBouncer requires it.",
    "query_wait_timeout": "Start the database server behind PgBouncer, or raise its pool size.",
    "too many clients": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "remaining connection slots": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "resolve host": "Correct the host in DATABASE_URL.",
    "translate host": "Correct the host in DATABASE_URL.",
}
_TRY_LATER = "Other programs hold locks. Run the command again, if necessary at a quieter time."
_START_SERVER = "Start the database server, or correct DATABASE_URL."

_SQLITE = {
    "SQLITE_CANTOPEN": "Create its folder, make the folder writable, or correct DATABASE_URL.",
    "SQLITE_READONLY": f"{_OWNER}, also of its folder.",
    "SQLITE_FULL": "Free up disk space.",
    "SQLITE_NOTADB": "Correct DATABASE_URL, or restore a backup.",
    "SQLITE_CORRUPT": "Restore a backup.",
    "SQLITE_BUSY": "Stop the other program that uses the database.",
    "SQLITE_LOCKED": "Stop the other program that uses the database.",
    "SQLITE_IOERR": "Check the disk.",
}
_POSTGRESQL = {
    "40P01": _TRY_LATER,
    "55P03": _TRY_LATER,
    "42501": "Grant the privilege to the user in DATABASE_URL, or make it the database owner.",
    "53100": "Free up disk space on the database server.",
    "53300": "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
    "25006": "Set DATABASE_URL to the primary server. This server is read-only.",
}


@contextmanager
def reported(ctx: click.Context) -> Iterator[None]:
    """Convert an error of the database or the system into a message for the operator."""
    try:
        yield
    except UnicodeEncodeError as error:  # a terminal with another encoding
        text = str(error.object)[:40]
        raise click.ClickException(f"{text!r} contains bytes that are not valid UTF-8.") from error
    except (DBAPIError, PoolTimeoutError, sqlite3.Error, psycopg.Error, OSError) as error:
        with ctx.ensure_object(ScriptInfo).load_app().app_context():
            message = explain(error)
        if message is None:
            raise
        raise click.ClickException(message) from error


def explain(error: BaseException) -> str | None:
    """Return the error, its reason and a fix in one line, or None for a bug."""
    diagnosis = diagnose(error)
    return diagnosis and " ".join(f"{part}." for part in diagnosis if part)


def diagnose(error: BaseException) -> tuple[str, str] | None:
    """Return reason and fix of an error of the environment, without full stops; None for a bug."""
    if isinstance(error, OSError):
        return _diagnose_os_error(error)
    if is_statement_timeout(error):
        return "The database statement timed out", "Raise SHOP_STATEMENT_TIMEOUT_SECONDS"
    if is_schema_mismatch(error):
        schema = schema_state(error)
        return schema, program.schema_remedy(schema, "Run `{}`")
    if isinstance(error, PoolTimeoutError):
        return "All database connections are in use", "Try again"
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    reason = first_line(cause)
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        remedy = next((fix for start, fix in _SQLITE.items() if name.startswith(start)), None)
    elif state := getattr(cause, "sqlstate", None):
        remedy = _POSTGRESQL.get(state) or (_START_SERVER if is_unavailable(error) else None)
    elif is_unavailable(error) or isinstance(cause, psycopg.OperationalError):
        remedy = _connection_fix(reason)
    else:
        remedy = None
    return (
        (f"The database {_database()} cannot be used: {reason}", remedy.rstrip("."))
        if remedy
        else None
    )


def _connection_fix(reason: str) -> str:
    if "database" in reason and "does not exist" in reason:
        url = make_url(current_app.config["DATABASE_URL"])
        return f"Create it (createdb {url.database}), or correct DATABASE_URL."
    if "role" in reason and "does not exist" in reason:
        return "Create the user (createuser --pwprompt), or correct DATABASE_URL."
    return next((fix for text, fix in _CONNECTION_FIXES.items() if text in reason), _START_SERVER)


def _database() -> str:
    return without_password(make_url(current_app.config["DATABASE_URL"]))


def _diagnose_os_error(error: OSError) -> tuple[str, str] | None:
    if error.errno is None or error.errno == errno.EPIPE:
        return None  # click exits without a message if the output is closed
    reason = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    if error.errno in _NO_SPACE:
        return reason, "Free up disk space"
    if error.errno in _NOT_PERMITTED and error.filename:
        return reason, f"{_OWNER}, or run the command as its owner"
    if error.errno == errno.EADDRINUSE:
        return reason, "Choose another port with PORT"
    return reason, ""
