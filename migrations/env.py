"""Run the migrations of Alembic on the write engine of the app."""

import logging
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from alembic import context
from alembic.operations.ops import MigrationScript
from alembic.util import CommandError
from flask import current_app
from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError

from app import models  # noqa: F401  # so that every table is known
from app.db.schema_upgrade import SchemaUpgrade
from app.db.search import is_of_models
from app.db.session import db
from app.db.sql.types import Money, UtcDateTime
from app.db.timeouts import unlimited

LOCK_MILLISECONDS, PAUSE_SECONDS, ATTEMPTS = 500, 2.0, 60
# PostgreSQL: deadlock_detected, lock_not_available. SQLite waits for 20 seconds itself.
LOCKED = {"40P01", "55P03", "SQLITE_BUSY"}
ADVISORY_LOCK = 7_310_293_018  # any number, but the same in every version

log = logging.getLogger("alembic.env")


def render_item(kind: str, item: object, _: object) -> str | bool:
    """Write our own types into a new migration as what they are in the database.

    A migration must mean the same for ever, also when the class in the app has changed.
    """
    if kind == "type" and isinstance(item, Money):
        return "sa.BigInteger()"
    if kind == "type" and isinstance(item, UtcDateTime):
        return 'sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")'
    return False


def number_revision(_: object, __: object, directives: list[MigrationScript]) -> None:
    """Give a new migration the next number, so that the command needs no --rev-id."""
    known = [int(script.revision) for script in context.script.walk_revisions()]
    following = f"{max(known) + 1:04}"
    for directive in directives:
        is_generated = re.fullmatch(r"[0-9a-f]{12}", directive.rev_id or "")
        if not is_generated and directive.rev_id != following:
            raise CommandError(
                f"The next migration has the number {following}, not {directive.rev_id}. "
                "Omit --rev-id, which is then set automatically."
            )
        directive.rev_id = following


if context.is_offline_mode():
    raise SystemExit("Migrations run against the database itself; set DATABASE_URL.")


def migrate() -> None:
    """Run the migrations, each in its own transaction on PostgreSQL, and in one on SQLite.

    Requests can run at the same time. While a migration waits for the lock of a table, all requests
    for that table wait behind it, and it can deadlock with a request. So it gives up soon. The lock
    is released after each migration.
    """
    with unlimited(db.engine) as connection:
        if on_postgresql:
            event.listen(connection, "begin", _limit_waits)
        context.configure(
            connection=connection,
            target_metadata=db.metadatas[None],
            render_item=render_item,
            include_name=is_of_models,
            process_revision_directives=number_revision,
            transactional_ddl=True,  # SQLite can, too: a migration happens whole or not at all
            transaction_per_migration=on_postgresql,
            **current_app.extensions["migrate"].configure_args,
        )
        with context.begin_transaction():
            if upgrade is None or upgrade.is_needed(connection):
                context.run_migrations()


def _limit_waits(connection: Connection) -> None:
    # Not where an index is created concurrently, which blocks nobody while it waits.
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS}ms'")


@contextmanager
def only_one() -> Iterator[None]:
    """Wait until no other process migrates the database. On SQLite, the transaction does this.

    The lock belongs to a transaction, so that it also works through a pooler. This process asks for
    it repeatedly, because a statement that waits has a snapshot.
    """
    if not on_postgresql:
        yield
        return
    with unlimited(db.engine) as connection:
        attempt = 0
        while not _lock(connection):
            connection.rollback()
            if attempt % ATTEMPTS == 0:
                log.warning("Waiting for another process that migrates the database.")
            attempt += 1
            pause()
        yield


def _lock(connection: Connection) -> bool:
    # Without parameters, because the server keeps the snapshot of a statement with parameters until
    # the next statement, and an index that is created concurrently waits for all snapshots.
    lock = connection.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({ADVISORY_LOCK})")
    has_lock = bool(lock.scalar())
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    return has_lock


def pause() -> None:
    time.sleep(PAUSE_SECONDS * random.uniform(0.5, 1))  # noqa: S311  # nosec B311  # no secret


def is_locked(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorname", None)
    return code in LOCKED


on_postgresql = db.engine.dialect.name == "postgresql"
upgrade: SchemaUpgrade | None = context.config.attributes.get("upgrade")

with only_one():
    for attempt in range(1, ATTEMPTS + 1):
        try:
            migrate()
        except DBAPIError as error:
            if attempt == ATTEMPTS or not is_locked(error):
                raise
            log.warning("The migration waits for other transactions. Attempt %d failed.", attempt)
            pause()
        else:
            break
