"""The kinds of exported records: the content of a line and its source (migration 2).

A line contains the record as the API returns it, followed by further columns that a restore needs.
Redemptions are an exception: a line contains their stored status, which does not change when a
reservation expires.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, Table, bindparam, select

from app.api.representations import COUPON, ORDER, ORDER_NOTE
from app.api.serializers import Serializer
from app.db.read_pool import Fetch
from app.db.records import Record, as_printed
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import (
    CAMPAIGNS,
    COUPON_BATCHES,
    COUPONS,
    DOWNLOADS,
    MERGED_ACCOUNTS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    USER_ROLES,
    USERS,
)
from app.schemas.base import excluding
from app.schemas.campaigns import EventCampaign
from app.schemas.coupons.batch import CouponBatchSchema
from app.schemas.customers import CustomerSchema
from app.schemas.fields.output import Composite, Identifiers, Lines, Metadata, StringList
from app.schemas.orders.refund import OrderRefundSchema, RefundItemSchema
from app.schemas.redemptions import RedemptionSchema
from app.services.common import metadata as metadata_tables
from app.services.common.erased import USE_COLUMNS
from app.services.common.metadata import ITEMS_METADATA, METADATA, MetadataTable
from app.services.customers import statistics as customer_statistics
from app.services.orders.downloads import BLANK as BLANK_DOWNLOAD
from app.services.orders.items import KINDS as ITEM_LISTS

Related = Callable[[Fetch, Sequence[int]], dict[int, Record]]

MERGED = "merged_accounts"
"""Name of the accounts in the line of a customer that were merged into it."""

PASSWORD_HASH = "password_hash"  # noqa: S105  # a name

_IDS = bindparam("ids", type_=IdList)


@dataclass(frozen=True)
class Kind:
    """A kind of records.

    Args:
        name: name of the kind, as in ``export coupons``.
        singular: name of one record: the value of ``kind`` in each line.
        representation: the fields that the API returns.
        stored: further columns of the table.
        related: function that returns further values by the ID of the record.
        joined: names of related values that are lists of texts. CSV contains all others as JSON.
        related_names: names of all related values.
    """

    name: str
    singular: str
    table: Table
    representation: Serializer
    stored: tuple[str, ...] = ()
    related: Related | None = None
    joined: tuple[str, ...] = ()
    related_names: tuple[str, ...] = ()

    def selected(self, more: Sequence[str] = ()) -> list[ColumnElement[object]]:
        """Return the columns to select, without the ID."""
        stored = (self.table.c[name] for name in (*self.stored, *more))
        return [as_printed(column) for column in (*self.representation.columns, *stored)]

    def record(self, row: Sequence[object], more: Sequence[str] = ()) -> Record:
        """Return a record without its related values, from a row of ``selected``."""
        first = len(self.representation.columns)
        stored = zip((*self.stored, *more), row[first:], strict=False)
        return {"kind": self.singular, **self.representation.row(row), **dict(stored)}

    @cached_property
    def csv_columns(self) -> dict[str, str]:
        """Return the format of each CSV column: ``text``, ``joined`` or ``json``."""
        columns: dict[str, str] = {}
        for name, each in self.representation.schema().fields.items():
            if isinstance(each, Metadata):
                continue  # among the related values
            if isinstance(each, Composite):
                columns |= {f"{each.prefix}{part}": "text" for part in each.part().fields}
            elif isinstance(each, Identifiers | StringList):
                columns[name] = "joined"
            else:
                columns[name] = "json" if isinstance(each, Lines) else "text"
        columns |= {name: "json" if name == "item_details" else "text" for name in self.stored}
        for name in self.related_names:
            columns[name] = "joined" if name in self.joined else "json"
        return columns

    @cached_property
    def parts(self) -> dict[str, str]:
        """Return the prefix of the CSV columns of each nested object."""
        fields = self.representation.schema().fields.items()
        return {name: each.prefix for name, each in fields if isinstance(each, Composite)}


def _entries(
    fetch: Fetch, kind: MetadataTable, ids: Sequence[int]
) -> dict[int, dict[int, list[Record]]]:
    """Return the entries of records by the ID of the record, and by that of the item or 0."""
    found: dict[int, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record_id, *rest, entry_id, key, value, internal in fetch(kind.select_rows, {"ids": ids}):
        entry = {"id": entry_id, "key": key, "value": orjson.Fragment(value), "internal": internal}
        found[record_id][sum(rest)].append(entry)
    return found


def _metadata_of(kind: MetadataTable) -> Related:
    def related(fetch: Fetch, ids: Sequence[int]) -> dict[int, Record]:
        found = _entries(fetch, kind, ids)
        return {each: {METADATA: found[each][0]} if each in found else {} for each in ids}

    return related


def _of_customers(fetch: Fetch, ids: Sequence[int]) -> dict[int, Record]:
    metadata = _metadata_of(metadata_tables.CUSTOMER)(fetch, ids)
    found: dict[int, Record] = {record_id: {"roles": []} for record_id in ids}
    roles = select(USER_ROLES.c.user_id, USER_ROLES.c.role).where(
        is_one_of(USER_ROLES.c.user_id, _IDS)
    )
    ordered = roles.order_by(USER_ROLES.c.user_id, USER_ROLES.c.position, USER_ROLES.c.role)
    for user_id, role in fetch(ordered, {"ids": ids}):
        found[user_id]["roles"].append(role)
    merged = MERGED_ACCOUNTS.c
    of_these = is_one_of(merged.customer_id, _IDS)
    accounts = select(merged.customer_id, merged.id, merged.email).where(of_these)
    for customer_id, merged_id, email in fetch(accounts.order_by(merged.id), {"ids": ids}):
        found[customer_id].setdefault(MERGED, []).append({"id": merged_id, "email": email})
    return {record_id: found[record_id] | metadata[record_id] for record_id in ids}


class _StoredBatchSchema(CouponBatchSchema):
    """A batch without the numbers that are computed when it is read."""

    Meta = excluding("unused", "reserved", "used", "trashed")


class _StoredRefundSchema(OrderRefundSchema):
    """A refund with everything that is stored of its items."""

    line_items = Lines(RefundItemSchema)


DOWNLOAD_NAMES = ("id", *BLANK_DOWNLOAD)


def _of_orders(fetch: Fetch, ids: Sequence[int]) -> dict[int, Record]:
    metadata = _metadata_of(metadata_tables.ORDER)(fetch, ids)
    found: dict[int, Record] = {record_id: {"notes": [], "downloads": []} for record_id in ids}
    columns = [*map(as_printed, ORDER_NOTE.columns), ORDER_NOTES.c.author]
    for *row, author, order_id in fetch(_by_order(ORDER_NOTES, columns), {"ids": ids}):
        found[order_id]["notes"].append(ORDER_NOTE.row(row) | {"author": author})
    downloads = _by_order(DOWNLOADS, [as_printed(DOWNLOADS.c[name]) for name in DOWNLOAD_NAMES])
    for *row, order_id in fetch(downloads, {"ids": ids}):
        found[order_id]["downloads"].append(dict(zip(DOWNLOAD_NAMES, row, strict=True)))
    items = _entries(fetch, metadata_tables.ITEM, ids)
    return {
        record_id: found[record_id] | metadata[record_id] | {ITEMS_METADATA: items.get(record_id)}
        for record_id in ids
    }


def _of_refunds(fetch: Fetch, ids: Sequence[int]) -> dict[int, Record]:
    metadata = _metadata_of(metadata_tables.REFUND)(fetch, ids)
    of_refunds = select(ORDER_REFUNDS.c.id, ORDER_REFUNDS.c.order_id)
    of_these = of_refunds.where(is_one_of(ORDER_REFUNDS.c.id, _IDS))
    orders: dict[int, int] = dict(map(tuple, fetch(of_these, {"ids": ids})))
    items = _entries(fetch, metadata_tables.ITEM, [*orders.values()])
    return {
        refund_id: metadata[refund_id] | {ITEMS_METADATA: items.get(orders[refund_id])}
        for refund_id in ids
    }


def with_items_metadata(record: Record) -> Record:
    """Return a record whose items contain their metadata.

    An item of a refund has an ID of its own, next to that of the item of the order.
    """
    if (of_items := record.pop(ITEMS_METADATA, None)) is None:
        return record
    lists = {
        name: [
            item | {METADATA: of_items[item_id]}
            if (item_id := item.get("item_id", item.get("id"))) in of_items
            else item
            for item in record[name]
        ]
        for name in ITEM_LISTS
        if name in record
    }
    return record | lists


def _by_order(table: Table, columns: Sequence[ColumnElement[Any]]) -> Select[Any]:
    of_these = is_one_of(table.c.order_id, _IDS)
    return select(*columns, table.c.order_id).where(of_these).order_by(table.c.order_id, table.c.id)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "customers",
            "customer",
            USERS,
            # Without the columns of whole addresses, whose texts differ between databases.
            Serializer(
                CustomerSchema,
                {
                    name: column
                    for name, column in customer_statistics.COLUMNS.items()
                    if not name.endswith("_address")
                },
            ).complete(),
            stored=("updated_at", "shipping_phone"),
            related=_of_customers,
            joined=("roles",),
            related_names=("roles", MERGED, METADATA),
        ),
        Kind(
            "campaigns",
            "campaign",
            CAMPAIGNS,
            Serializer(EventCampaign, dict(CAMPAIGNS.c)),
        ),
        Kind(
            "batches",
            "batch",
            COUPON_BATCHES,
            Serializer(_StoredBatchSchema, dict(COUPON_BATCHES.c)).complete(),
            ("author_id",),
        ),
        Kind(
            "coupons",
            "coupon",
            COUPONS,
            COUPON.complete(),
            stored=("status", "trashed_at", "author_id", "batch_id", "reserved_count"),
            related=_metadata_of(metadata_tables.COUPON),
            related_names=(METADATA,),
        ),
        Kind(
            "orders",
            "order",
            ORDERS,
            ORDER,
            stored=(
                "trashed_at",
                "status_before_trash",
                "next_item_id",
                "item_details",
                "total_refunded",
                "items",
                "fees",
                "shipping_phone",
                "erased_at",
            ),
            related=_of_orders,
            related_names=("notes", "downloads", METADATA),
        ),
        Kind(
            "refunds",
            "order_refund",
            ORDER_REFUNDS,
            Serializer(_StoredRefundSchema, dict(ORDER_REFUNDS.c)),
            related=_of_refunds,
            related_names=(METADATA,),
        ),
        Kind(
            "redemptions",
            "redemption",
            REDEMPTIONS,
            Serializer(RedemptionSchema, USE_COLUMNS).complete(),
            stored=("holds_slot",),
        ),
    )
}
"""All kinds in the order of a restore: each kind after the kinds to which its records refer."""
