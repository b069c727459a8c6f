"""Schemas of orders and of refunds in the legacy API.

Decisions 14, orders 3 and 9, records 1 and 5.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, TypeGuard

import marshmallow as ma

from app.conversions import numbers
from app.db.records import Record
from app.errors import reason_of
from app.plugins.woocommerce.legacy.orders import NEWER_FIELDS, NEWER_ITEM_FIELDS, legacy_items
from app.plugins.woocommerce.legacy.schemas.records import LegacyMetadata, with_meta
from app.schemas.base import Base, excluding, list_response, request
from app.schemas.fields import output as fields
from app.schemas.fields.form import set_form
from app.schemas.fields.input import Integer
from app.schemas.fields.list_input import ItemArray
from app.schemas.orders import input as inputs
from app.schemas.orders import order as orders
from app.schemas.orders import refund as refunds
from app.schemas.orders.item_input import (
    MAX_ITEMS,
    LineItemCreate,
    item_array,
    item_update,
    too_large,
)

IDENTIFYING = {
    "line_items": "product_id",
    "shipping_lines": "method_id",
    "fee_lines": "title",
    "coupon_lines": "code",
}
"""For each list, the key that removes an item if its value is null."""

STATUS_PREFIX = "wc-"


def native_order(order: Mapping[str, object]) -> dict[str, object]:
    """Convert an order of a legacy client to the native form.

    A status may have the prefix ``wc-``. An item whose identifying key is null is removed, but a
    line without a product is shown with null, and stays if a client sends back what it has read.

    Args:
        order: parsed JSON, which is not modified.
    """
    native = dict(order)
    status = native.get("status")
    if isinstance(status, str):
        native["status"] = status.removeprefix(STATUS_PREFIX)
    for name, key in IDENTIFYING.items():
        if isinstance(items := native.get(name), list):
            native[name] = [_removed(item, key) for item in items]
    return native


def _removed(item: object, key: str) -> object:
    if not _is_null(item, key) or _is_read(item, key):
        return item
    return {"id": item["id"], "remove": True}


def _is_null(item: object, key: str) -> TypeGuard[Record]:
    """Return whether an item of an order has null as its identifying key."""
    return isinstance(item, dict) and bool(item.get("id")) and item.get(key, key) is None


def _is_read(item: Record, key: str) -> bool:
    """Return whether a client can have read a line without a product, and sends it back."""
    return key == IDENTIFYING["line_items"] and not item.keys() <= {"id", key}


class _LegacyOrder(Base):
    def load(self, data: Any, **kwargs: Any) -> Any:
        """Load an order of a legacy client in its native form."""
        return super().load(native_order(data) if isinstance(data, dict) else data, **kwargs)


class _Product(Integer):
    """ID of the product of a line. Null removes a line of a product, so it is kept."""

    def deserialize(self, value: object, *args: Any, **kwargs: Any) -> Any:
        return None if value is None else super().deserialize(value, *args, **kwargs)


class LegacyOrderCreate(_LegacyOrder, with_meta(inputs.OrderCreate, "order_meta")):  # type: ignore[misc] # created by a function
    """Fields of a new order in the legacy API."""


_LineUpdate = item_update(LineItemCreate, product_id=_Product("Product ID."))
set_form(_LineUpdate, {}, hidden=("product_id",))  # as the field that it replaces
_LINES = item_array(_LineUpdate, inputs.CHANGES_OF_LINES)
_Update = with_meta(inputs.OrderUpdate, "order_meta", line_items=_LINES)


class LegacyOrderUpdate(_LegacyOrder, _Update):  # type: ignore[misc, valid-type] # created by a function
    """Fields of an update of an order in the legacy API."""


LegacyOrderCreateRequest = request(LegacyOrderCreate, "order")
LegacyOrderUpdateRequest = request(LegacyOrderUpdate, "order")


class LegacyLineItemSchema(orders.LineItemSchema):
    """Line item of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["line_items"], "metadata")


