"""Input schemas of the items of orders: the second field table of orders 2."""

import re
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

import marshmallow as ma

from app.conversions import numbers
from app.errors import ShopError
from app.schemas.base import Base, update_schema
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import list_input as list_inputs
from app.schemas.fields.form import FormField, set_form

MAX_ITEMS = 1000
"""Items in one list (orders 9)."""

too_large = partial(ShopError, "shop_api_order_too_large")

_TAX_CLASS = "Tax class."
_TOTAL_TAX = "Tax on the total."


class ItemIdInput(inputs.Input):
    """ID of an item of the order. Absent, 0 or empty adds an item."""

    openapi = json_schema.IDENTIFIER_IN

    def convert(self, value: object) -> object:
        """Return the ID, or ``missing`` for a new item, or raise ValueError."""
        number = numbers.int_if_integral(value)
        if isinstance(number, str) and re.fullmatch("[0-9]{0,4000}", number, re.ASCII):
            number = int(number or 0)
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("must be an integer.")
        return number or ma.missing


class ItemQuantity(inputs.Input):
    """Quantity of a line item. Exactly the number 0 removes an item that has an ID (orders 9)."""

    openapi = json_schema.QUANTITY_IN

    def convert(self, value: object) -> int:
        """Return the quantity: 0 only for the number 0, and -1 for any other invalid value."""
        number = numbers.exact_integer(value)
        is_zero = isinstance(value, int | Decimal) and not isinstance(value, bool) and value == 0
        return number if number > 0 or is_zero else -1


class UnitPrice(inputs.Input):
    """Price per unit, exact up to six decimals (orders 9); empty text is not supplied."""

    openapi = json_schema.PRICE_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> Decimal | None:
        if numbers.money(value) is None:
            return None
        exact = Decimal(value.strip() if isinstance(value, str) else value)
        return exact.quantize(Decimal("0.000001"), ROUND_HALF_UP) if exact else Decimal(0)


class LineMetaCreate(Base):
    """Additional attribute of a line item."""

    key = inputs.Text("Name of the attribute.")
    label = inputs.Text("Label of the attribute.")
    value = inputs.Text("Value of the attribute.")


_EMPTY_META = dict.fromkeys(LineMetaCreate().fields, "")


class LineMetaArray(list_inputs.ItemArray):
    """Additional attributes of a line item, each with all keys."""

    def __init__(self) -> None:
        super().__init__(
            LineMetaCreate,
            "Additional attributes.",
            limit=MAX_ITEMS,
            too_large=too_large,
        )

    def deserialize(self, *args: Any, **kwargs: Any) -> Any:
        loaded = super().deserialize(*args, **kwargs)
        return [_EMPTY_META | item for item in loaded] if isinstance(loaded, list) else loaded


class ItemTaxCreate(Base):
    """Part of the tax of an item that one tax rate causes."""

    id = inputs.Integer("ID of the tax rate.")
    total = inputs.AmountInput("Tax on the total.")
    subtotal = inputs.AmountInput("Tax on the subtotal.")


class ItemTaxArray(list_inputs.ItemArray):
    """Taxes of an item, by tax rate, stored as they are shown."""

    def __init__(self) -> None:
        super().__init__(
            ItemTaxCreate,
            "Taxes of the item by tax rate, recorded as they are. They replace the earlier ones.",
            limit=MAX_ITEMS,
            too_large=too_large,
        )

    def deserialize(self, *args: Any, **kwargs: Any) -> Any:
        """Return the taxes as responses contain them. A key that is not supplied is 0."""
        loaded = super().deserialize(*args, **kwargs)
        if not isinstance(loaded, list):
            return loaded
        return [
            {"id": tax.get("id", 0)}
            | {name: f"{tax.get(name) or 0:.2f}" for name in ("total", "subtotal")}
            for tax in loaded
        ]


class LineItemCreate(Base):
    """Line item of a new order. A price, a subtotal or a total is required.

    It is not required if a plugin of the shop knows the price of the product.
    """

    product_id = inputs.Integer("Product ID.")
    sku = inputs.Text("Stock keeping unit.")
    name = inputs.Text("Product name.")
    quantity = ItemQuantity("Quantity, at least 1.")
    price = UnitPrice("Unit price before discounts, exact up to 6 decimals.")
    subtotal = inputs.DecimalInput(
        "Line total before discounts. By default the price multiplied by the quantity."
    )
    total = inputs.DecimalInput(
        "Line total after discounts. By default the subtotal less the discounts."
    )
    subtotal_tax = inputs.AmountInput("Tax on the subtotal.")
    total_tax = inputs.AmountInput(_TOTAL_TAX)
    tax_class = inputs.Text(_TAX_CLASS)
    product_category_ids = list_inputs.IdArray("IDs of the categories of the product.")
    on_sale = inputs.StrictTrue("Whether the product was on sale.")
    meta = LineMetaArray()
    variation_id = inputs.Integer("ID of the variation of the product.")
    taxes = ItemTaxArray()
    metadata = inputs.MetadataInput(inputs.METADATA)


