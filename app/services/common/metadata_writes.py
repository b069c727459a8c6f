"""Writes of metadata, in the transaction that writes its records (records 1 and 5)."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Table,
    delete,
    tuple_,
)
from sqlalchemy.orm import Session

from app.db.bulk_inserts import upsert_rows
from app.db.records import Record
from app.models import ITEM_METADATA
from app.services.common.bulk import BulkItem, Data, Writes
from app.services.common.metadata import BEFORE, ITEM, METADATA, MetadataTable
from app.services.common.metadata_rules import (
    Metadata,
    MetadataEntry,
    Patches,
    changed_entries,
    found_text,
    patched_entries,
    shown,
)

Key = int | tuple[int, int]
"""ID of a record, or the IDs of an order and of one of its items. Negative for a new record."""


@dataclass(slots=True)
class MetadataWrites:
    """Changes of the metadata of the records that a transaction has locked.

    Attributes:
        kind: the table.
        entries: the entries of each record that the request changes, after its changes so far.
        rewrites: whether the stored entries were removed when they were read, because the request
            removes some. All of them are then written again, so that a bulk request needs two
            statements for its metadata.
    """

    kind: MetadataTable
    entries: dict[Key, list[MetadataEntry]] = field(default_factory=dict)
    rewrites: bool = False
    _shown: list[tuple[Record, str, object]] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        session: Session,
        kind: MetadataTable,
        ids: Iterable[int],
        given: Iterable[Any],
        *,
        only_checks: bool = False,
    ) -> MetadataWrites:
        """Return the stored entries of records that are locked until the commit.

        Args:
            given: the metadata of the request, with null for keys to remove.
            only_checks: whether nothing is written, so that the records need not be locked.
        """
        wanted = sorted(set(ids))
        rewrites = any(isinstance(each, list) or None in each.values() for each in given if each)
        writes = cls(kind, rewrites=rewrites and bool(wanted) and not only_checks)
        if not wanted:
            return writes
        statement: Any = kind.select_rows
        if writes.rewrites:
            statement = delete(kind.table).where(kind.of_records).returning(*kind.rows)
        rows = session.connection().execute(statement, {"ids": wanted}).all()
        number = len(kind.identity)
        for row in sorted(rows, key=lambda row: row[number]):
            key = row[0] if number == 1 else (row[0], row[1])
            entry_id, name, value, internal = row[number:]
            entry = MetadataEntry(name, value, entry_id, internal)
            writes.entries.setdefault(key, []).append(entry)
        return writes

    @classmethod
    def of_items(
        cls,
        session: Session,
        kind: MetadataTable,
        items: Sequence[BulkItem],
        stored: Container[int],
        *,
        only_checks: bool = False,
    ) -> MetadataWrites:
        """Return the stored entries of the records whose metadata the items change.

        Args:
            stored: IDs of the records that the items can update, which are locked.
            only_checks: whether nothing is written, so that the records need not be locked.
        """
        found = [item for item in items if item.id in stored and METADATA in item.data]
        ids = [item.id for item in found if item.id is not None]
        given = [item.data[METADATA] for item in found]
        return cls.read(session, kind, ids, given, only_checks=only_checks)

    def apply(
        self,
        writes: Writes[Any],
        data: Data,
        name: str,
        before: Record | None,
        after: Record,
    ) -> None:
        """Change the metadata of a record as an item of the request says.

        Call this last, because other items see the change.

        Args:
            name: name of the record, such as ``coupon``.
            before: the stored record, or None for a new one.
            after: the record after the item. It gets another revision.

        Raises:
            ShopError: the result is beyond a limit, and larger than before in this respect.
        """
        if METADATA in data:
            key = key_of(writes, before)
            self.keep(key, self.changed(key, data[METADATA], f"{name}.{METADATA}"), before, after)

    def changed(
        self, key: Key, given: Mapping[str, object] | Patches, place: str
    ) -> list[MetadataEntry]:
        """Return the entries of a record after a change, which is not stored.

        Args:
            given: the keys to set, with null for keys to remove, or entries to write.
            place: name of the metadata in the request, such as ``coupon.metadata``.

        Raises:
            ShopError: the result is beyond a limit, and larger than before in this respect.
        """
        before = self.entries.get(key, [])
        if isinstance(given, Mapping):
            return changed_entries(before, given, place)
        return patched_entries(before, given, place)

    def keep(
        self, key: Key, entries: list[MetadataEntry], before: Record | None, after: Record
    ) -> None:
        """Let ``write`` store the changed entries of a record. Other items see them."""
        if before:
            self.show(after, shown(self.entries.get(key, ())), METADATA + BEFORE)
        self.entries[key] = entries
        self.show(after, shown(entries))
        count_change(before, after)

    def show(self, record: Record, metadata: object, name: str = METADATA) -> None:
        """Let ``write`` add metadata to a record, for the response and the event."""
        self._shown.append((record, name, metadata))

    def write(self, session: Session, new_ids: Sequence[int] = ()) -> None:
        """Write the changes, with one statement, and add the metadata to the records.

        Args:
            new_ids: the IDs of the new records, whose keys are -1, -2 and so on.
        """
        rows = [
            self._row(key, entry, new_ids)
            for key, entries in self.entries.items()
            for entry in entries
            if self.rewrites or entry.is_changed
        ]
        if rows:
            upsert_rows(session, self.kind.table, rows)
        for record, name, metadata in self._shown:
            record[name] = metadata

    def _row(self, key: Key, entry: MetadataEntry, new_ids: Sequence[int]) -> Record:
        values = [key] if isinstance(key, int) else list(key)
        if values[0] < 0:
            values[0] = new_ids[-values[0] - 1]
        names = (column.name for column in self.kind.identity)
        row: Record = {
            **dict(zip(names, values, strict=True)),
            "id": entry.id,
            "key": entry.key,
            "value": entry.value,
            "internal": entry.internal,
        }
        return with_found_value(self.kind.table, row)


def key_of(writes: Writes[Any], before: Record | None) -> int:
    """Return the key of a stored record, or of the next new record of the transaction."""
    return before["id"] if before else -1 - len(writes.created)


def count_change(before: Record | None, after: Record) -> None:
    """Give a changed record another revision, which is part of its entity tag."""
    if before:
        after["revision"] = before["revision"] + 1


def without_metadata(data: Mapping[str, object]) -> Record:
    """Return the fields of a request that are columns of the record."""
    return {name: value for name, value in data.items() if name != METADATA}


def with_found_value(table: Table, row: Record) -> Record:
    """Return a row of a table with the text that filters compare, if the table has it."""
    return row | {"found_value": found_text(row["value"])} if "found_value" in table.c else row


def delete_items(
    session: Session, removed: Collection[tuple[int, int]]
) -> dict[tuple[int, int], Metadata]:
    """Delete the metadata of removed items, given the IDs of the orders and of the items.

    Returns:
        The metadata of each item that had some.
    """
    entries: dict[tuple[int, int], list[MetadataEntry]] = {}
    if removed:
        found = delete(ITEM_METADATA).where(tuple_(*ITEM.identity).in_(list(removed)))
        for row in sorted(session.execute(found.returning(*ITEM.rows)), key=itemgetter(2)):
            order_id, item_id, entry_id, key, value, internal = row
            entry = MetadataEntry(key, value, entry_id, internal)
            entries.setdefault((order_id, item_id), []).append(entry)
    return {key: shown(each) for key, each in entries.items()}
