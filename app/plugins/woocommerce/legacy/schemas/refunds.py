"""Refunds in the legacy API (records 5)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.conversions import numbers
from app.plugins.woocommerce.legacy.schemas.orders import LegacyLineItemSchema
from app.schemas.base import Base, excluding, request
from app.schemas.fields import output as fields
from app.schemas.fields.list_input import ItemArray
from app.schemas.orders.item_input import MAX_ITEMS, too_large
from app.schemas.orders.refund import (
    OrderRefundCreate,
    OrderRefundCreateRequest,
    OrderRefundSchema,
    OrderRefundUpdate,
    OrderRefundUpdateRequest,
    RefundItemCreate,
)


def _lines(items: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return refunded line items as line items with negative amounts; no shipping and fees."""
    return [_line(item) for item in items if item["list"] == "line_items"]


def _lines_of_v3(items: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the same with the ID of the item of the order, as text."""
    return [
        _line(item) | {"refunded_item_id": str(item["id"])}
        for item in items
        if item["list"] == "line_items"
    ]


def _line(item: Mapping[str, Any]) -> dict[str, Any]:
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


class LegacyOrderRefundSchema(OrderRefundSchema):
    """Refund in responses of the legacy API."""

    line_items = fields.Lines(LegacyLineItemSchema, wire=_lines)

    class Meta(Base.Meta):
        fields = ("id", "created_at", "amount", "reason", "line_items")


class LegacyOrderRefundV3Schema(LegacyOrderRefundSchema):
    """Refund in responses of version 3 of the legacy API."""

    line_items = fields.Lines(LegacyRefundedLineSchema, wire=_lines_of_v3)


class LegacyRefundItemCreate(RefundItemCreate):
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
        raise ma.ValidationError({"line_items": [str(error)]}) from error


class LegacyOrderRefundCreate(OrderRefundCreate):
    """Fields of a new refund in the legacy API."""

    line_items = LegacyRefundItemArray()

    Meta = excluding("metadata")


class LegacyOrderRefundUpdate(OrderRefundUpdate):
    """Fields of a refund that can be updated in the legacy API."""

    Meta = excluding("metadata")


REFUNDS: dict[type[ma.Schema], type[ma.Schema]] = {
    OrderRefundSchema: LegacyOrderRefundSchema,
    OrderRefundCreate: LegacyOrderRefundCreate,
    OrderRefundCreateRequest: request(LegacyOrderRefundCreate, "order_refund"),
    OrderRefundUpdateRequest: request(LegacyOrderRefundUpdate, "order_refund"),
}
"""Replacements for native schemas of refunds."""
