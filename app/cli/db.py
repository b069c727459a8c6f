"""``shop-api db``: upgrade the schema, show its version, rebuild sums, and copy a shop."""

import click
from flask.cli import AppGroup, with_appcontext
from sqlalchemy.exc import DBAPIError

from app.cli.db_copy import copy
from app.db.errors import is_schema_mismatch
from app.db.migrations import REVISION, is_newer, migration_head
from app.db.read_pool import fetch
from app.db.schema_upgrade import MixedSchemaError, NewerSchemaError, SchemaUpgrade, upgrade_schema
from app.services.customers import totals
from app.services.maintenance import order_sums, stored_texts

db = AppGroup("db", help="Upgrade the database schema, show its version, and copy a shop.")
db.add_command(copy)


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
