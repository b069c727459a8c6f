"""Input schemas of orders: the first field table of orders 2.

The schemas convert. ``app.services.orders.writes`` decides which orders are accepted. A key
that is not supplied is absent from the loaded data.
"""

from typing import Any

import marshmallow as ma

from app.schemas.base import (
    Base,
    bulk_request,
    bulk_response,
    request,
    update_schema,
)
from app.schemas.customers import BillingAddressCreate, ShippingAddressCreate
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields.form import FormField, set_form
from app.schemas.orders.item_input import (
    CouponLineCreate,
    DownloadPermissionCreate,
    FeeLineCreate,
    LineItemCreate,
    ShippingLineCreate,
    TaxLineCreate,
    item_array,
    item_update,
)
from app.schemas.orders.order import OrderSchema


class OrderNumber(inputs.Text):
    """Order number or order key: 1 to 191 characters."""

    openapi = json_schema.ORDER_NUMBER_IN

    def convert(self, value: object) -> str:
        text = super().convert(value)
        if not 1 <= len(text) <= 191:
            raise ValueError("must have 1 to 191 characters.")
        return text


class PaymentDetailsCreate(Base):
    """Payment details of an order."""

    method_id = inputs.Text("Identifier of the payment method.")
    method_title = inputs.Text("Title of the payment method.")
    paid = inputs.StrictTrue("Whether the order is paid.")


class OrderFields(Base):
    """Fields of an order on create and update, without its lists."""

    status = inputs.Text(
        "Order status. By default `pending`, or `processing` if the order is paid.",
        openapi=json_schema.KNOWN_ORDER_STATUS,
    )
    currency = inputs.Text(
        "Three letters. By default, the currency of the shop.", openapi=json_schema.CURRENCY_IN
    )
    customer_id = inputs.ExactInteger("ID of the customer account, 0 for a guest.")
    payment_details = inputs.InputPart(PaymentDetailsCreate)
    billing_address = inputs.InputPart(BillingAddressCreate)
    shipping_address = inputs.InputPart(ShippingAddressCreate)
    note = inputs.Text("Note from the customer.", openapi=json_schema.LONG_TEXT_IN)
    customer_ip = inputs.Text("IP address of the customer.")
    customer_user_agent = inputs.Text("User agent of the customer.")
    shipping_tax = inputs.AmountInput(
        "Tax on shipping. By default the sum of `total_tax` of the shipping lines."
    )
    transaction_id = inputs.Text("Number of the payment at the payment provider.")
    parent_id = inputs.ExactInteger("ID of the order to which this one belongs, 0 for none.")
    prices_include_tax = inputs.StrictTrue("Whether the prices of the shop included tax.")
    metadata = inputs.MetadataInput(inputs.METADATA)


set_form(
    OrderFields,
    {
        "Order": {
            "customer_id": FormField(
                "Customer number",
                kind="number",
                is_empty_zero=True,
                help="The number in the address of the customer's page. Empty for a guest.",
            ),
            "status": FormField(kind="select", values="order_statuses", help=""),
            "note": FormField("Customer's note", kind="textarea", help=""),
        }
    },
    hidden=(
        "currency",
        "customer_ip",
        "customer_user_agent",
        "shipping_tax",
        "transaction_id",
        "parent_id",
        "prices_include_tax",
        "payment_details",
    ),
)


class OrderCreate(OrderFields):
    """Fields of a new order. None is required; sums are computed."""

    created_at = inputs.TimestampInput("Time of the order, if it was placed elsewhere.")
    completed_at = inputs.TimestampInput("Completion time, if it was placed elsewhere.")
    paid_at = inputs.TimestampInput("Time of the payment, if it was paid for elsewhere.")
    created_via = inputs.Text("What created the order. By default `rest-api`.")
    order_number = OrderNumber("Order number. By default, the ID.")
    order_key = OrderNumber("Order key. No other order can have it. By default, a random key.")
    line_items = item_array(LineItemCreate, "Line items.")
    shipping_lines = item_array(ShippingLineCreate, "Shipping lines.")
    fee_lines = item_array(FeeLineCreate, "Fee lines.")
    tax_lines = item_array(TaxLineCreate, "Tax lines.")
    coupon_lines = item_array(CouponLineCreate, "Coupons used in the order.")
    download_permissions = item_array(
        DownloadPermissionCreate,
        "Files that the customer can download, as listed by `GET /customers/{id}/downloads`.",
    )


set_form(
    OrderCreate,
    {},
    hidden=("created_at", "completed_at", "paid_at", "created_via", "order_number", "order_key"),
)

_CHANGES = "An item with an `id` updates or removes that item. An item without an `id` is added."
CHANGES_OF_LINES = f"Changes of line items. {_CHANGES}"
_LISTS: dict[str, ma.fields.Field[Any]] = {
    "line_items": item_array(item_update(LineItemCreate), CHANGES_OF_LINES),
    "shipping_lines": item_array(
        item_update(ShippingLineCreate), f"Changes of shipping lines. {_CHANGES}"
    ),
    "fee_lines": item_array(item_update(FeeLineCreate), f"Changes of fee lines. {_CHANGES}"),
    "tax_lines": item_array(item_update(TaxLineCreate), f"Changes of tax lines. {_CHANGES}"),
    "coupon_lines": item_array(item_update(CouponLineCreate), f"Changes of coupons. {_CHANGES}"),
    "download_permissions": item_array(
        item_update(DownloadPermissionCreate),
        "Changes of download permissions. The `id` is the key under which the customer's downloads "
        f"show a permission. {_CHANGES}",
    ),
}
OrderUpdate = update_schema(OrderFields, "OrderUpdate", **_LISTS)
OrderBulkItem = update_schema(
    OrderCreate,
    "OrderBulkItem",
    id=inputs.RecordId("ID of the order to update. If absent or 0, an order is created."),
    **_LISTS,
)

OrderBulkResponse = bulk_response(OrderSchema, "orders")
OrderCreateRequest = request(OrderCreate, "order")

OrderUpdateRequest = request(OrderUpdate, "order")
OrderBulkRequest = bulk_request(OrderBulkItem, "orders")
