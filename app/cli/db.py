"""``shop-api db``: upgrade the schema, show its version, rebuild sums, and copy a shop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from flask import current_app
from flask.cli import AppGroup, with_appcontext
from sqlalchemy import URL, inspect, make_url
from sqlalchemy.exc import DBAPIError

from app.config.loading import SettingsError, database_url
from app.config.urls import without_password
from app.db import timeouts
from app.db.errors import first_line, is_schema_mismatch
from app.db.migrations import REVISION, is_newer, migration_head
from app.db.read_pool import fetch
from app.db.schema_upgrade import MixedSchemaError, NewerSchemaError, SchemaUpgrade, upgrade_schema
from app.db.session import db as database
from app.services.common.progress import NoteProgress
from app.services.customers import totals
from app.services.maintenance import order_sums, stored_texts
from app.services.maintenance.database_copy import (
    CopyError,
    copy_shop,
    open_source,
    reading_one_state,
)

db = AppGroup("db", help="Upgrade the database schema, show its version, and copy a shop.")


@db.command("upgrade")
@click.option(
    "--normalize",
    is_flag=True,
    help="Normalize stored texts again, after the last machine of a rolling upgrade.",
)
@with_appcontext
def upgrade(normalize: bool) -> None:
    """Run the migrations that the database lacks, and print what was done.

    Safe to run at any time and on several machines at once: one waits for the other. Succeeds
    without a change if the schema belongs to a newer version that this version can use.

    It also normalizes coupon codes and e-mail addresses that an earlier version stored in another
    form, once for each version of the normalization.
    """
    click.echo(upgraded(normalize=normalize).description())


def upgraded(*, normalize: bool = False) -> SchemaUpgrade:
    """Upgrade the schema, or raise ClickException with the reason why this is impossible.

    Args:
        normalize: whether to normalize stored texts again.
    """
    from alembic.util import CommandError  # slow import, rarely needed

    try:
        done = upgrade_schema()
    except (CommandError, MixedSchemaError, NewerSchemaError) as error:
        raise click.ClickException(str(error)) from None
    totals.refresh()  # a migration cannot, because the statuses depend on the settings
    for message in stored_texts.normalize(again=normalize):
        click.echo(message, err=True)
    return done


@db.command("current")
@with_appcontext
def current() -> None:
    """Print the latest migration of the database."""
    try:
        rows = fetch(REVISION)
    except DBAPIError as error:
        if not is_schema_mismatch(error):
            raise
        rows = []
    if not rows:
        click.echo("none (the database is empty)")
        return
    ((revision,),) = rows
    head = migration_head()
    state = "current" if revision == head else "newer" if is_newer(revision) else "old"
    click.echo(f"{revision} ({state}; the latest migration of this version is {head})")


@db.command("rebuild-sums")
@with_appcontext
def rebuild_sums() -> None:
    """Correct the sums of the orders of each customer, and print how many were wrong.

    Also computes the totals again by which lists of customers are sorted. Safe to run at any time.
    `shop-api doctor` verifies both.
    """
    corrected = order_sums.rebuild_sums()
    click.echo(f"{corrected} sum{'s were' if corrected != 1 else ' was'} corrected.")


@db.command("copy")
@click.argument("source_url")
@with_appcontext
def copy(source_url: str) -> None:
    """Copy a shop from SOURCE_URL into the empty database of DATABASE_URL.

    IDs, API keys and sequences stay the same. Keys keep working with the same SECRET_KEY. Stop the
    service first: changes of the source during the copy are not copied. If the copy fails, the
    target stays empty.
    """
    url = _source_url(source_url)
    source = open_source(url.render_as_string(hide_password=False))
    try:
        with source.connect() as connection:
            inspect(connection).get_table_names()  # SQLite reads the file only now
    except DBAPIError as error:
        remedy = (
            "is correct and the file is readable"
            if url.get_backend_name() == "sqlite"
            else "is correct and the server runs"
        )
        raise click.ClickException(
            f"The source {without_password(url)} cannot be used: {first_line(error.orig)}. Check "
            f"that SOURCE_URL {remedy}."
        ) from None
    with database.engine.connect() as target:
        # Detached from the pool, because the copy changes settings of the connection.
        timeouts.without_limit(target)
        try:
            with reading_one_state(source) as connection, target.begin():
                copied = copy_shop(connection, target, _progress)
        except CopyError as error:
            raise click.ClickException(str(error)) from None
        finally:
            source.dispose()
    rows = sum(copied.values())
    filled = sum(map(bool, copied.values()))
    click.echo(f"{rows:,} rows of {filled} tables were copied. API keys remain valid.")


def _source_url(given: str) -> URL:
    """Return a valid URL that is not the URL of the target."""
    try:
        url = make_url(database_url(given))
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint="SOURCE_URL") from None
    target = database.engine.url
    if url.get_backend_name() == "sqlite":
        url = url.set(database=str(_file(url.database or "")))
        same = Path(target.database or "").resolve() == Path(url.database or "").resolve()
    else:
        here, there = ((each.host, each.port or 5432, each.database) for each in (url, target))
        same = here == there
    if same and url.get_backend_name() == target.get_backend_name():
        raise click.BadParameter(
            "is also the target. Set DATABASE_URL to the new database.", param_hint="SOURCE_URL"
        )
    return url


def _file(database: str) -> Path:
    """Return the existing file of a SQLite URL: relative to the instance folder, or to this one."""
    candidates = [Path(current_app.instance_path, database), Path(database).absolute()]
    for path in candidates:
        if path.is_file():
            return path
    names = " or ".join(str(path) for path in dict.fromkeys(candidates))
    raise click.BadParameter(f"{names} does not exist.", param_hint="SOURCE_URL")


@contextmanager
def _progress(table: str, total: int) -> Iterator[NoteProgress]:
    """Show the progress of a table, and its end."""
    from app.cli.progress import showing_progress  # slow import, rarely needed

    with showing_progress(table, total) as note:
        yield note
    click.echo(f"{table:<24} {total:>12,} of {total:,} rows", err=True)
