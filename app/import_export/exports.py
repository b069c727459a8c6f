"""Export of the records that match, in the order of their IDs, from one database snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, func, select

from app.import_export.export_kinds import PASSWORD_HASH, Kind, Record, with_items_metadata
from app.import_export.snapshot import Snapshot


def number_of(snapshot: Snapshot, kind: Kind, conditions: Sequence[ColumnElement[bool]]) -> int:
    """Return the number of records that match."""
    counted = select(func.count()).select_from(kind.table).where(*conditions)
    return int(snapshot.fetch(counted)[0][0])


def records(
    snapshot: Snapshot,
    kind: Kind,
    conditions: Sequence[ColumnElement[bool]] = (),
    *,
    password_hashes: bool = False,
) -> Iterator[list[Record]]:
    """Yield the records that match in batches, in the order of their IDs.

    Args:
        snapshot: the database snapshot.
        kind: the kind of records.
        conditions: the conditions that the records meet.
        password_hashes: whether to include the password hashes of accounts.
    """
    more = (PASSWORD_HASH,) if password_hashes and kind.name == "customers" else ()
    identity = kind.table.c.id
    statement = select(*kind.selected(more), identity).where(*conditions).order_by(identity)
    for rows in snapshot.chunks(statement):
        found = [kind.record(row, more) for row in rows]
        if kind.related:
            related = kind.related(snapshot.fetch, [record["id"] for record in found])
            found = [with_items_metadata(record | related[record["id"]]) for record in found]
        yield found