set_form(
    LineItemCreate,
    {
        "Items": {
            "name": FormField(help=""),
            "sku": FormField("SKU", help=""),
            "quantity": FormField(kind="number", help=""),
            "price": FormField(kind="amount", help=""),
            "total": FormField("Total", kind="amount", help=""),
        }
    },
    hidden=(
        "product_id",
        "subtotal",
        "subtotal_tax",
        "total_tax",
        "tax_class",
        "product_category_ids",
        "on_sale",
        "variation_id",
    ),
)


class ShippingLineCreate(Base):
    """Shipping line of a new order."""

    method_id = inputs.Text("Identifier of the shipping method.", required=True)
    method_title = inputs.Text("Title of the shipping method.")
    total = inputs.AmountInput("Shipping cost, without tax. Not negative.")
    total_tax = inputs.AmountInput("Tax on the shipping cost.")
    instance_id = inputs.Text("ID of the shipping method in its zone.")
    taxes = ItemTaxArray()
    metadata = inputs.MetadataInput(inputs.METADATA)


set_form(
    ShippingLineCreate,
    {
        "Shipping": {
            "method_title": FormField("Shipping method", help=""),
            "total": FormField("Shipping cost", kind="amount", help=""),
        }
    },
    hidden=("method_id", "total_tax", "instance_id"),
)


class FeeLineCreate(Base):
    """Fee line of a new order."""

    title = inputs.Text("Title of the fee.", required=True)
    total = inputs.AmountInput("Fee amount, without tax. Can be negative.")
    total_tax = inputs.AmountInput("Tax on the fee.")
    tax_class = inputs.Text(_TAX_CLASS)
    taxes = ItemTaxArray()
    metadata = inputs.MetadataInput(inputs.METADATA)


class TaxLineCreate(Base):
    """Tax line of a new order. It is not included in any sum."""

    rate_id = inputs.Integer("ID of the tax rate.")
    code = inputs.Text("Code of the tax rate.")
    title = inputs.Text("Title of the tax rate.")
    total = inputs.AmountInput("Tax amount.")
    compound = inputs.StrictTrue("Whether the tax is compounded on other taxes.")
    metadata = inputs.MetadataInput(inputs.METADATA)


class CouponLineCreate(Base):
    """Coupon used in a new order."""

    code = inputs.Code("Coupon code.", required=True)
    amount = inputs.DecimalInput(
        "Discount amount, recorded as it is. Without an amount, the coupon is applied."
    )
    metadata = inputs.MetadataInput(inputs.METADATA)


set_form(CouponLineCreate, {"Coupon": {"code": FormField("Code", help="")}}, hidden=("amount",))


class Remaining(inputs.Input):
    """Number of remaining downloads. Empty text means unlimited."""

    openapi = json_schema.REMAINING_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> int | None:
        number = numbers.int_if_integral(value)
        if isinstance(number, str):
            if not number.strip():
                return None
            if not re.fullmatch(r"\s*-?[0-9]+\s*", number, re.ASCII):
                raise ValueError("must be an integer.")
        elif isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("must be an integer.")
        return numbers.integer(number)


class DownloadFileCreate(Base):
    """Downloadable file."""

    name = inputs.Text("File name.")
    file = inputs.Text("URL of the file.")


class DownloadPermissionCreate(Base):
    """Permission of the customer to download a file.

    A product ID, a download ID or a download URL is required.
    """

    product_id = inputs.Integer("Product ID.")
    download_id = inputs.Text("Identifier of the downloadable file.")
    download_name = inputs.Text("Name of the download.")
    download_url = inputs.Text("URL from which the customer downloads the file.")
    file = inputs.InputPart(DownloadFileCreate)
    downloads_remaining = Remaining(
        "Number of remaining downloads. Empty means unlimited. With 0, the download is not offered."
    )
    access_expires = inputs.TimestampInput("Time when access expires. Empty means never.")


def item_array(item: type[Base], meaning: str) -> list_inputs.ItemArray:
    """Return the field of a list of items."""
    return list_inputs.ItemArray(item, meaning, limit=MAX_ITEMS, too_large=too_large)


def item_update(item: type[Base], **more: inputs.Input) -> type[Base]:
    """Return the schema of an item in an update, which can have the ID of an item.

    Args:
        more: fields that replace those of ``item``.
    """
    return update_schema(
        item,
        item.__name__.replace("Create", "Update"),
        id=ItemIdInput("ID of the item to update. If absent or 0, an item is added."),
        remove=inputs.StrictTrue("`true` removes the item."),
        **more,
    )
