"""The order and the download on the wire (decisions 7 and 8; spec 2.3)."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.schemas import fields
from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.envelope import Base


class LineItemSchema(Base):
    """What was bought."""

    id = fields.Identifier()
    subtotal = fields.Amount()
    subtotal_tax = fields.Amount()
    total = fields.Amount()
    total_tax = fields.Amount()
    price = fields.Amount()
    quantity = fields.Number()
    tax_class = fields.OptionalWords()
    name = fields.Words()
    product_id = fields.OptionalIdentifier()
    sku = fields.OptionalWords()
    meta = ma.fields.List(ma.fields.Dict())


class ShippingLineSchema(Base):
    """How it is sent."""

    id = fields.Identifier()
    method_id = fields.Words()
    method_title = fields.Words()
    total = fields.Amount()


class TaxLineSchema(Base):
    """A tax."""

    id = fields.Identifier()
    rate_id = fields.Identifier()
    code = fields.Words()
    title = fields.Words()
    total = fields.Amount()
    compound = fields.Flag()


class FeeLineSchema(Base):
    """A fee."""

    id = fields.Identifier()
    title = fields.Words()
    tax_class = fields.OptionalWords()
    total = fields.Amount()
    total_tax = fields.Amount()


class CouponLineSchema(Base):
    """A coupon that was used."""

    id = fields.Identifier()
    code = fields.Words()
    amount = fields.Amount()


class PaymentDetailsSchema(Base):
    """How it is paid."""

    method_id = fields.Words()
    method_title = fields.Words()
    paid = fields.Flag()


class CustomerId(fields.Output):
    """The account that ordered; 0 for a guest."""

    openapi = {"type": "integer", "minimum": 0}
    wire = staticmethod(lambda value: value or 0)


class Quantity(fields.Output):
    """How many pieces the line items are, all together."""

    openapi = {"type": "integer", "minimum": 0}

    @staticmethod
    def wire(line_items: list[dict[str, Any]]) -> int:
        """Return the sum of the quantities."""
        return sum(line.get("quantity", 0) for line in line_items)


class MethodTitles(fields.Output):
    """The names of the shipping methods, separated by commas."""

    openapi = {"type": "string"}

    @staticmethod
    def wire(shipping_lines: list[dict[str, Any]]) -> str:
        """Return the titles."""
        return ", ".join(line.get("method_title", "") for line in shipping_lines)


class OrderSchema(Base):
    """An order as it is read.

    Whoever answers with this schema gets the order extensions too, ``customer`` as the last key.
    """

    id = fields.Identifier()
    order_number = fields.Words()
    order_key = fields.Words()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    completed_at = fields.OptionalMoment()
    status = fields.Words()
    currency = fields.Words()
    total = fields.Amount()
    subtotal = fields.Amount()
    total_line_items_quantity = Quantity(attribute="line_items", dump_only=True)
    total_tax = fields.Amount()
    total_shipping = fields.Amount()
    cart_tax = fields.Amount()
    shipping_tax = fields.Amount()
    total_discount = fields.Amount()
    shipping_methods = MethodTitles(attribute="shipping_lines", dump_only=True)
    payment_details = fields.Part(PaymentDetailsSchema, prefix="payment_")
    billing_address = fields.Part(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Part(ShippingAddressSchema, prefix="shipping_")
    note = fields.Words()
    customer_ip = fields.Words()
    customer_user_agent = fields.Words()
    customer_id = CustomerId()
    line_items = fields.Lines(LineItemSchema)
    shipping_lines = fields.Lines(ShippingLineSchema)
    tax_lines = fields.Lines(TaxLineSchema)
    fee_lines = fields.Lines(FeeLineSchema)
    coupon_lines = fields.Lines(CouponLineSchema)


class GuestSchema(Base):
    """Who ordered without an account: exactly these six keys (spec 2.3)."""

    id = fields.Identifier()
    email = fields.Words()
    first_name = fields.Words()
    last_name = fields.Words()
    billing_address = ma.fields.Nested(BillingAddressSchema)
    shipping_address = ma.fields.Nested(ShippingAddressSchema)


class OrderEnvelope(Base):
    """One order."""

    order = ma.fields.Nested(OrderSchema, required=True)


class OrderList(Base):
    """Orders."""

    orders = ma.fields.List(ma.fields.Nested(OrderSchema), required=True)


class OrderStatuses(Base):
    """The known order statuses and what they are called."""

    order_statuses = ma.fields.Dict(
        keys=ma.fields.String(), values=ma.fields.String(), required=True
    )


class Remaining(fields.Output):
    """How many downloads remain: digits, or empty when they are unlimited."""

    openapi = {"type": "string", "pattern": "^[0-9]*$"}
    wire = staticmethod(lambda value: "" if value is None else str(value))


class FileSchema(Base):
    """A file."""

    name = fields.Words()
    file = fields.Words()


class DownloadSchema(Base):
    """A file that a customer may download."""

    download_url = fields.Words()
    download_id = fields.Words()
    product_id = fields.Identifier()
    download_name = fields.Words()
    order_id = fields.Identifier()
    order_key = fields.Words()
    downloads_remaining = Remaining()
    access_expires = fields.OptionalMoment()
    file = fields.Part(FileSchema, prefix="file_")


class Downloads(Base):
    """Downloads by the id of their permission."""

    downloads = ma.fields.Dict(
        keys=ma.fields.String(), values=ma.fields.Nested(DownloadSchema), required=True
    )
