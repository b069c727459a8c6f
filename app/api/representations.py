"""The representation of each kind of record: its schema, its columns, and the data of its events.

Views, events, exports and entity tags share these serializers, so that a record has one form. The
services write events, but do not know the wire format: ``init_app`` gives them the functions.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

from flask import Flask

from app.api.dialect import NATIVE, Dialect, current_dialect
from app.api.metadata import RecordSerializer, WantedMetadata
from app.api.order_extensions import extend
from app.api.serializers import Object, Selection, Serializer, names_in, narrowed, require_known
from app.catalog import EXTENSION, OrderExtension, current_catalog
from app.db.read_pool import fetch
from app.db.records import Row
from app.db.session import reading_own_writes
from app.models import CAMPAIGNS, COUPONS, ORDER_NOTES, ORDER_REFUNDS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.address import SHIPPING_PHONE
from app.schemas.api_keys import ApiKeySchema
from app.schemas.campaigns import CampaignSchema, EventCampaign
from app.schemas.coupons.batch import CouponBatchSchema
from app.schemas.coupons.coupon import CouponSchema, TrashedCouponSchema
from app.schemas.customers import CustomerSchema
from app.schemas.events import EventSchema
from app.schemas.fields.query import StrictSelection
from app.schemas.imports import ImportErrorSchema, ImportSchema
from app.schemas.orders.note import OrderNoteSchema
from app.schemas.orders.order import DownloadSchema, OrderSchema, TrashedOrderSchema
from app.schemas.orders.refund import OrderRefundSchema
from app.schemas.redemptions import RedemptionSchema
from app.schemas.webhooks import WebhookDeliverySchema, WebhookSchema
from app.services.api_keys import queries as api_key_queries
from app.services.campaigns import queries as campaign_queries
from app.services.common import metadata
from app.services.coupons import batch_queries
from app.services.customers import statistics as customer_statistics
from app.services.customers.columns import NEW_HASH
from app.services.events import queries as event_queries
from app.services.imports import queries as import_queries
from app.services.orders import queries as order_queries
from app.services.orders.columns import with_total_tax
from app.services.orders.refunds import refunds_of_orders
from app.services.redemptions import queries as redemption_queries

Record = Mapping[str, object]

CAMPAIGN = Serializer(CampaignSchema, campaign_queries.COLUMNS)
EVENT_CAMPAIGN = Serializer(EventCampaign, dict(CAMPAIGNS.c))
COUPON = Serializer(CouponSchema, dict(COUPONS.c))
TRASHED_COUPON = Serializer(TrashedCouponSchema, dict(COUPONS.c))
COUPON_BATCH = Serializer(CouponBatchSchema, batch_queries.COLUMNS)
CUSTOMER = Serializer(CustomerSchema, customer_statistics.COLUMNS)
ORDER = Serializer(OrderSchema, order_queries.COLUMNS)
TRASHED_ORDER = Serializer(TrashedOrderSchema, order_queries.TRASH_COLUMNS)
ORDER_NOTE = Serializer(OrderNoteSchema, dict(ORDER_NOTES.c))
ORDER_REFUND = Serializer(OrderRefundSchema, dict(ORDER_REFUNDS.c))
DOWNLOAD = Serializer(DownloadSchema, order_queries.DOWNLOAD_COLUMNS)
REDEMPTION = Serializer(RedemptionSchema, redemption_queries.COLUMNS)
EVENT = Serializer(EventSchema, event_queries.COLUMNS)
WEBHOOK = Serializer(WebhookSchema, dict(WEBHOOKS.c))
WEBHOOK_DELIVERY = Serializer(WebhookDeliverySchema, dict(WEBHOOK_DELIVERIES.c))
IMPORT = Serializer(ImportSchema, import_queries.COLUMNS)
IMPORT_ERROR = Serializer(ImportErrorSchema, import_queries.ERROR_COLUMNS)
API_KEY = Serializer(ApiKeySchema, api_key_queries.COLUMNS)
KEY_IN_EVENT = ("id", "user_id", "permission", "resources", "expires_at")


def init_app(app: Flask) -> None:
    """Let the services of an app write events with these representations."""
    app.extensions[EXTENSION].event_values |= {
        "campaign": _compared(EVENT_CAMPAIGN, metadata.COUPON),
        "coupon": _compared(COUPON, metadata.COUPON),
        "customer": _customer_values,
        "order": _order_values,
        "order_refund": _compared(ORDER_REFUND, metadata.REFUND),
        "order_note": ORDER_NOTE.record,
        # A reader of events may lack the resource ``keys`` (people 1).
        "key": API_KEY.only(dict.fromkeys(KEY_IN_EVENT)).record,
    }
    app.extensions[EXTENSION].event_data |= {
        "campaign": lambda found: [{"campaign": EVENT_CAMPAIGN.record(each)} for each in found],
        "coupon": _coupons,
        "customer": _customers,
        "order": _orders,
        "order_refund": _refunds,
        "order_note": lambda found: [
            {"order_note": ORDER_NOTE.record(each), "order_id": each["order_id"]} for each in found
        ],
    }


coupons = partial(RecordSerializer, COUPON, metadata.COUPON)
trashed_coupons = partial(RecordSerializer, TRASHED_COUPON, metadata.COUPON)
customers = partial(RecordSerializer, CUSTOMER, metadata.CUSTOMER)
"""Functions that return the serializer for a loaded query, or for the response to a write."""


_LEFT_OUT = {
    "updated_at",
    "role",
    "avatar_url",
    "last_order_id",
    "last_order_date",
    "orders_count",
    "total_spent",
    "erased_at",
}
"""Fields that ``changes`` of events never contain (people 1)."""


def _compared(serializer: Serializer, kind: metadata.MetadataTable) -> Callable[[Record], Object]:
    """Return the function that returns the fields of a record that ``changes`` compare."""
    names = {name: None for name in serializer.selectable if name not in _LEFT_OUT}
    return RecordSerializer(serializer.only(names), kind, dialect=NATIVE).record


_compared_customer = _compared(CUSTOMER, metadata.CUSTOMER)
_compared_order = _compared(ORDER, metadata.ORDER)


def _customer_values(record: Record) -> Object:
    phone = {SHIPPING_PHONE: record[SHIPPING_PHONE]}
    return _compared_customer(record) | phone | ({NEW_HASH: True} if NEW_HASH in record else {})


def _order_values(record: Record) -> Object:
    return _compared_order(with_total_tax(dict(record))) | {
        SHIPPING_PHONE: record[SHIPPING_PHONE],
        "total_refunded": f"{record['total_refunded']:.2f}",
    }


def _coupons(found: Sequence[Record]) -> list[Object]:
    """Return coupons as the API shows them, with ``trashed_at`` if they are in the trash."""
    shown = coupons(dialect=NATIVE).records(found)
    if trashed := [place for place, coupon in enumerate(found) if coupon.get("trashed_at")]:
        serializer = trashed_coupons(dialect=NATIVE)
        for place in trashed:
            shown[place] = serializer.record(found[place])
    return [{"coupon": coupon} for coupon in shown]


def _customers(found: Sequence[Record]) -> list[Object]:
    return [{"customer": shown} for shown in customers(dialect=NATIVE).records(found)]


def _orders(found: Sequence[Record]) -> list[Object]:
    """Return orders with their extensions, which are added to all orders at once."""
    serializer = OrderSerializer(dialect=NATIVE)
    shown = serializer.records([with_total_tax(order) for order in found])
    return [{"order": order} for order in shown]


def _refunds(found: Sequence[Record]) -> list[Object]:
    serializer = RefundSerializer(dialect=NATIVE)
    return [{"order_refund": serializer.record(each)} for each in found]


class RefundSerializer(RecordSerializer):
    """Converts rows to refunds, with metadata if requested."""

    def __init__(
        self, query: Mapping[str, object] | None = None, dialect: Dialect | None = None
    ) -> None:
        super().__init__(ORDER_REFUND, metadata.REFUND, query, dialect)
        if self._wanted.has_items:  # the items of an order have other IDs
            self.columns += (ORDER_REFUNDS.c.order_id, ORDER_REFUNDS.c.line_items)

    def completed(self, objects: list[Object], rows: Sequence[Row]) -> list[Object]:
        """Return refunds with their metadata."""
        if not (rows and self._wanted.is_wanted):
            return objects
        first = len(self._serializer.columns)
        stored = [row[first : first + 2] if self._wanted.has_items else (0, ()) for row in rows]
        orders = list({order_id for order_id, _ in stored})
        ids = [row[-1] for row in rows]
        found = metadata.fetch_entries(fetch, {metadata.REFUND: ids, metadata.ITEM: orders})
        of_refunds, of_orders = found[metadata.REFUND], found[metadata.ITEM]
        for refund, refund_id, (order_id, items) in zip(objects, ids, stored, strict=True):
            entries = of_orders.get(order_id, {})
            of_items = {item["id"]: entries.get(item.get("item_id"), []) for item in items}
            self._wanted.set_found(refund, of_refunds.get(refund_id, {}).get(0), of_items)
        return objects


_REFUNDS = {"total_refunded", "refunds"}
"""Names of an order whose values are read with its refunds (records 2)."""


class OrderSerializer(RecordSerializer):
    """Converts rows to extended orders with selected ``fields``."""

    def __init__(
        self,
        query: Mapping[str, object] | None = None,
        serializer: Serializer = ORDER,
        dialect: Dialect | None = None,
    ) -> None:
        self._dialect = dialect or current_dialect()
        serializer = serializer.for_schemas(self._dialect.schemas)
        extensions = current_catalog().order_extensions
        self._kind = metadata.ORDER
        self._wanted = WantedMetadata(serializer, query)
        selection: Selection = self._wanted.selection
        self._refunds = _REFUNDS & serializer.selectable.keys() & (selection or {}).keys()
        if selection is not None and self._refunds:
            rest = {name: each for name, each in selection.items() if name not in self._refunds}
            selection = type(selection)(rest)  # type: ignore[call-arg] # a dict
        self._selection = selection
        if selection is not None:
            _require_known(selection, extensions, serializer)
        self._extends = selection is None or not extensions.keys().isdisjoint(selection)
        # Extensions receive complete orders, even if the client selected few fields.
        self._serializer = serializer if self._extends else serializer.only(selection)
        self.columns = self._serializer.columns

    def records(self, records: Sequence[Mapping[str, object]]) -> list[Object]:
        """Return the orders of records by column name, with the metadata that was written.

        Within a transaction, the extensions see its changes.
        """
        with reading_own_writes():
            orders = self._extended(self._serializer.records(records))
        return _extended_last(list(map(self._wanted.add_written, orders, records)))

    def plain(self, rows: Sequence[Row]) -> list[Object]:
        """Return the orders of rows without their metadata and refunds."""
        return self._extended(super().plain(rows))

    def completed(self, objects: list[Object], rows: Sequence[Row]) -> list[Object]:
        """Return orders with their metadata and refunds."""
        orders, ids = objects, [row[-1] for row in rows]
        if self._refunds:
            sums, refunds = refunds_of_orders(fetch, ids)
            orders = [
                order | self._of_refunds(sums.get(order_id, 0), refunds.get(order_id, []))
                for order, order_id in zip(orders, ids, strict=True)
            ]
        if not (rows and self._wanted.is_wanted):
            return _extended_last(orders) if self._refunds else orders
        return _extended_last(self._wanted.add(self._kind, orders, ids))

    def _of_refunds(self, total: Decimal | int, refunds: Sequence[Record]) -> Object:
        """Return the values of an order that its refunds determine, if they are selected."""
        values = {"total_refunded": f"{total:.2f}", "refunds": refunds}
        return {name: value for name, value in values.items() if name in self._refunds}

    def _extended(self, orders: list[Object]) -> list[Object]:
        if not self._extends:
            return orders
        selection = self._selection
        results = orders if selection is None else [narrowed(each, selection) for each in orders]
        extend(results, orders, selection, self._dialect)
        return results


def _extended_last(orders: list[Object]) -> list[Object]:
    """Move the keys of the extensions behind the metadata of each order (records 1)."""
    for key in reversed(current_catalog().order_extensions):
        for order in orders:
            if key in order:
                order[key] = order.pop(key)
    return orders


def _require_known(
    selection: Mapping[str, object], added: Mapping[str, OrderExtension], serializer: Serializer
) -> None:
    """Reject unknown names in the selection of a strict request. Extensions add names to orders."""
    if isinstance(selection, StrictSelection):
        names = {key: names_in(extension.field) for key, extension in added.items()}
        # The value of a plugin can contain any names.
        checked = {
            key: None if names.get(key, ()) is None else inner for key, inner in selection.items()
        }
        require_known(StrictSelection(checked), {**serializer.selectable, **names})
