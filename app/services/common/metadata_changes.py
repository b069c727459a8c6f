"""Changes of metadata, in the transaction that writes its records (records 1 and 5)."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Table, delete
from sqlalchemy.orm import Session

from app.db.bulk_inserts import upsert_rows
from app.db.records import Record
from app.services.common.bulk import BulkItem, Data
from app.services.common.metadata import BEFORE, ITEM, ITEMS_METADATA, METADATA, MetadataTable
from app.services.common.metadata_rules import (
    MetadataEntry,
    Patches,
    changed_entries,
    found_text,
    patched_entries,
    shown,
)

Given = Mapping[str, object] | Patches
"""What a request says of metadata: keys with values or null, or entries to write."""


class Owner(NamedTuple):
    """What has metadata: a record, or an item of an order or of a refund.

    Args:
        kind: the table of its entries.
        record_id: ID of the record, or of the order of an item. None for a new record whose ID
            the database assigns.
        item_id: ID of the item, or 0 for a record.
    """

    kind: MetadataTable
    record_id: int | None
    item_id: int = 0


Items = Mapping[int, Owner]
"""Items of a record, by the ID that they have in its responses."""

Changed = dict[Owner, list[MetadataEntry]]
"""The entries of each owner that a request changes, after the change; new ones have no ID."""


@dataclass(slots=True)
class MetadataChanges:
    """The changes of the metadata of records that a transaction has locked.

    Attributes:
        entries: the stored entries of what the request changes, after its changes so far.
    """

    entries: Changed = field(default_factory=dict)
    _new: list[tuple[Record, Owner, list[MetadataEntry]]] = field(default_factory=list)
    _shown: list[tuple[Record, str, object]] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        session: Session,
        given: Iterable[tuple[Owner, Given | None]],
        *,
        only_checks: bool = False,
    ) -> MetadataChanges:
        """Return the stored entries of what a request changes, with one statement for each kind.

        If the request removes entries, this statement removes all of them, and ``write`` stores
        those that remain with their IDs, so that a bulk request needs two statements.

        Args:
            given: what the request says of the metadata of each owner; None for an item that it
                can remove. The entries of all items of an order are read.
            only_checks: whether nothing is written, so that the records need not be locked.
        """
        wanted: dict[MetadataTable, dict[int, bool]] = defaultdict(lambda: defaultdict(bool))
        for owner, each in given:
            if owner.record_id is not None:
                removes = not isinstance(each, Mapping) or None in each.values()
                wanted[owner.kind][owner.record_id] |= removes
        changes = cls()
        for kind, found in wanted.items():
            is_taken = not only_checks and any(found.values())
            statement: Any = kind.select_rows
            if is_taken:
                statement = delete(kind.table).where(kind.of_records).returning(*kind.rows)
            rows = session.connection().execute(statement, {"ids": sorted(found)})
            for row in sorted(rows, key=itemgetter(len(kind.identity))):
                *owner_ids, entry_id, key, value, internal = row
                entry = MetadataEntry(key, value, entry_id, internal, is_changed=is_taken)
                changes.entries.setdefault(Owner(kind, *owner_ids), []).append(entry)
        return changes

    def changed(self, given: Mapping[Owner, tuple[str, Given]]) -> Changed:
        """Return the entries of owners after a change, which ``keep`` accepts.

        Args:
            given: for each owner its name in the request, such as ``coupon``, and its change.

        Raises:
            ShopError: the result is beyond a limit, and larger than before in this respect.
        """
        changed = Changed()
        for owner, (name, change) in given.items():
            before, place = self.entries.get(owner, ()), f"{name}.{METADATA}"
            changed[owner] = (
                changed_entries(before, change, place)
                if isinstance(change, Mapping)
                else patched_entries(before, change, place)
            )
        return changed

    def keep(
        self,
        changed: Changed,
        before: Data | None,
        after: Record,
        items: Items | None = None,
        removed: Items | None = None,
    ) -> None:
        """Let ``write`` store changed entries, which later items of the request see.

        Args:
            before: the stored record, or None for a new one.
            after: the record after the item. It gets another revision.
            items: the items of the record that are not removed.
            removed: the items that the request removes.
        """
        own = [owner for owner in changed if not owner.item_id]
        of_items = (items or {}) if len(own) < len(changed) else {}
        removed = removed or {}
        if before:
            self._show(after, self.entries, own, {**of_items, **removed}, BEFORE)
            if changed:
                count_change(before, after)
        self._show(after, ChainMap(changed, self.entries), own, of_items)
        for owner, entries in changed.items():
            if owner.record_id is None:
                self._new.append((after, owner, entries))
            else:
                self.entries[owner] = entries
        for owner in removed.values():
            self.entries.pop(owner, None)

    def apply(
        self, kind: MetadataTable, name: str, data: Data, before: Data | None, after: Record
    ) -> None:
        """Change the metadata of a record without items, as ``changed`` and ``keep`` do.

        Call this last, because later items of the request see the change.
        """
        if METADATA in data:
            owner = Owner(kind, before["id"] if before else None)
            self.keep(self.changed({owner: (name, data[METADATA])}), before, after)

    def show(self, record: Record, name: str, value: object) -> None:
        """Let ``write`` add a value to a record, for the response and the event."""
        self._shown.append((record, name, value))

    def _show(
        self,
        record: Record,
        entries: Mapping[Owner, list[MetadataEntry]],
        own: Iterable[Owner],
        items: Items,
        end: str = "",
    ) -> None:
        for owner in own:
            self.show(record, METADATA + end, shown(entries.get(owner, ())))
        if items:
            found = {each: shown(entries.get(owner, ())) for each, owner in items.items()}
            self.show(record, ITEMS_METADATA + end, found)

    def write(self, session: Session) -> None:
        """Write the changes, with one statement for each kind, and add them to the records.

        New records have got their IDs.
        """
        for record, owner, entries in self._new:
            self.entries[owner._replace(record_id=record["id"])] = entries
        rows: dict[MetadataTable, list[Record]] = defaultdict(list)
        for owner, entries in self.entries.items():
            rows[owner.kind] += [_row(owner, each) for each in entries if each.is_changed]
        for kind, found in rows.items():
            if found:
                upsert_rows(session, kind.table, found)
        for record, name, value in self._shown:
            record[name] = value


def given_to(
    kind: MetadataTable, items: Sequence[BulkItem], stored: Container[int]
) -> list[tuple[Owner, Given | None]]:
    """Return what items of a request say of the metadata of stored records.

    Args:
        stored: IDs of the records that the items can update.
    """
    return [
        (Owner(kind, item.id), item.data[METADATA])
        for item in items
        if item.id in stored and METADATA in item.data
    ]


def items_of_order(
    order_id: int, ids: Iterable[int], removed: Iterable[int] = ()
) -> tuple[Items, Items]:
    """Return the items of an order with these IDs, and those that a request removes."""
    left, gone = ({each: Owner(ITEM, order_id, each) for each in found} for found in (ids, removed))
    return left, gone


def count_change(before: Data | None, after: Record) -> None:
    """Give a changed record another revision, which is part of its entity tag."""
    if before:
        after["revision"] = before["revision"] + 1


def without_metadata(data: Mapping[str, object]) -> Record:
    """Return the fields of a request that are columns of the record."""
    return {name: value for name, value in data.items() if name != METADATA}


def with_found_value(table: Table, row: Record) -> Record:
    """Return a row of a table with the text that filters compare, if the table has it."""
    return row | {"found_value": found_text(row["value"])} if "found_value" in table.c else row


def _row(owner: Owner, entry: MetadataEntry) -> Record:
    names = [column.name for column in owner.kind.identity]
    row: Record = {
        **dict(zip(names, owner[1:], strict=False)),  # a record has no ID of an item
        "id": entry.id,
        "key": entry.key,
        "value": entry.value,
        "internal": entry.internal,
    }
    return with_found_value(owner.kind.table, row)
