"""Refund schemas: the field table of records 2."""

import marshmallow as ma

from app.schemas.base import Base, list_response, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.list_input import ItemArray
from app.schemas.fields.query import IntegerParam
from app.schemas.orders.item_input import item_array
from app.schemas.queries import (
    CountQuery,
    LimitQuery,
    MetadataFilter,
    PageQuery,
    RecordQuery,
    Times,
)

_AMOUNT = "Refunded amount, taxes included."
_REASON = "Reason for the refund."
_ITEMS = "What was refunded of the items of the order."
_ITEM_ID = "ID of a line item, shipping line or fee line of the order."


class RefundItemSchema(Base):
    """What was refunded of an item of the order."""

    id = fields.Identifier(_ITEM_ID)
    quantity = fields.Number("Refunded quantity.")
    total = fields.Amount("Refunded amount of the item, without tax.")
    total_tax = fields.Amount("Refunded tax of the item.")
    metadata = fields.Metadata()


_ITEM_NAMES = ("id", "quantity", "total", "total_tax")


class OrderRefundSchema(Base):
    """Refund of an order."""

    id = fields.Identifier("Refund ID.")
    order_id = fields.Identifier("ID of the order.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")
    amount = fields.Amount(_AMOUNT)
    reason = fields.String(_REASON)
    refunded_by = fields.OptionalIdentifier(
        "ID of the user of the key. Null for a command, and after the user was deleted."
    )
    line_items = fields.Lines(  # what else is stored describes the items for other dialects
        RefundItemSchema,
        _ITEMS,
        wire=lambda items: [{name: item[name] for name in _ITEM_NAMES} for item in items],
    )
    metadata = fields.Metadata()


class RefundItemCreate(Base):
    """What is refunded of an item of the order."""

    id = inputs.Integer(_ITEM_ID, required=True)
    quantity = inputs.ExactInteger("Refunded quantity: at most what is left of it. By default 0.")
    total = inputs.AmountInput("Amount without tax: at most what is left of it. By default 0.00.")
    total_tax = inputs.AmountInput("Tax: at most what is left of it. By default 0.00.")
    metadata = inputs.MetadataInput(inputs.METADATA)


class OrderRefundCreate(Base):
    """Fields of a new refund. Without items, an amount is required."""

    amount = inputs.DecimalInput(
        "Refunded amount, above 0 and at most what is left of the total of the order. By default "
        "the sum of the refunded items with their taxes."
    )
    reason = inputs.Text(_REASON, openapi=json_schema.LONG_TEXT_IN)
    line_items: ItemArray = item_array(
        RefundItemCreate, "What is refunded of the items of the order."
    )
    metadata = inputs.MetadataInput(inputs.METADATA)


class OrderRefundUpdate(Base):
    """Fields of a refund that can be updated."""

    reason = inputs.Text(_REASON, openapi=json_schema.LONG_TEXT_IN, load_default=ma.missing)
    metadata = inputs.MetadataInput(inputs.METADATA)


class RefundFilter(Times, MetadataFilter):
    """Filter of refunds (records 2)."""

    order_id = IntegerParam("filter[order_id]", "Only refunds of this order.")


class RefundCountQuery(CountQuery, LimitQuery, RefundFilter):
    """Query of a count of refunds."""


class RefundListQuery(PageQuery, LimitQuery, RefundFilter, RecordQuery):
    """Query of a list of refunds."""


set_form(
    RefundItemCreate,
    {
        "Items": {
            "quantity": FormField(help=""),
            "total": FormField("Amount", help=""),
            "total_tax": FormField("Tax", help=""),
        }
    },
    hidden=("id",),
)
set_form(
    OrderRefundCreate,
    {
        "Amount": {
            "amount": FormField(help="If empty, the sum of the refunded items below."),
            "reason": FormField(help=""),
        }
    },
    hidden=("line_items",),
)

OrderRefundResponse = response(OrderRefundSchema, "order_refund")
OrderRefundList = list_response(OrderRefundSchema, "order_refunds")
OrderRefundCreateRequest = request(OrderRefundCreate, "order_refund")
OrderRefundUpdateRequest = request(OrderRefundUpdate, "order_refund")
