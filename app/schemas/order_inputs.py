"""Input schemas of orders: the field tables of orders 2.

What converts is here; which items are accepted is decided by ``app.services.order_items``. A key
that is not supplied is absent from the loaded data.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import marshmallow as ma

from app import numbers
from app.schemas import inputs, kinds
from app.schemas.customers import BillingAddressInput, ShippingAddressInput
from app.schemas.envelope import Base, BulkFailure, Wrapped, WrappedItems, update_schema
from app.schemas.fields import either
from app.schemas.orders import OrderSchema

MAX_ITEMS = 1000
"""Items in one list (orders 9)."""

_TAX_CLASS = "Tax class."
_TOTAL_TAX = "Tax on the total."


class OrderStatus(inputs.Text):
    """Name of an order status; which ones are known, only the app knows."""

    openapi = kinds.KNOWN_ORDER_STATUS


class Currency(inputs.Text):
    """Currency code."""

    openapi = kinds.CURRENCY_IN


class CustomerId(inputs.Input):
    """ID of an account, 0 for a guest. Text must be a number (orders 9)."""

    openapi = kinds.CUSTOMER_ID_IN

    def convert(self, value: Any) -> int:
        """Return the ID, whether or not it identifies an account."""
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if not is_number and not (
            isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]+\s*", value, re.ASCII)
        ):
            raise ValueError("must be an integer.")
        return numbers.integer(value)


class OrderNumber(inputs.Text):
    """Order number or order key: 1 to 191 characters."""

    openapi = kinds.ORDER_NUMBER_IN

    def convert(self, value: Any) -> str:
        """Return the text."""
        text = super().convert(value)
        if not 1 <= len(text) <= 191:
            raise ValueError("must have 1 to 191 characters.")
        return text


class ItemId(inputs.Input):
    """ID of an item of the order. Absent, 0 or empty adds an item."""

    openapi = kinds.ITEM_ID_IN

    def convert(self, value: Any) -> Any:
        """Return the ID; an item without one is new."""
        number = numbers.int_if_integral(value)
        if isinstance(number, str) and re.fullmatch("[0-9]{0,4000}", number, re.ASCII):
            number = int(number or 0)
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("must be an integer.")
        return number or ma.missing


class Quantity(inputs.Input):
    """Quantity of a line item. Exactly the number 0 removes an item that has an ID (orders 9)."""

    openapi = kinds.QUANTITY_IN

    def convert(self, value: Any) -> int:
        """Return the quantity; 0 only for the number 0, -1 for what else is no quantity."""
        number = numbers.integer(value)
        is_zero = isinstance(value, int | Decimal) and not isinstance(value, bool) and value == 0
        return number if number > 0 or is_zero else -1


class UnitPrice(inputs.Input):
    """Price per unit, exact up to six decimals (orders 9); empty text is not supplied."""

    openapi = kinds.AMOUNT_IN

    def convert(self, value: Any) -> Decimal | None:
        """Return the price, rounded half up to six decimals."""
        if numbers.money(value) is None:
            return None
        exact = Decimal(value.strip() if isinstance(value, str) else value)
        return exact.quantize(Decimal("0.000001"), ROUND_HALF_UP) if exact else Decimal(0)


class LineMetaInput(Base):
    """Additional attribute of a line item."""

    key = inputs.Text("Name of the attribute.")
    label = inputs.Text("Label of the attribute.")
    value = inputs.Text("Value of the attribute.")


class LineItemInput(Base):
    """Line item of a new order. A price, a subtotal or a total is required."""

    product_id = inputs.Integer("Product ID.")
    sku = inputs.Text("Stock keeping unit.")
    name = inputs.Text("Product name.")
    quantity = Quantity("Quantity, at least 1.")
    price = UnitPrice("Unit price before discounts, exact up to 6 decimals.")
    subtotal = inputs.DecimalInput(
        "Line total before discounts. By default the price times the quantity."
    )
    total = inputs.DecimalInput("Line total after discounts. By default the subtotal less them.")
    subtotal_tax = inputs.Amount("Tax on the subtotal.")
    total_tax = inputs.Amount(_TOTAL_TAX)
    tax_class = inputs.Text(_TAX_CLASS)
    product_category_ids = inputs.IdArray("IDs of the categories of the product.")
    on_sale = inputs.StrictTrue("Whether the product was on sale.")
    meta = inputs.ItemArray(
        LineMetaInput, "Additional attributes.", limit=MAX_ITEMS,
        too_large="shop_api_order_too_large",
    )  # fmt: skip


class ShippingLineInput(Base):
    """Shipping line of a new order."""

    method_id = inputs.Text("Identifier of the shipping method. Required.")
    method_title = inputs.Text("Title of the shipping method.")
    total = inputs.Amount("Shipping cost, without tax. Not negative.")


class FeeLineInput(Base):
    """Fee line of a new order."""

    title = inputs.Text("Title of the fee. Required.")
    total = inputs.Amount("Fee amount, without tax. Can be negative.")
    total_tax = inputs.Amount("Tax on the fee.")
    tax_class = inputs.Text(_TAX_CLASS)


class TaxLineInput(Base):
    """Tax line of a new order. It is not included in any sum."""

    rate_id = inputs.Integer("ID of the tax rate.")
    code = inputs.Text("Code of the tax rate.")
    title = inputs.Text("Title of the tax rate.")
    total = inputs.Amount("Tax amount.")
    compound = inputs.StrictTrue("Whether the tax is compounded on other taxes.")


class CouponLineInput(Base):
    """Coupon used in a new order."""

    code = inputs.Code("Coupon code. Required.")
    amount = inputs.DecimalInput(
        "Discount amount, recorded as it is. Without an amount, the coupon is applied."
    )


def _items(item: type[Base], meaning: str) -> inputs.ItemArray:
    return inputs.ItemArray(item, meaning, limit=MAX_ITEMS, too_large="shop_api_order_too_large")


def _changed(item: type[Base]) -> type[Base]:
    """Return the schema of an item in an update, which can name an item of the order."""
    return update_schema(
        item,
        item.__name__.replace("Input", "Update"),
        id=ItemId("ID of the item to update. If absent or 0, an item is added."),
        remove=inputs.StrictTrue("`true` removes the item."),
    )


class Remaining(inputs.Input):
    """Number of remaining downloads. Empty text means unlimited."""

    openapi = kinds.REMAINING_IN

    def convert(self, value: Any) -> int | None:
        """Return the number; None means unlimited."""
        number = numbers.int_if_integral(value)
        if isinstance(number, str):
            if not number.strip():
                return None
            if not re.fullmatch(r"\s*-?[0-9]+\s*", number, re.ASCII):
                raise ValueError("must be an integer.")
        elif isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("must be an integer.")
        return numbers.integer(number)


class DownloadFileInput(Base):
    """Downloadable file."""

    name = inputs.Text("File name.")
    file = inputs.Text("URL of the file.")


class DownloadPermissionInput(Base):
    """Permission of the customer to download a file.

    A product ID, a download ID or a download URL is required.
    """

    product_id = inputs.Integer("Product ID.")
    download_id = inputs.Text("Identifier of the downloadable file.")
    download_name = inputs.Text("Name of the download.")
    download_url = inputs.Text("URL from which the customer downloads the file.")
    file = inputs.InputPart(DownloadFileInput)
    downloads_remaining = Remaining(
        "Number of remaining downloads. Empty means unlimited. With 0, the download is not offered."
    )
    access_expires = inputs.Timestamp("Time when access expires. Empty means never.")


class PaymentDetailsInput(Base):
    """Payment details of an order."""

    method_id = inputs.Text("Identifier of the payment method.")
    method_title = inputs.Text("Title of the payment method.")
    paid = inputs.StrictTrue("Whether the order is paid.")


class OrderFields(Base):
    """Fields that an order has on create and update, but its lists."""

    status = OrderStatus(
        "Order status. By default `pending`, or `processing` if the order is paid."
    )
    currency = Currency("Three letters. By default the currency of the shop.")
    customer_id = CustomerId("ID of the customer account, 0 for a guest.")
    payment_details = inputs.InputPart(PaymentDetailsInput)
    billing_address = inputs.InputPart(BillingAddressInput)
    shipping_address = inputs.InputPart(ShippingAddressInput)
    note = inputs.Text("Note from the customer.")
    customer_ip = inputs.Text("IP address of the customer.")
    customer_user_agent = inputs.Text("User agent of the customer.")
    shipping_tax = inputs.Amount("Tax on shipping.")


class OrderCreate(OrderFields):
    """Fields of a new order. None is required; sums are computed."""

    created_at = inputs.Timestamp("Time of the order, if it was placed elsewhere.")
    completed_at = inputs.Timestamp("Completion time, if it was placed elsewhere.")
    order_number = OrderNumber("Order number. By default the ID.")
    order_key = OrderNumber("Order key. No other order can have it. By default a random key.")
    line_items = _items(LineItemInput, "Line items.")
    shipping_lines = _items(ShippingLineInput, "Shipping lines.")
    fee_lines = _items(FeeLineInput, "Fee lines.")
    tax_lines = _items(TaxLineInput, "Tax lines.")
    coupon_lines = _items(CouponLineInput, "Coupons used in the order.")
    download_permissions = _items(
        DownloadPermissionInput,
        "What the customer can download. Shown by the customer's downloads.",
    )


_CHANGES = "An item with an `id` updates or removes that item. An item without an `id` is added."
_LISTS: dict[str, ma.fields.Field[Any]] = {
    "line_items": _items(_changed(LineItemInput), f"Changes of line items. {_CHANGES}"),
    "shipping_lines": _items(_changed(ShippingLineInput), f"Changes of shipping lines. {_CHANGES}"),
    "fee_lines": _items(_changed(FeeLineInput), f"Changes of fee lines. {_CHANGES}"),
    "tax_lines": _items(_changed(TaxLineInput), f"Changes of tax lines. {_CHANGES}"),
    "coupon_lines": _items(_changed(CouponLineInput), f"Changes of coupons. {_CHANGES}"),
    "download_permissions": _items(
        _changed(DownloadPermissionInput),
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


class OrderBulkResponse(Base):
    """Results of a bulk request, in the order of its items."""

    orders = ma.fields.List(either(BulkFailure, OrderSchema), required=True)


class OrderCreateRequest(Base):
    """Request that creates an order."""

    order = Wrapped(OrderCreate, missing_code="shop_api_missing_order_data")


class OrderUpdateRequest(Base):
    """Request that updates an order."""

    order = Wrapped(OrderUpdate, missing_code="shop_api_missing_order_data")


class OrderBulkRequest(Base):
    """Request that creates and updates orders in bulk."""

    orders = WrappedItems(OrderBulkItem, missing_code="shop_api_missing_orders_data")
