"""Metadata of records: the tables, reads and filters (records 1 and 5).

A record is identified by its ID, and an item of an order by the IDs of the order and of the item.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    select,
)

from app.db.read_pool import Fetch, fetch
from app.db.sql.functions import is_one_of, json_entries
from app.db.sql.index_hints import Condition
from app.db.sql.types import IdList
from app.models import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    ITEM_METADATA,
    ORDER_METADATA,
    REFUND_METADATA,
)
from app.services.common.metadata_rules import Metadata

Shown = list[tuple[int, str, Any]]
"""Entries of a record: ID, key and parsed value, by ID."""

Filters = Sequence[tuple[str, str | None]]
"""Keys, each with the text that a value is compared with; None for any value."""

MANY = 1001
"""Number of entries of a value that is not rare (records 5)."""

METADATA, ITEMS_METADATA = "metadata", "items_metadata"
"""Names in a written record of its metadata, and of that of its items by the ID of the item."""

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

    def column(self, record_id: ColumnElement[int]) -> ColumnElement[Any]:
        """Return the entries of the record of a row as a column."""
        table = self.table
        entries = select(json_entries(table.c.id, table.c.key, table.c.value))
        return entries.where(self.record_id == record_id).scalar_subquery().label(METADATA)


COUPON = MetadataTable(COUPON_METADATA, "coupon_id")
CUSTOMER = MetadataTable(CUSTOMER_METADATA, "customer_id")
ORDER = MetadataTable(ORDER_METADATA, "order_id")
REFUND = MetadataTable(REFUND_METADATA, "refund_id")
ITEM = MetadataTable(ITEM_METADATA, "order_id", "item_id")


# --- reads ---


def entries_of(fetch: Fetch, kind: MetadataTable, ids: Sequence[int]) -> dict[int, Shown]:
    """Return the entries of records by their IDs, in one statement. For items, see below."""
    rows = fetch(kind.select_entries, {"ids": ids}) if ids else ()
    return {record_id: entries for record_id, _, entries in rows}


_WITH_ITEMS: Any = ORDER.select_entries.union_all(ITEM.select_entries)


def entries_with_items(
    fetch: Fetch, ids: Sequence[int], select_entries: Any = _WITH_ITEMS
) -> dict[int, dict[int, Shown]]:
    """Return entries by order and by the ID of the item, 0 for the order, in one statement.

    Args:
        select_entries: which entries; by default those of orders and items.
    """
    found: dict[int, dict[int, Shown]] = {}
    for order_id, item_id, entries in fetch(select_entries, {"ids": ids}) if ids else ():
        found.setdefault(order_id, {})[item_id] = entries
    return found


def entries_of_items(fetch: Fetch, ids: Sequence[int]) -> dict[int, dict[int, Shown]]:
    """Return the entries of items by order and by the ID of the item, in one statement."""
    return entries_with_items(fetch, ids, ITEM.select_entries)


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
    for record_id, item_id, entries in fetch(_OF_REFUNDS, {"refunds": ids, "orders": orders}):
        found[bool(item_id)][item_id or record_id] = entries
    return found


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
    return [
        _condition(kind, record_id, key, value, is_first=place == 0)
        for place, (key, value) in enumerate(filters)
    ]


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
    kind: MetadataTable,
    record_id: ColumnElement[int],
    key: str,
    value: str | None,
    *,
    is_first: bool,
) -> Condition:
    has = _has(kind, key, value)
    entry: Select[Any] = select(literal_column("1")).where(kind.record_id == record_id, *has)
    if not is_first:
        # With an OFFSET, PostgreSQL looks up the entry of each record that the first condition
        # finds. A prepared statement would read all entries of a frequent value.
        entry = entry.offset(literal_column("0"))
    return Condition(
        entry.exists(),
        record_id.in_(select(kind.record_id).where(*has)),
    )
