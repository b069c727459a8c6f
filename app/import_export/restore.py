"""Restore of an export into an empty database, with all IDs, times and trashed records."""

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Table, exists, func, insert, literal_column, select
from sqlalchemy.exc import DataError, IntegrityError
from sqlalchemy.orm import Session

from app.db import timeouts
from app.db.errors import first_line
from app.db.records import NamedColumns
from app.db.sequences import advance
from app.db.session import run_in_transaction, savepoint
from app.import_export.export_kinds import KINDS, Kind
from app.import_export.file_reader import Line
from app.import_export.restored_values import Rows, rows_of
from app.models import (
    COUPON_BATCHES,
    COUPON_METADATA,
    COUPONS,
    CUSTOMER_METADATA,
    DOWNLOADS,
    ITEM_IDS,
    ITEM_METADATA,
    MERGED_ACCOUNTS,
    ORDER_METADATA,
    ORDER_NOTES,
    ORDERS,
    REDEMPTIONS,
    REFUND_METADATA,
    USERS,
)
from app.services.campaigns.writes import count_again
from app.services.common.progress import NoteProgress
from app.services.maintenance.import_runs import record_import

BATCH = 1000
"""Number of records that are inserted together."""

Numbered = tuple[str, Line]
"""The name of a file, and one of its lines."""

_KIND_OF = {kind.singular: kind for kind in KINDS.values()}

_LINKS = (
    (ORDERS, "customer_id", USERS),
    (REDEMPTIONS, "customer_id", USERS),
    (REDEMPTIONS, "coupon_id", COUPONS),
)
"""Columns with the ID of another record that are no foreign keys."""

_MISSING = "It refers to a record that does not come before it in the files."

_WITHOUT_KIND = [
    ORDER_NOTES,
    DOWNLOADS,
    COUPON_METADATA,
    CUSTOMER_METADATA,
    ORDER_METADATA,
    REFUND_METADATA,
    ITEM_METADATA,
    ITEM_IDS,
]
# IDs of orders and merged accounts are never reused, because other records refer to them.
_ALSO_USED: NamedColumns = {
    "orders": REDEMPTIONS.c.order_id,
    "users": MERGED_ACCOUNTS.c.id,
    "coupon_batches": COUPONS.c.batch_id,
    "campaigns": COUPON_BATCHES.c.campaign_id,
    # Items have no table.
    "item_ids": ORDERS.c.next_item_id - 1,
}


class RestoreError(Exception):
    """A file cannot be restored. Nothing was stored."""


def restore(
    lines: Iterable[Numbered], note_progress: NoteProgress = lambda _: None
) -> dict[str, int]:
    """Store all records of an export, or no records after an error.

    Args:
        note_progress: called with the number of records that were inserted so far.

    Returns:
        The number of stored records by the name of their kind.

    Raises:
        RestoreError: a line is not valid, or the database already has records of its kind.
    """
    attempts = 0
    numbers: dict[str, int] = {}

    def work(session: Session) -> None:
        nonlocal attempts
        attempts += 1
        if attempts > 1:  # the lines have already been read
            raise RestoreError("Another program is writing to the database. Stop it and try again.")
        timeouts.lift_limit(session.connection())
        for kind, batch in _batches(lines):
            if kind.name not in numbers:
                _require_empty(session, kind)
            _require_links(session, batch)
            _insert(session, batch)
            numbers[kind.name] = numbers.get(kind.name, 0) + len(batch)
            note_progress(sum(numbers.values()))
        for table in [*(kind.table for kind in KINDS.values()), *_WITHOUT_KIND]:
            _advance_ids(session, table)
        count_again(session)
        if numbers:
            record_import(session, "restore", numbers, created=sum(numbers.values()))

    run_in_transaction(work)
    return numbers


def _batches(lines: Iterable[Numbered]) -> Iterator[tuple[Kind, list[tuple[str, Rows]]]]:
    """Yield batches of up to BATCH records of one kind, each with its location and its rows."""
    batch: list[tuple[str, Rows]] = []
    last: Kind | None = None
    for file, line in lines:
        place = f"{file}, line {line.number}"
        if line.error:
            raise RestoreError(f"{place}: {line.error}")
        kind = _KIND_OF.get(str(line.record.get("kind")))
        if kind is None:
            known = ", ".join(_KIND_OF)
            raise RestoreError(f"{place}: kind: must be one of {known}.")
        if last is not None and (kind is not last or len(batch) == BATCH):
            yield last, batch
            batch = []
        last = kind
        try:
            batch.append((place, rows_of(kind, line.record)))
        except ValueError as error:
            raise RestoreError(f"{place}: {error}") from None
    if last is not None:
        yield last, batch


def _require_empty(session: Session, kind: Kind) -> None:
    if session.scalar(select(exists(select(kind.table.c.id)))):
        raise RestoreError(
            f"The database already contains {kind.name}. Restore into a new database, after "
            "`shop-api db upgrade`."
        )


def _require_links(session: Session, batch: Sequence[tuple[str, Rows]]) -> None:
    """Raise RestoreError if a record names a coupon or an account that is not restored."""
    for table, column, target in _LINKS:
        places = {
            row[column]: place
            for place, rows in batch
            for row in rows.get(table, ())
            if row.get(column) is not None
        }
        known = select(target.c.id).where(target.c.id.in_(places))
        if missing := sorted(places.keys() - {*session.scalars(known)}):
            reason = f"{column} is {missing[0]}"
            raise RestoreError(f"{places[missing[0]]}: {reason}. {_MISSING}")


def _insert(session: Session, batch: Sequence[tuple[str, Rows]]) -> None:
    """Insert the rows of a batch. If the database rejects them, determine the rejected record."""
    together: Rows = {}
    for _, rows in batch:
        for table, found in rows.items():
            together.setdefault(table, []).extend(found)
    try:
        with savepoint(session):
            _insert_rows(session, together)
    except (IntegrityError, DataError) as error:
        if len(batch) == 1:
            reason = first_line(error.orig)
            hint = f" {_MISSING}" if "foreign key" in reason.lower() else ""
            raise RestoreError(
                f"{batch[0][0]}: the database rejects the record: {reason}.{hint}"
            ) from None
        for each in batch:
            _insert(session, [each])
        raise


def _insert_rows(session: Session, together: Rows) -> None:
    for table, rows in together.items():
        if rows:
            # RETURNING makes it one statement for many rows, also for the triggers of PostgreSQL.
            session.execute(insert(table).returning(literal_column("1")), rows)


def _advance_ids(session: Session, table: Table) -> None:
    """Advance the sequences, so that new records get IDs that were never used."""
    used = [select(func.max(table.c.id)).scalar_subquery()]
    if table.name in _ALSO_USED:
        used.append(select(func.max(_ALSO_USED[table.name])).scalar_subquery())
    last = max((found for found in session.execute(select(*used)).one() if found), default=0)
    advance(session.connection(), table, last)
