"""``flask --app wsgi doctor``: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.auth.throttling import is_redis_available
from app.config import unknown_settings
from app.db.read_pool import fetch, reader
from app.db.session import schema_is_current
from app.services import api_keys

SECRET_LENGTH = 32
FREE_BYTES = 100 * 1024 * 1024
YEARS = range(2026, 2100)
CLOCK_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found.

    Args:
        subject: what was looked at.
        state: how it is.
        remedy: what to do; empty when all is well.
    """

    subject: str
    state: str
    remedy: str = ""


@click.command("doctor")
@with_appcontext
def doctor() -> None:
    """Check settings, secret, database, schema and clock; say what to do. Exit status 1: do it.

    Settings that cannot be used at all stop every command, this one too, with their names.
    """
    wrong = 0
    for found in _examine():
        wrong += bool(found.remedy)
        click.echo(f"{'WRONG' if found.remedy else 'ok':<6} {found.subject}: {found.state}")
        if found.remedy:
            click.echo(f"       -> {found.remedy}")
    if wrong:
        raise click.ClickException(f"{wrong} to mend; run this again afterwards.")


def _examine() -> Iterator[Finding]:
    yield from _settings()
    yield _secret()
    yield _folder()
    yield _clock("system", datetime.now(UTC))
    if url := current_app.config["SHOP_REDIS_URL"]:
        yield _redis(url)
    try:
        yield _database()
        schema = _schema()
        yield schema
        if not schema.remedy:
            yield _key()
        yield _clock("database", _time_of_database())
    except (SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        yield Finding("database", reason, "Check DATABASE_URL, and that the server runs.")


def _settings() -> Iterator[Finding]:
    unknown = unknown_settings({*current_app.config, *os.environ})
    for name in unknown:
        yield Finding("settings", f"{name} is none", "See docs/configuration.md for its name.")
    if not unknown:
        yield Finding("settings", "all are known and can be used")


def _secret() -> Finding:
    secret = current_app.config["SECRET_KEY"]
    path = Path(current_app.instance_path) / "secret_key"
    if not path.exists() or path.read_text().strip() != secret:
        if len(secret) < SECRET_LENGTH:
            remedy = f"Use {SECRET_LENGTH} random characters. All API keys must be made anew then."
            return Finding("secret", f"SECRET_KEY has {len(secret)} characters", remedy)
        return Finding("secret", "SECRET_KEY is set")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding("secret", f"others may open {path} (mode {mode:04o})", f"chmod 600 {path}")
    return Finding("secret", f"{path} is its owner's only")


def _folder() -> Finding:
    file = _file()
    path = Path(file).parent if file else Path(current_app.instance_path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding("folder", f"{path} cannot be written", "Give it to the user of the service.")
    free = shutil.disk_usage(path).free
    state = f"{path} has {free // 1024**2} MiB free"
    return Finding("folder", state, "Make room on the disk." if free < FREE_BYTES else "")


def _file() -> str | None:
    """Return the file of a database on SQLite."""
    return reader().engine.url.database if reader().engine.dialect.name == "sqlite" else None


def _redis(url: str) -> Finding:
    if is_redis_available(url):
        return Finding("redis", "answers")
    remedy = "Check SHOP_REDIS_URL, and that Redis runs; until then each worker counts for itself."
    return Finding("redis", "does not answer", remedy)


def _database() -> Finding:
    if not (path := _file()):
        (row,) = fetch(text("SHOW server_version"))
        return Finding("database", f"PostgreSQL {row[0]} answers")
    (row,) = fetch(text("PRAGMA journal_mode"))
    if row[0] != "wal":
        remedy = "Put it on a disk of this machine, not of the network."
        return Finding("database", f"{path} has the journal {row[0]}, not wal", remedy)
    if not os.access(path, os.W_OK):
        return Finding(
            "database", f"{path} cannot be written", "Give it to the user of the service."
        )
    return Finding("database", f"{path} answers")


def _schema() -> Finding:
    if schema_is_current():
        return Finding("schema", "is current")
    return Finding("schema", "is not the one of this version", "flask --app wsgi db upgrade")


def _key() -> Finding:
    if api_keys.list_keys():
        return Finding("keys", "there are some")
    return Finding("keys", "there is none", "flask --app wsgi keys create --login admin")


def _time_of_database() -> datetime:
    seconds = {
        "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
        "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
    }
    (row,) = fetch(text(seconds[reader().engine.dialect.name]))
    return datetime.fromtimestamp(float(row[0]), UTC)


def _clock(whose: str, moment: datetime) -> Finding:
    state = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    apart = abs((datetime.now(UTC) - moment).total_seconds())
    if moment.year not in YEARS or apart > CLOCK_SECONDS:
        if apart > CLOCK_SECONDS:
            state += f", {apart:.0f} seconds from the one here"
        return Finding(f"clock of the {whose}", state, "Set the clocks by NTP.")
    return Finding(f"clock of the {whose}", state)
