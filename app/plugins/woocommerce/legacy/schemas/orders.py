"""Schemas of orders in the legacy API (decisions 14, orders 3 and 9, records 1 and 5)."""

from collections.abc import Mapping
from functools import partial

import marshmallow as ma

from app.plugins.woocommerce.legacy.orders import NEWER_FIELDS, NEWER_ITEM_FIELDS, legacy_items
from app.plugins.woocommerce.legacy.schemas.records import LegacyMetadata, with_meta
from app.schemas.base import Base, excluding, list_response, request
from app.schemas.fields import output as fields
from app.schemas.orders.input import (
    OrderBulkItem,
    OrderCreate,
    OrderCreateRequest,
    OrderUpdate,
    OrderUpdateRequest,
)
from app.schemas.orders.order import (
    DownloadList,
    DownloadSchema,
    FeeLineSchema,
    LineItemSchema,
    OrderSchema,
    ShippingLineSchema,
)

IDENTIFYING = {
    "line_items": "product_id",
    "shipping_lines": "method_id",
    "fee_lines": "title",
    "coupon_lines": "code",
}
"""For each list, the key that removes an item if its value is null."""

_STATUS_PREFIX = "wc-"


def native_order(order: Mapping[str, object]) -> dict[str, object]:
    """Convert an order of a legacy client to the native form.

    A status may have the prefix ``wc-``. An item whose identifying key is null is removed.

    Args:
        order: parsed JSON, which is not modified.
    """
    native = dict(order)
    status = native.get("status")
    if isinstance(status, str):
        native["status"] = status.removeprefix(_STATUS_PREFIX)
    for name, key in IDENTIFYING.items():
        if isinstance(items := native.get(name), list):
            native[name] = [_removed(item, key) for item in items]
    return native


def _removed(item: object, key: str) -> object:
    if isinstance(item, dict) and item.get("id") and key in item and item[key] is None:
        return {"id": item["id"], "remove": True}
    return item


class _LegacyOrder(Base):
    @ma.pre_load
    def read(self, data: object, **_: object) -> object:
        return native_order(data) if isinstance(data, dict) else data


class LegacyOrderCreate(_LegacyOrder, with_meta(OrderCreate, "order_meta")):  # type: ignore[misc] # created by a function
    """Fields of a new order in the legacy API."""


class LegacyOrderUpdate(_LegacyOrder, with_meta(OrderUpdate, "order_meta")):  # type: ignore[misc] # the same
    """Fields of an update of an order in the legacy API."""


LegacyOrderCreateRequest = request(LegacyOrderCreate, "order")
LegacyOrderUpdateRequest = request(LegacyOrderUpdate, "order")


class LegacyLineItemSchema(LineItemSchema):
    """Line item of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["line_items"], "metadata")


class LegacyShippingLineSchema(ShippingLineSchema):
    """Shipping line of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["shipping_lines"], "metadata")


class LegacyFeeLineSchema(FeeLineSchema):
    """Fee line of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["fee_lines"], "metadata")


class LegacyOrderSchema(OrderSchema):
    """Order in a response of the legacy API, which has no payment and origin (records 3)."""

    order_meta = LegacyMetadata()

    # Without newer fields.
    line_items = fields.Lines(
        LegacyLineItemSchema,
        "Products that were ordered.",
        wire=partial(legacy_items, "line_items"),
    )
    shipping_lines = fields.Lines(
        LegacyShippingLineSchema, "Shipping methods.", wire=partial(legacy_items, "shipping_lines")
    )
    fee_lines = fields.Lines(LegacyFeeLineSchema, "Fees.", wire=partial(legacy_items, "fee_lines"))

    Meta = excluding(*NEWER_FIELDS, "metadata", *fields.on_request(OrderSchema))


ORDERS: dict[type[ma.Schema], type[ma.Schema]] = {
    OrderCreate: LegacyOrderCreate,
    OrderUpdate: LegacyOrderUpdate,
    OrderBulkItem: with_meta(OrderBulkItem, "order_meta"),
    OrderCreateRequest: LegacyOrderCreateRequest,
    OrderUpdateRequest: LegacyOrderUpdateRequest,
    OrderSchema: LegacyOrderSchema,
    DownloadList: list_response(DownloadSchema, "downloads"),
}
"""Replacements for native schemas of orders."""
