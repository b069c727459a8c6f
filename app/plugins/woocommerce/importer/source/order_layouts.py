"""The two storage layouts of orders in WooCommerce: posts with metadata, and order tables.

Both are read into the same record of texts, which ``steps.orders`` converts.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.plugins.woocommerce import stored_keys
from app.plugins.woocommerce.importer import tables
from app.plugins.woocommerce.importer.source.clock import ShopClock, from_unix
from app.plugins.woocommerce.importer.source.staging import Meta, MetaRows, Staging, meta_in


@dataclass(slots=True)
class SourceOrder:
    """An order or a refund as the source stores it.

    Attributes:
        table: the table of the source, for reports.
        texts: stored values by column name.
        address: values of both addresses, by column name.
        parent_id: the ID of the order of a refund, or of the parent of an order.
        paid: the time of payment.
        rows: keys, values and IDs of its metadata, alternating.
        fields: keys of its metadata whose values are in the other attributes.
        is_counted: whether the source counts its coupon uses; None if unknown.
    """

    id: int
    table: str
    status: str
    created: datetime | None
    updated: datetime | None
    completed: datetime | None
    paid: datetime | None
    customer_id: str | None
    parent_id: int
    texts: Mapping[str, str | None]
    meta: Meta
    rows: MetaRows
    fields: Collection[str]
    is_counted: bool | None = None
    address: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PostLayout:
    """Orders as posts: up to WooCommerce 8, and later unless the shop has switched."""

    staging: Staging
    clock: ShopClock
    orders: str = "posts:shop_order"
    refunds: str = "posts:shop_order_refund"

    def read(self, name: str, page: Mapping[int, list[list[str | None]]]) -> Iterator[SourceOrder]:
        """Yield the orders or refunds of a page."""
        metas = self.staging.meta_rows("postmeta", list(page))
        fields = tables.REFUND_KEYS | _OF_POSTS if name == self.refunds else tables.ORDER_KEYS
        clock = self.clock
        for post_id, rows in page.items():
            (_, status, _, excerpt, _, local, gmt, modified_local, modified, parent) = rows[-1]
            meta_rows = metas.get(post_id, [])
            meta = meta_in(meta_rows)
            get = meta.get
            yield SourceOrder(
                id=post_id,
                table="posts",
                status=status or "",
                created=clock.utc(gmt, local),
                updated=clock.utc(modified, modified_local),
                # The first of each pair contains the local time.
                completed=from_unix(get("_date_completed"))
                or clock.utc(None, get("_completed_date")),
                paid=from_unix(get("_date_paid")) or clock.utc(None, get("_paid_date")),
                customer_id=get("_customer_user"),
                parent_id=int(parent or 0),
                texts={name: get(key) for name, (key, _) in stored_keys.ORDER_TEXTS.items()}
                | {"note": excerpt},
                meta=meta,
                rows=meta_rows,
                fields=_with_number(fields, meta),
                is_counted=_flag(get("_recorded_coupon_usage_counts")),
                address={key: get(f"_{key}") for key in stored_keys.ADDRESS_KEYS},
            )


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Orders in order tables ("high-performance order storage")."""

    staging: Staging
    clock: ShopClock
    orders: str = "wc_orders:shop_order"
    refunds: str = "wc_orders:shop_order_refund"

    def read(self, name: str, page: Mapping[int, list[list[str | None]]]) -> Iterator[SourceOrder]:
        """Yield the orders or refunds of a page."""
        ids = list(page)
        metas = self.staging.meta_rows("wc_orders_meta", ids)
        fields = tables.REFUND_KEYS if name == self.refunds else tables.TRASH_KEYS
        data = self.staging.one_by_id("wc_order_operational_data", ids)
        addresses = self.staging.by_id("wc_order_addresses", ids)
        clock = self.clock
        for order_id, rows in page.items():
            row = dict(zip(_ORDER, rows[-1], strict=True))
            row |= dict(zip(_DATA, data.get(order_id) or [None] * len(_DATA), strict=True))
            meta_rows = metas.get(order_id, [])
            meta = meta_in(meta_rows)
            address = _addresses(addresses.get(order_id, []))
            yield SourceOrder(
                id=order_id,
                table="wc_orders",
                status=row["status"] or "",
                created=clock.utc(row["date_created_gmt"]),
                updated=clock.utc(row["date_updated_gmt"]),
                completed=clock.utc(row["date_completed_gmt"]),
                paid=clock.utc(row["date_paid_gmt"]),
                customer_id=row["customer_id"],
                parent_id=int(row["parent_order_id"] or 0),
                texts={name: row[column] for name, (_, column) in stored_keys.ORDER_TEXTS.items()},
                meta=meta,
                rows=meta_rows,
                fields=_with_number(fields, meta),
                is_counted=_flag(row["coupon_usages_are_counted"]),
                address={"billing_email": row["billing_email"], **address},
            )


OrderLayout = PostLayout | TableLayout
"""A storage layout, with the staged tables of orders and of refunds."""

# The columns after the ID.
_ORDER, _DATA = (
    tables.SOURCE_TABLES[name].columns[1:] for name in ("wc_orders", "wc_order_operational_data")
)
_OF_POSTS = frozenset({"_order_total"})
"""Metadata of refunds in posts that repeats the amount."""


def _with_number(fields: Collection[str], meta: Meta) -> Collection[str]:
    """Return the keys that are fields, with the one that contains the order number."""
    number = next((key for key in NUMBER_KEYS if meta.get(key)), None)
    return {*fields, number} if number else fields


NUMBER_KEYS = ("_order_number_formatted", "_order_number")
"""Metadata of plugins with the number of an order. The first one counts."""


def _addresses(rows: list[list[str | None]]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for kind, *values in rows:
        shipping = (*SHIPPING_PARTS, "phone")
        parts = {"billing": BILLING_PARTS, "shipping": shipping}.get(kind or "", ())
        for part, value in zip(BILLING_PARTS, values, strict=True):
            if part in parts and value is not None:
                found[f"{kind}_{part}"] = value
    return found


def _flag(text: str | None) -> bool | None:
    return None if text in {None, ""} else text in {"yes", "1"}
