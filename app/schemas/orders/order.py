"""Order and download schemas (spec 2.3, decisions 7 and 8)."""

from collections.abc import Callable
from typing import Any

import marshmallow as ma

from app.schemas.base import Base, list_response, response
from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields


class LineMetaSchema(Base):
    """Additional attribute of a line item."""

    key = fields.String("Name of the attribute.")
    label = fields.String("Label of the attribute.")
    value = fields.String("Value of the attribute.")


class ItemTaxSchema(Base):
    """Part of the tax of an item that one tax rate causes."""

    id = fields.Number("ID of the tax rate.")
    total = fields.Amount("Tax on the total.")
    subtotal = fields.Amount("Tax on the subtotal.")


def _taxes() -> ma.fields.List[Any]:
    return fields.objects(ItemTaxSchema, "Taxes of the item by tax rate, as they were supplied.")


class LineItemSchema(Base):
    """Line item of an order."""

    id = fields.Identifier("Line ID.")
    subtotal = fields.Amount("Line total before discounts, without tax.")
    subtotal_tax = fields.Amount("Tax on the subtotal.")
    total = fields.Amount("Line total after discounts, without tax.")
    total_tax = fields.Amount("Tax on the total.")
    price = fields.Amount("Unit price.")
    quantity = fields.Number("Quantity.")
    tax_class = fields.OptionalString("Tax class, or null.")
    name = fields.String("Product name.")
    product_id = fields.OptionalIdentifier("Product ID, or null.")
    sku = fields.OptionalString("Stock keeping unit, or null.")
    meta = fields.objects(LineMetaSchema, "Additional attributes of the line.")
    variation_id = fields.Number("ID of the variation of the product, or 0.")
    taxes = _taxes()
    metadata = fields.Metadata()


class ShippingLineSchema(Base):
    """Shipping line of an order."""

    id = fields.Identifier("Line ID.")
    method_id = fields.String("Identifier of the shipping method.")
    method_title = fields.String("Title of the shipping method.")
    total = fields.Amount("Shipping cost, without tax.")
    total_tax = fields.Amount("Tax on the shipping cost.")
    instance_id = fields.String("ID of the shipping method in its zone.")
    taxes = _taxes()
    metadata = fields.Metadata()


class TaxLineSchema(Base):
    """Tax line of an order."""

    id = fields.Identifier("Line ID.")
    rate_id = fields.Number("ID of the tax rate.")
    code = fields.String("Code of the tax rate.")
    title = fields.String("Title of the tax rate.")
    total = fields.Amount("Tax amount.")
    compound = fields.Boolean("Whether the tax is compounded on other taxes.")
    metadata = fields.Metadata()


class FeeLineSchema(Base):
    """Fee line of an order."""

    id = fields.Identifier("Line ID.")
    title = fields.String("Title of the fee.")
    tax_class = fields.OptionalString("Tax class, or null.")
    total = fields.Amount("Fee amount, without tax.")
    total_tax = fields.Amount("Tax on the fee.")
    taxes = _taxes()
    metadata = fields.Metadata()


class CouponLineSchema(Base):
    """Coupon used in an order."""

    id = fields.Identifier("Line ID.")
    code = fields.String("Coupon code.")
    amount = fields.Amount("Discount amount.")
    metadata = fields.Metadata()


class PaymentDetailsSchema(Base):
    """Payment details of an order."""

    method_id = fields.String("Identifier of the payment method.")
    method_title = fields.String("Title of the payment method.")
    paid = fields.Boolean("Whether the order is paid.")


class OptionalId(fields.Output):
    """ID of another record, 0 for none."""

    openapi = json_schema.NUMBER
    wire = staticmethod(lambda value: value or 0)


