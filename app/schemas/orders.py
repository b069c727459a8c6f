"""The order and the download on the wire (decisions 7 and 8; spec 2.3)."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.schemas import fields, kinds
from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.envelope import Base


class LineItemSchema(Base):
    """What was bought."""

    id = fields.Identifier("Id of the line.")
    subtotal = fields.Amount("Before discounts, without tax.")
    subtotal_tax = fields.Amount("The tax on it.")
    total = fields.Amount("After discounts, without tax.")
    total_tax = fields.Amount("The tax on it.")
    price = fields.Amount("Of one piece.")
    quantity = fields.Number("How many pieces.")
    tax_class = fields.OptionalString("Class of tax, or null.")
    name = fields.String("Name of the product.")
    product_id = fields.OptionalIdentifier("Id of the product, or null.")
    sku = fields.OptionalString("Stock keeping unit, or null.")
    meta = ma.fields.List(ma.fields.Dict(), metadata={"description": "What else is known of it."})


class ShippingLineSchema(Base):
    """How it is sent."""

    id = fields.Identifier("Id of the line.")
    method_id = fields.String("Name of the method, for programs.")
    method_title = fields.String("Name of the method.")
    total = fields.Amount("What it costs, without tax.")


class TaxLineSchema(Base):
    """A tax."""

    id = fields.Identifier("Id of the line.")
    rate_id = fields.Identifier("Id of the rate.")
    code = fields.String("Code of the rate.")
    title = fields.String("Name of the rate.")
    total = fields.Amount("The tax.")
    compound = fields.Boolean("Whether it is reckoned on other taxes too.")


class FeeLineSchema(Base):
    """A fee."""

    id = fields.Identifier("Id of the line.")
    title = fields.String("Name of the fee.")
    tax_class = fields.OptionalString("Class of tax, or null.")
    total = fields.Amount("The fee, without tax.")
    total_tax = fields.Amount("The tax on it.")


class CouponLineSchema(Base):
    """A coupon that was used."""

    id = fields.Identifier("Id of the line.")
    code = fields.String("Code of the coupon.")
    amount = fields.Amount("How much it took off.")


class PaymentDetailsSchema(Base):
    """How it is paid."""

    method_id = fields.String("Name of the method, for programs.")
    method_title = fields.String("Name of the method.")
    paid = fields.Boolean("Whether it is paid.")


class CustomerId(fields.Output):
    """The account that ordered; 0 for a guest."""

    openapi = kinds.NUMBER
    wire = staticmethod(lambda value: value or 0)


class Quantity(fields.Output):
    """How many pieces the line items are, all together."""

    openapi = kinds.NUMBER

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

    id = fields.Identifier("Order id.")
    order_number = fields.String("The number that the customer knows.")
    order_key = fields.String("A secret of the customer and the shop.")
    created_at = fields.Timestamp("When it was placed, UTC.")
    updated_at = fields.Timestamp("When it was last changed, UTC.")
    completed_at = fields.OptionalTimestamp("When it was completed, UTC; null until then.")
    status = fields.String("A key of `GET /orders/statuses`.")
    currency = fields.String("Three-letter code.")
    total = fields.Amount("What is to be paid.")
    subtotal = fields.Amount("The line items before discounts, without tax.")
    total_line_items_quantity = Quantity(
        "How many pieces, all json_tuple.", attribute="line_items", dump_only=True
    )
    total_tax = fields.Amount("All taxes.")
    total_shipping = fields.Amount("Shipping, without tax.")
    cart_tax = fields.Amount("The tax on the line items and fees.")
    shipping_tax = fields.Amount("The tax on shipping.")
    total_discount = fields.Amount("What coupons took off.")
    shipping_methods = MethodTitles(
        "Names of the shipping methods, separated by commas.",
        attribute="shipping_lines",
        dump_only=True,
    )
    payment_details = fields.Part(PaymentDetailsSchema, prefix="payment_")
    billing_address = fields.Part(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Part(ShippingAddressSchema, prefix="shipping_")
    note = fields.String("What the customer wrote.")
    customer_ip = fields.String("Address from which it was placed.")
    customer_user_agent = fields.String("Browser with which it was placed.")
    customer_id = CustomerId("The account that ordered; 0 for a guest.")
    line_items = fields.Lines(LineItemSchema)
    shipping_lines = fields.Lines(ShippingLineSchema)
    tax_lines = fields.Lines(TaxLineSchema)
    fee_lines = fields.Lines(FeeLineSchema)
    coupon_lines = fields.Lines(CouponLineSchema)


class GuestCustomerSchema(Base):
    """Who ordered without an account: exactly these six keys (spec 2.3)."""

    id = fields.Number("Always 0.")
    email = fields.String("The billing e-mail address.")
    first_name = fields.String("First name of the billing address.")
    last_name = fields.String("Last name of the billing address.")
    billing_address = ma.fields.Nested(BillingAddressSchema)
    shipping_address = ma.fields.Nested(ShippingAddressSchema)


class OrderResponse(Base):
    """One order."""

    order = ma.fields.Nested(OrderSchema, required=True)


class OrderList(Base):
    """Orders."""

    orders = ma.fields.List(ma.fields.Nested(OrderSchema), required=True)


class OrderStatusList(Base):
    """The known order statuses and what they are called."""

    order_statuses = ma.fields.Dict(
        keys=ma.fields.String(), values=ma.fields.String(), required=True
    )


class Remaining(fields.Output):
    """How many downloads remain: digits, or empty when they are unlimited."""

    openapi = {"type": "string", "pattern": "^[0-9]*$"}
    wire = staticmethod(lambda value: "" if value is None else str(value))


class DownloadFileSchema(Base):
    """A file."""

    name = fields.String("Name of the file.")
    file = fields.String("Where the file is.")


class DownloadSchema(Base):
    """A file that a customer may download."""

    download_url = fields.String("Where the customer downloads it.")
    download_id = fields.String("Name of the file, for programs.")
    product_id = fields.Identifier("Id of the product.")
    download_name = fields.String("Name of the file.")
    order_id = fields.Identifier("Id of the order that it was bought with.")
    order_key = fields.String("Key of that order.")
    downloads_remaining = Remaining(
        "How often it can be downloaded: digits, or empty for any number."
    )
    access_expires = fields.OptionalTimestamp("When the permission ends, UTC, or null.")
    file = fields.Part(DownloadFileSchema, prefix="file_")


class DownloadList(Base):
    """Downloads in a list, as the legacy API has them (decisions 12)."""

    downloads = ma.fields.List(ma.fields.Nested(DownloadSchema), required=True)


class Downloads(Base):
    """Downloads by the id of their permission."""

    downloads = ma.fields.Dict(
        keys=ma.fields.String(), values=ma.fields.Nested(DownloadSchema), required=True
    )