class LegacyShippingLineSchema(orders.ShippingLineSchema):
    """Shipping line of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["shipping_lines"], "metadata")


class LegacyFeeLineSchema(orders.FeeLineSchema):
    """Fee line of an order in the legacy API."""

    Meta = excluding(*NEWER_ITEM_FIELDS["fee_lines"], "metadata")


class LegacyOrderSchema(orders.OrderSchema):
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

    Meta = excluding(*NEWER_FIELDS, "metadata", *fields.on_request(orders.OrderSchema))


ORDERS: dict[type[ma.Schema], type[ma.Schema]] = {
    inputs.OrderCreate: LegacyOrderCreate,
    inputs.OrderUpdate: LegacyOrderUpdate,
    inputs.OrderBulkItem: with_meta(inputs.OrderBulkItem, "order_meta", line_items=_LINES),
    inputs.OrderCreateRequest: LegacyOrderCreateRequest,
    inputs.OrderUpdateRequest: LegacyOrderUpdateRequest,
    orders.OrderSchema: LegacyOrderSchema,
    orders.DownloadList: list_response(orders.DownloadSchema, "downloads"),
}
"""Replacements for native schemas of orders."""


# --- refunds (records 5) ---


def _lines(items: list[dict[str, object]], *, of_v3: bool = False) -> list[dict[str, object]]:
    """Return refunded line items as line items with negative amounts; no shipping and fees.

    Args:
        of_v3: whether they have the ID of the item of the order, as text.
    """
    return [
        _line(item) | ({"refunded_item_id": str(item["id"])} if of_v3 else {})
        for item in items
        if item["list"] == "line_items"
    ]


def _line(item: Mapping[str, Any]) -> Record:
    total, tax = (f"{-Decimal(item[name]) + 0:.2f}" for name in ("total", "total_tax"))
    price = Decimal(item["total"]) / (item["quantity"] or 1)
    return {
        # Items that an earlier release wrote have no ID of their own.
        "id": item.get("item_id") or item["id"],
        "subtotal": total,
        "subtotal_tax": tax,
        "total": total,
        "total_tax": tax,
        "price": f"{price:.2f}",
        "quantity": -item["quantity"],
        "tax_class": item["tax_class"],
        "name": item["name"],
        "product_id": item.get("variation_id") or item["product_id"],
        "sku": item["sku"],
        "meta": [],
    }


class LegacyRefundedLineSchema(LegacyLineItemSchema):
    """Refunded line item in version 3."""

    refunded_item_id = fields.String("ID of the item of the order, as text.")


class LegacyOrderRefundSchema(refunds.OrderRefundSchema):
    """Refund in responses of the legacy API."""

    line_items = fields.Lines(LegacyLineItemSchema, wire=_lines)

    class Meta(Base.Meta):
        fields = ("id", "created_at", "amount", "reason", "line_items")


class LegacyOrderRefundV3Schema(LegacyOrderRefundSchema):
    """Refund in responses of version 3 of the legacy API."""

    line_items = fields.Lines(LegacyRefundedLineSchema, wire=partial(_lines, of_v3=True))


class LegacyRefundItemCreate(refunds.RefundItemCreate):
    """What is refunded of an item of the order, in the legacy API."""

    Meta = excluding("metadata")


class LegacyRefundItemArray(ItemArray):
    """Refunded items: the native list, or an object by the IDs of the items."""

    keeps_keys = True

    def __init__(self) -> None:
        super().__init__(
            LegacyRefundItemCreate,
            "Refunded items. Also an object: by the ID of an item its `qty`, `refund_total` and "
            "`refund_tax`.",
            limit=MAX_ITEMS,
            too_large=too_large,
        )

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, dict):
            value = [_native_item(item_id, item) for item_id, item in value.items()]
        return super().deserialize(value, *args, **kwargs)


def _native_item(item_id: str, item: object) -> object:
    if not isinstance(item, dict):
        return item
    native = {"id": item_id, **item}
    for old, new in (("qty", "quantity"), ("refund_total", "total"), ("refund_tax", "total_tax")):
        if old in item:
            native[new] = _sum(item[old]) if old == "refund_tax" else item[old]
    return native


def _sum(taxes: object) -> object:
    """Return the sum of the taxes by their rate, or a value that is no object unchanged."""
    parts = list(taxes.values()) if isinstance(taxes, dict) else taxes
    if not isinstance(parts, list):
        return parts
    try:
        return str(sum((numbers.money(part) or Decimal(0) for part in parts), Decimal(0)))
    except ValueError as error:
        raise ma.ValidationError({"line_items": [reason_of(error)]}) from error


class LegacyOrderRefundCreate(refunds.OrderRefundCreate):
    """Fields of a new refund in the legacy API."""

    line_items = LegacyRefundItemArray()

    Meta = excluding("metadata")


class LegacyOrderRefundUpdate(refunds.OrderRefundUpdate):
    """Fields of a refund that can be updated in the legacy API."""

    Meta = excluding("metadata")


REFUNDS: dict[type[ma.Schema], type[ma.Schema]] = {
    refunds.OrderRefundSchema: LegacyOrderRefundSchema,
    refunds.OrderRefundCreate: LegacyOrderRefundCreate,
    refunds.OrderRefundCreateRequest: request(LegacyOrderRefundCreate, "order_refund"),
    refunds.OrderRefundUpdateRequest: request(LegacyOrderRefundUpdate, "order_refund"),
}
"""Replacements for native schemas of refunds."""
