"""Run the migrations of Alembic on the write engine of the app, in one transaction."""

import logging
import random
import re
import time

from alembic import context
from alembic.operations.ops import MigrationScript
from alembic.util import CommandError
from flask import current_app
from sqlalchemy.exc import DBAPIError

from app import models
from app.db.search import is_of_models
from app.db.session import db
from app.db.timeouts import without_limit
from app.db.types import Money, UtcDateTime

LOCK_SECONDS, PAUSE_SECONDS, ATTEMPTS = 3, 2.0, 30
LOCKED = {"40P01", "55P03"}  # PostgreSQL: deadlock_detected, lock_not_available

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


assert models.__all__  # noqa: S101  # nosec B101  # imported so that every table is known

if context.is_offline_mode():
    raise SystemExit("Migrations run against the database itself; set DATABASE_URL.")


def migrate() -> None:
    """Run the migrations in one transaction.

    Requests can run at the same time. While a migration waits for the lock of a table, all requests
    for that table wait behind it, and it can deadlock with a request. So it gives up soon.
    """
    with db.engine.connect() as connection:
        without_limit(connection)
        context.configure(
            connection=connection,
            target_metadata=db.metadatas[None],
            render_item=render_item,
            include_name=is_of_models,
            process_revision_directives=number_revision,
            transactional_ddl=True,  # SQLite can, too: a migration happens whole or not at all
            **current_app.extensions["migrate"].configure_args,
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            context.run_migrations()


for attempt in range(1, ATTEMPTS + 1):
    try:
        migrate()
    except DBAPIError as error:
        if attempt == ATTEMPTS or getattr(error.orig, "sqlstate", None) not in LOCKED:
            raise
        log.warning("The migration waits for other transactions. Attempt %d failed.", attempt)
        time.sleep(PAUSE_SECONDS * random.uniform(0.5, 1))  # noqa: S311  # nosec B311  # no secret
    else:
        break
