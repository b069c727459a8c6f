"""Metadata of records: rules, reads and writes (records 1 and 5).

A record is identified by its ID, and an item of an order by the IDs of the order and of the item.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import orjson
from flask import current_app
from sqlalchemy import (
    JSON,
    BindParameter,
    Column,
    ColumnElement,
    Select,
    String,
    Table,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.db.read_pool import Fetch, fetch
from app.db.sql.functions import is_one_of, json_entries
from app.db.sql.index_hints import Condition
from app.db.sql.types import IdList
from app.errors import ShopError
from app.models import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    ITEM_METADATA,
    ORDER_METADATA,
    REFUND_METADATA,
)
from app.services.common.bulk import BulkItem, Record, Writes
from app.services.common.metadata_values import found_text, json_text

Metadata = dict[str, Any]
"""The first value of each key, as parsed JSON."""

Shown = list[tuple[int, str, Any]]
"""Entries of a record: ID, key and parsed value, by ID."""

Patches = Sequence[Mapping[str, Any]]
"""Entries to write with ``id``, ``key`` and ``value``; see ``patched_entries``."""

Key = int | tuple[int, int]
"""ID of a record, or the IDs of an order and of one of its items. Negative for a new record."""

Filters = Sequence[tuple[str, str | None]]
"""Keys, each with the text that a value is compared with; None for any value."""

MANY = 1001
"""Number of entries of a value that is not rare (records 5)."""

METADATA, ITEMS_METADATA = "metadata", "items_metadata"
"""Names in a written record of its metadata, and of that of its items by the ID of the item."""

_ID = itemgetter(0)
_IDS = bindparam("ids", type_=IdList)


class MetadataTable:
    """A table of metadata.

    Args:
        record_id: name of the column with the ID of the record, or of the order of an item.
        item_id: name of the column with the ID of the item, if the table is that of items.
    """

    def __init__(self, table: Table, record_id: str, item_id: str | None = None) -> None:
        self.table = table
        self.record_id: Column[int] = table.c[record_id]
        self.identity = [table.c[name] for name in (record_id, item_id) if name]
        self.rows = [*self.identity, table.c.id, table.c.key, table.c.value, table.c.internal]
        self.of_records = is_one_of(self.record_id, _IDS)
        order = (self.record_id, table.c.id)
        self.select_rows = select(*self.rows).where(self.of_records).order_by(*order)
        self.select_entries = self.entries_of(_IDS)

    def entries_of(self, ids: BindParameter[Any]) -> Select[Any]:
        """Return a select of the identity and the entries, as JSON, of each record with an ID.

        The item of a record that is not an item is 0.
        """
        table = self.table
        no_item: ColumnElement[int] = literal_column("0")
        entries = json_entries(table.c.id, table.c.key, table.c.value)
        identity = self.identity if len(self.identity) > 1 else [self.record_id, no_item]
        found = select(*identity, entries).where(is_one_of(self.record_id, ids))
        return found.group_by(*self.identity)


COUPON = MetadataTable(COUPON_METADATA, "coupon_id")
CUSTOMER = MetadataTable(CUSTOMER_METADATA, "customer_id")
ORDER = MetadataTable(ORDER_METADATA, "order_id")
REFUND = MetadataTable(REFUND_METADATA, "refund_id")
ITEM = MetadataTable(ITEM_METADATA, "order_id", "item_id")


# --- reads ---


def entries_of(fetch: Fetch, kind: MetadataTable, ids: Sequence[int]) -> dict[int, Shown]:
    """Return the entries of records by their IDs, in one statement. For items, see below."""
    rows = fetch(kind.select_entries, {"ids": ids}) if ids else ()
    return {record_id: _parsed(text) for record_id, _, text in rows}


_WITH_ITEMS: Any = ORDER.select_entries.union_all(ITEM.select_entries)


def entries_with_items(fetch: Fetch, ids: Sequence[int]) -> dict[int, dict[int, Shown]]:
    """Return the entries of orders and of their items, in one statement.

    Returns:
        For each order the entries by the ID of the item; 0 for those of the order itself.
    """
    found: dict[int, dict[int, Shown]] = {}
    for order_id, item_id, text in fetch(_WITH_ITEMS, {"ids": ids}) if ids else ():
        found.setdefault(order_id, {})[item_id] = _parsed(text)
    return found


_OF_REFUNDS: Any = REFUND.entries_of(bindparam("refunds", type_=IdList)).union_all(
    ITEM.entries_of(bindparam("orders", type_=IdList))
)


def entries_of_refunds(
    fetch: Fetch, ids: Sequence[int], orders: Sequence[int]
) -> tuple[dict[int, Shown], dict[int, Shown]]:
    """Return the entries of refunds and of the items of their orders, in one statement.

    Args:
        ids: IDs of the refunds.
        orders: IDs of the orders whose items are wanted, also the items of refunds.

    Returns:
        The entries of the refunds by their IDs, and those of the items by their IDs.
    """
    found: tuple[dict[int, Shown], dict[int, Shown]] = {}, {}
    for record_id, item_id, text in fetch(_OF_REFUNDS, {"refunds": ids, "orders": orders}):
        found[bool(item_id)][item_id or record_id] = _parsed(text)
    return found


def _parsed(text: str) -> Shown:
    """Return entries, which are a JSON array in any order, by their IDs."""
    return sorted(orjson.loads(text), key=_ID)


def first_values(entries: Shown) -> Metadata:
    """Return the first value of each key."""
    values = {key: value for _, key, value in entries}
    if len(values) < len(entries):  # several entries with one key
        values |= {key: value for _, key, value in reversed(entries)}
    return values


# --- filters ---


def conditions_of(
    kind: MetadataTable,
    record_id: ColumnElement[int],
    filters: Filters,
    fetch: Fetch = fetch,
) -> list[Condition]:
    """Return the conditions that records have entries with these keys and values, rare ones first.

    Args:
        record_id: the column to compare with the IDs of the records.
        fetch: runs the select that tells rare values from frequent ones.
    """
    if len(filters) > 1:
        # SQLite assumes that all values of an index are equally rare.
        numbers = fetch(select(*(_up_to_many(kind, *each) for each in filters)))[0]
        by_number = sorted(range(len(filters)), key=numbers.__getitem__)
        filters = [filters[place] for place in by_number]
    return [_condition(kind, record_id, key, value) for key, value in filters]


def _up_to_many(kind: MetadataTable, key: str, value: str | None) -> ColumnElement[int]:
    """Return the number of entries that a filter finds, counted up to MANY."""
    found = select(literal_column("1")).where(*_has(kind, key, value)).limit(MANY).subquery()
    return select(func.count()).select_from(found).scalar_subquery()


def _has(kind: MetadataTable, key: str, value: str | None) -> list[ColumnElement[bool]]:
    has_key = kind.table.c.key == key
    return [has_key] if value is None else [has_key, kind.table.c.found_value == value]


def with_metadata(
    search: Condition | None, metadata: Sequence[Condition]
) -> tuple[Condition | None, list[ColumnElement[bool]]]:
    """Return the search of a list that also filters by metadata, and conditions to compare.

    The first condition on metadata becomes the search, because it is usually that of few records.
    """
    if not metadata:
        return search, []
    first, *others = [*metadata, *([search] if search else [])]
    return first, [each.in_order for each in others]


def _condition(
    kind: MetadataTable, record_id: ColumnElement[int], key: str, value: str | None
) -> Condition:
    has = _has(kind, key, value)
    return Condition(
        exists().where(kind.record_id == record_id, *has),
        record_id.in_(select(kind.record_id).where(*has)),
    )


# --- writes ---


@dataclass(slots=True)
class Entry:
    """An entry of metadata.

    Attributes:
        value: the value as JSON.
        id: None for a new entry.
        internal: whether an import brought it with a key that begins with an underscore.
        is_changed: whether it has to be written.
    """

    key: str
    value: str
    id: int | None = None
    internal: bool = False
    is_changed: bool = False

    @property
    def size(self) -> int:
        """Return the size of the value in bytes."""
        return len(self.value.encode())


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
    entries: dict[Key, list[Entry]] = field(default_factory=dict)
    rewrites: bool = False
    _shown: list[tuple[Record, str, Any]] = field(default_factory=list)

    @classmethod
    def read(
        cls, session: Session, kind: MetadataTable, ids: Iterable[int], given: Iterable[Any]
    ) -> MetadataWrites:
        """Return the stored entries of records that are locked until the commit.

        Args:
            given: the metadata of the request, with null for keys to remove.
        """
        wanted = sorted(set(ids))
        rewrites = any(isinstance(each, list) or None in each.values() for each in given if each)
        writes = cls(kind, rewrites=rewrites and bool(wanted))
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
            entry = Entry(name, value, entry_id, internal)
            writes.entries.setdefault(key, []).append(entry)
        return writes

    @classmethod
    def of_items(
        cls,
        session: Session,
        kind: MetadataTable,
        items: Sequence[BulkItem],
        stored: Container[int],
    ) -> MetadataWrites:
        """Return the stored entries of the records whose metadata the items change.

        Args:
            stored: IDs of the records that the items can update, which are locked.
        """
        found = [item for item in items if item.id in stored and METADATA in item.data]
        ids = [item.id for item in found if item.id is not None]
        return cls.read(session, kind, ids, [item.data[METADATA] for item in found])

    def apply(
        self,
        writes: Writes,
        data: Mapping[str, Any],
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
            place = f"{name}.{METADATA}"
            self.entries[key] = self.changed(key, data[METADATA], place)
            self.show(after, shown(self.entries[key]))
            count_change(before, after)

    def changed(self, key: Key, given: Mapping[str, Any] | Patches, place: str) -> list[Entry]:
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

    def show(self, record: Record, metadata: Any, name: str = METADATA) -> None:
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
            write_rows(session, self.kind.table, rows)
        for record, name, metadata in self._shown:
            record[name] = metadata

    def _row(self, key: Key, entry: Entry, new_ids: Sequence[int]) -> Record:
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


def key_of(writes: Writes, before: Record | None) -> int:
    """Return the key of a stored record, or of the next new record of the transaction."""
    return before["id"] if before else -1 - len(writes.created)


def count_change(before: Record | None, after: Record) -> None:
    """Give a changed record another revision, which is part of its entity tag."""
    if before:
        after["revision"] = before["revision"] + 1


def without_metadata(data: Mapping[str, Any]) -> Record:
    """Return the fields of a request that are columns of the record."""
    return {name: value for name, value in data.items() if name != METADATA}


def with_found_value(table: Table, row: Record) -> Record:
    """Return a row of a table with the text that filters compare, if the table has it."""
    return row | {"found_value": found_text(row["value"])} if "found_value" in table.c else row


def write_rows(session: Session, table: Table, rows: Sequence[Record]) -> None:
    """Insert entries, and update those that exist, in one statement.

    Args:
        rows: their columns; the ID is None for entries that get a new one, in this order.
    """
    connection = session.connection()
    updated = [name for name in rows[0] if name != "id"]
    if connection.dialect.name == "sqlite":
        upsert: Any = sqlite.insert(table)
        changes = {name: upsert.excluded[name] for name in updated}
        connection.execute(
            upsert.on_conflict_do_update(index_elements=["id"], set_=changes), list(rows)
        )
        return
    names = tuple(rows[0])
    array = bindparam("rows", orjson.dumps(rows).decode(), String)
    given = func.json_populate_recordset(literal_column(f"NULL::{table.name}"), cast(array, JSON))
    source = given.table_valued(*names)
    next_id = func.nextval(func.pg_get_serial_sequence(table.name, "id"))
    values = [func.coalesce(source.c.id, next_id) if n == "id" else source.c[n] for n in names]
    insert = postgresql.insert(table).from_select(names, select(*values))
    changes = {name: insert.excluded[name] for name in updated}
    connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=changes))


def delete_items(session: Session, removed: Collection[tuple[int, int]]) -> None:
    """Delete the metadata of items that were removed from orders.

    Args:
        removed: the IDs of the orders and of their items.
    """
    if removed:
        identity = tuple_(*ITEM.identity)
        session.execute(delete(ITEM_METADATA).where(identity.in_(list(removed))))


def shown(entries: Sequence[Entry]) -> Metadata:
    """Return entries in the native form: of several entries with one key, the first."""
    found: Metadata = {}
    for entry in entries:
        if entry.key not in found:
            found[entry.key] = orjson.loads(entry.value)
    return found


# --- rules ---


def changed_entries(before: Sequence[Entry], given: Mapping[str, Any], place: str) -> list[Entry]:
    """Return the entries of a record after a change.

    Setting a key changes its first entry, which keeps its ID. Null removes all entries of a key.

    Raises:
        ShopError: the result is beyond a limit, and larger than before in this respect.
    """
    after = list(before)
    added: list[str] = []
    grown = ""
    for key, value in given.items():
        first = next((at for at, entry in enumerate(after) if entry.key == key), None)
        if value is None:
            after = [entry for entry in after if entry.key != key]
            continue
        try:
            text = json_text(value)
        except ValueError as error:
            raise invalid_metadata(place, key, str(error)) from None
        if first is None:
            _require_key(place, key)
            after.append(Entry(key, "", is_changed=True))
            added.append(key)
            first = len(after) - 1
        entry = replace(after[first], value=text, internal=False, is_changed=True)
        _require_value(place, entry, after[first].size)
        grown = key if entry.size > after[first].size else grown
        after[first] = entry
    _require_number(place, len(before), len(after), added)
    _require_total(place, before, after, grown)
    return after


def patched_entries(before: Sequence[Entry], given: Patches, place: str) -> list[Entry]:
    """Return the entries of a record after entries were written by ID or key (wc-v3).

    With the ID of an entry, a key and a value change this entry, and the value null removes it.
    Otherwise, a value becomes the only one of its key, and null removes all of its entries. An
    unknown ID adds an entry. What has no key, or no value for a new entry, is skipped.

    Raises:
        ShopError: the result is beyond a limit, and larger than before in this respect.
    """
    after = list(before)
    for patch in given:
        key, value = str(patch.get("key") or ""), patch.get("value")
        own = [entry for entry in after if entry.id is not None and entry.id == patch.get("id")]
        same = own if patch.get("id") else [entry for entry in after if entry.key == key]
        if value is None:
            if "value" in patch:
                after = [entry for entry in after if entry not in same]
            continue
        if not key:
            continue
        try:
            text = json_text(value)
        except ValueError as error:
            raise invalid_metadata(place, key, str(error)) from None
        _require_key(place, key)
        first = same[0] if same else Entry(key, "")
        entry = replace(first, key=key, value=text, internal=False, is_changed=True)
        _require_value(place, entry, first.size)
        at = next((at for at, each in enumerate(after) if each is first), len(after))
        after[at : at + 1] = [entry]
        after = [each for each in after if each is entry or each not in same[1:]]
    _require_number(place, len(before), len(after), [entry.key for entry in after])
    _require_total(place, before, after, after[-1].key if after else "")
    return after


def invalid_metadata(place: str, key: str, reason: str) -> ShopError:
    """Return the error of a key."""
    param = f"{place}.{key}" if key else place
    return ShopError("shop_api_invalid_metadata", param=param, reason=reason)


def _limit(name: str) -> int:
    limit: int = current_app.config[f"SHOP_METADATA_{name}"]
    return limit


def _require_key(place: str, key: str) -> None:
    longest = _limit("KEY_LENGTH")
    if not 1 <= len(key) <= longest:
        raise invalid_metadata(place, key, f"a key must have 1 to {longest:,} characters.")


def _require_value(place: str, entry: Entry, before: int) -> None:
    largest = _limit("VALUE_BYTES")
    if entry.size > max(largest, before):
        raise invalid_metadata(place, entry.key, f"the value is larger than {largest:,} bytes.")


def _require_number(place: str, before: int, after: int, added: Sequence[str]) -> None:
    most = _limit("ENTRIES")
    if after > max(most, before):
        first = added[max(len(added) - (after - most), 0)]
        raise invalid_metadata(place, first, f"the record would have more than {most:,} entries.")


def _require_total(place: str, before: Sequence[Entry], after: Sequence[Entry], grown: str) -> None:
    largest = _limit("BYTES")
    if sum(entry.size for entry in after) > max(largest, sum(entry.size for entry in before)):
        reason = f"the values of the record would be larger than {largest:,} bytes together."
        raise invalid_metadata(place, grown, reason)
