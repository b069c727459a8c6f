"""Metadata of records: the tables, reads and filters (records 1 and 5).

A record is identified by its ID, and an item of an order by the IDs of the order and of the item.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    literal_column,
    select,
    union_all,
)

from app.db.read_pool import Fetch
from app.db.search import MOST_COUNTED, Search
from app.db.sql.functions import is_one_of, json_entries
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

METADATA, ITEMS_METADATA = "metadata", "items_metadata"
"""Names in a written record of its metadata, and of that of its items by the ID of the item."""

BEFORE = "_before"
"""End of the names in a written record of what METADATA and ITEMS_METADATA were before."""

WRITTEN = "written_fields"
"""Name in a written record of the fields of the request that are otherwise shown on request."""

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
        self.ids = bindparam(record_id, type_=IdList)
        self.of_records = is_one_of(self.record_id, _IDS)
        self.select_rows = (
            select(*self.rows).where(self.of_records).order_by(self.record_id, table.c.id)
        )

    def select_entries(self, place: int) -> Select[int, int, int, Shown]:
        """Return a select of a number, an ID of a record, that of an item or 0, and its entries."""
        number, zero = literal_column(str(place), Integer), literal_column("0", Integer)
        item_id = self.identity[1] if len(self.identity) > 1 else zero
        entries = json_entries(self.table.c.id, self.table.c.key, self.table.c.value)
        found = select(number, self.record_id, item_id, entries)
        return found.where(is_one_of(self.record_id, self.ids)).group_by(*self.identity)


COUPON = MetadataTable(COUPON_METADATA, "coupon_id")
CUSTOMER = MetadataTable(CUSTOMER_METADATA, "customer_id")
ORDER = MetadataTable(ORDER_METADATA, "order_id")
REFUND = MetadataTable(REFUND_METADATA, "refund_id")
ITEM = MetadataTable(ITEM_METADATA, "order_id", "item_id")


# --- reads ---


Found = dict[int, dict[int, Shown]]
"""Entries by the ID of the record and by that of the item, which is 0 for those of the record."""


@cache
def _select(kinds: Sequence[MetadataTable]) -> CompoundSelect[object]:
    selects = (kind.select_entries(place) for place, kind in enumerate(kinds))
    return union_all(*selects)


def fetch_entries(
    fetch: Fetch, wanted: Mapping[MetadataTable, Sequence[int]]
) -> dict[MetadataTable, Found]:
    """Return the entries of records of several kinds, in one statement.

    Args:
        wanted: the IDs of the records by their kind; of items those of their orders.
    """
    found: dict[MetadataTable, Found] = {kind: defaultdict(dict) for kind in wanted}
    kinds = tuple(kind for kind, ids in wanted.items() if ids)
    given = {kind.ids.key: wanted[kind] for kind in kinds}
    for place, record_id, item_id, entries in fetch(_select(kinds), given) if kinds else ():
        found[kinds[place]][record_id][item_id] = entries
    return found


def entries_of(fetch: Fetch, kind: MetadataTable, ids: Sequence[int]) -> dict[int, Shown]:
    """Return the entries of records by their IDs, in one statement. Not for items."""
    found = fetch_entries(fetch, {kind: ids})[kind]
    return {record_id: entries[0] for record_id, entries in found.items()}


def first_values(entries: Shown) -> Metadata:
    """Return the first value of each key."""
    values = {key: value for _, key, value in entries}
    if len(values) < len(entries):  # several entries with one key
        values |= {key: value for _, key, value in reversed(entries)}
    return values


# --- filters ---


def conditions_of(
    kind: MetadataTable, record_id: ColumnElement[int], filters: Filters
) -> list[ColumnElement[bool]]:
    """Return the conditions that records have entries with these keys and values.

    Args:
        record_id: the column to compare with the IDs of the records.
    """
    return [record_id.in_(_records_with(kind, *each)) for each in filters]


def search_of(
    kind: MetadataTable, record_id: ColumnElement[int], filters: Filters, *others: Select[int]
) -> Search | None:
    """Return the search for the records that have such entries; None without a filter.

    Args:
        others: further selects of IDs of records, which must have them all.
    """
    selects = [*others, *(_records_with(kind, *each) for each in filters)]
    if not selects:
        return None
    found = and_(*(record_id.in_(each) for each in selects))
    # A record can have several entries with a key, and no index has their records in order.
    counts_all = all(value is not None for _, value in filters)
    ids = selects[0].distinct() if counts_all and len(selects) == 1 else None
    return Search(found, found, ids, MOST_COUNTED, counts_all=counts_all)


def _records_with(kind: MetadataTable, key: str, value: str | None) -> Select[int]:
    return select(kind.record_id).where(*_has(kind, key, value))


def _has(kind: MetadataTable, key: str, value: str | None) -> list[ColumnElement[bool]]:
    has_key = kind.table.c.key == key
    return [has_key] if value is None else [has_key, kind.table.c.found_value == value]