def _completed(**defaults: object) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return a function that adds the newest keys to lines that an earlier release wrote."""
    return lambda lines: [line if "taxes" in line else line | defaults for line in lines]


_REFUNDS: json_schema.Schema = {
    "type": "array",
    "items": {
        json_schema.COMPONENT: "OrderRefundSummary",
        "description": "Refund of an order, in short.",
        "type": "object",
        "properties": {
            "id": {"type": "integer", "format": "int64", "description": "Refund ID."},
            "reason": {"type": "string", "description": "Reason for the refund."},
            "total": {"type": "string", "description": "Amount, negative."},
        },
        "required": ["id", "reason", "total"],
    },
}


class OrderSchema(Base):
    """Order in a response.

    Every view that responds with this schema also returns the order extensions, with ``customer``
    as the last key (spec 2.3).
    """

    id = fields.Identifier("Order ID.")
    order_number = fields.String("Order number shown to the customer.")
    order_key = fields.String("Secret key shared by the customer and the shop.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")
    completed_at = fields.OptionalTimestamp(
        "Completion time, in UTC. Null until the order is completed."
    )
    status = fields.String("Order status: a key of `GET /orders/statuses`.")
    currency = fields.String("Three-letter currency code.")
    total = fields.Amount("Order total.")
    subtotal = fields.Amount("Sum of the line subtotals, before discounts and without tax.")
    total_line_items_quantity = fields.Number(
        "Total quantity of all line items.",
        attribute="line_items",
        dump_only=True,
        wire=lambda lines: sum([line.get("quantity", 0) for line in lines]),
    )
    total_tax = fields.Amount("Sum of all taxes.")
    total_shipping = fields.Amount("Shipping total, without tax.")
    cart_tax = fields.Amount("Tax on line items and fees.")
    shipping_tax = fields.Amount("Tax on shipping.")
    total_discount = fields.Amount("Total discount.")
    shipping_methods = fields.String(
        "Titles of the shipping methods, separated by commas.",
        attribute="shipping_lines",
        dump_only=True,
        wire=lambda lines: ", ".join([line.get("method_title", "") for line in lines]),
    )
    payment_details = fields.Composite(PaymentDetailsSchema, prefix="payment_")
    billing_address = fields.Composite(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Composite(ShippingAddressSchema, prefix="shipping_")
    note = fields.String("Note from the customer.")
    customer_ip = fields.String("IP address of the customer.")
    customer_user_agent = fields.String("User agent of the customer.")
    customer_id = OptionalId("ID of the customer account, 0 for a guest.")
    line_items = fields.Lines(
        LineItemSchema, "Products that were ordered.", wire=_completed(variation_id=0, taxes=[])
    )
    shipping_lines = fields.Lines(
        ShippingLineSchema,
        "Shipping methods.",
        wire=_completed(total_tax="0.00", instance_id="", taxes=[]),
    )
    tax_lines = fields.Lines(TaxLineSchema, "Taxes by rate, as they were supplied.")
    fee_lines = fields.Lines(FeeLineSchema, "Fees.", wire=_completed(taxes=[]))
    coupon_lines = fields.Lines(CouponLineSchema, "Coupons of the order.")
    transaction_id = fields.String("Number of the payment at the payment provider.")
    paid_at = fields.OptionalTimestamp("Time of the payment, in UTC, or null.")
    created_via = fields.String("What created the order.")
    parent_id = OptionalId("ID of the order to which this one belongs, or 0.")
    prices_include_tax = fields.Boolean("Whether the prices of the shop included tax.")
    discount_tax = fields.Amount("Tax that the discounts of the line items saved.")
    cart_hash = fields.String("Hash of the cart in the shop that the order was imported from.")
    version = fields.String("Version of the shop that the order was imported from.")
    total_refunded = fields.OnRequest(
        "Sum of the refunds. Only if `fields` names it.",
        name="total_refunded",
        openapi=json_schema.AMOUNT,
    )
    refunds = fields.OnRequest(
        "Refunds, oldest first. Only if `fields` names it.", name="refunds", openapi=_REFUNDS
    )
    erased_at = fields.OptionalTimestamp(
        "Time when the personal data was erased, in UTC, or null. Only if `fields` names it.",
        on_request=True,
    )
    metadata = fields.Metadata()


class GuestCustomerSchema(Base):
    """Customer of a guest order: exactly six keys (spec 2.3)."""

    id = fields.Output(
        "Always 0, which distinguishes a guest from a customer account.",
        openapi={"type": "integer", "const": 0},
    )
    email = fields.String("Billing e-mail address.")
    first_name = fields.String("Billing first name.")
    last_name = fields.String("Billing last name.")
    billing_address = ma.fields.Nested(BillingAddressSchema, required=True)
    shipping_address = ma.fields.Nested(ShippingAddressSchema, required=True)


OrderResponse = response(OrderSchema, "order")
OrderList = list_response(OrderSchema, "orders")


class TrashedOrderSchema(OrderSchema):
    """Order in the trash, with the status that it had."""

    trashed_at = fields.Timestamp("Time when the order was moved to the trash, in UTC.")


TrashedOrderList = list_response(TrashedOrderSchema, "orders")


class OrderStatusList(Base):
    """Labels of the known order statuses by status."""

    order_statuses = fields.by_name()


class DownloadFileSchema(Base):
    """Downloadable file."""

    name = fields.String("File name.")
    file = fields.String("URL of the file.")


class DownloadSchema(Base):
    """Download available to a customer."""

    download_url = fields.String("URL from which the customer downloads the file.")
    download_id = fields.String("Identifier of the downloadable file.")
    product_id = fields.Number("Product ID.")
    download_name = fields.String("Name of the download.")
    order_id = fields.Identifier("ID of the order.")
    order_key = fields.String("Key of the order.")
    downloads_remaining = fields.Output(
        "Number of remaining downloads as digits. Empty means unlimited.",
        openapi={"type": "string", "pattern": "^[0-9]*$"},
        wire=lambda value: "" if value is None else str(value),
    )
    access_expires = fields.OptionalTimestamp("Time when access expires, in UTC, or null.")
    file = fields.Composite(DownloadFileSchema, prefix="file_")


class DownloadList(Base):
    """Downloads by the ID of their permission."""

    downloads = fields.by_name(of=DownloadSchema)
