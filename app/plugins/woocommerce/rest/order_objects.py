"""Orders, notes and refunds as objects of this dialect: pure functions of their records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from app.catalog import TRASH
from app.plugins.woocommerce.rest import schemas
from app.plugins.woocommerce.rest.customers import RestOrderCustomer, order_customers
from app.plugins.woocommerce.rest.site import VERSION, Object, Record, Site, metadata_list
from app.plugins.woocommerce.stored_keys import ORDER_KEYS
from app.schemas.base import Base
from app.services.common.metadata import first_values
from app.services.orders.items import COUPON_ID, META_IDS

_EDITABLE, _UNPAID = {"pending", "on-hold"}, {"pending", "failed"}
STORED_KEYS = ORDER_KEYS | {
    "_recorded_sales",
    "_recorded_coupon_usage_counts",
    "_download_permissions_granted",
    "_order_stock_reduced",
    "_new_order_email_sent",
}
"""Metadata with the name under which the original stores a field. It is not shown."""
_ID = itemgetter("id")
_NO_IMAGE, _OF_VARIATION = {"id": "", "src": ""}, {"id": 0, "src": ""}


KNOWN_CURRENCIES: Mapping[str, Sequence[str]] = json.loads(
    (Path(__file__).parent / "currencies.json").read_text(encoding="utf-8")
)
"""Name and symbol of each currency by its code."""


def symbol_of(currency: str) -> str:
    """Return the symbol of a currency, or its code."""
    return KNOWN_CURRENCIES.get(currency, ("", currency))[1]


def plain_number(text: str) -> int | float:
    """Return an amount as a number; a whole one is an integer."""
    number = float(text)
    return int(number) if number.is_integer() else number


_NOTHING: Record = {}
_RATE = "rate_percent"
TAXES = "_line_tax_data"
"""Metadata with the taxes of an item of a refund by rate, as the original stores them."""
_FIELDS = frozenset(
    {
        "_fee_amount",
        "_tax_status",
        "tax_status",
        "shipping_tax_amount",
        _RATE,
        "discount_amount_tax",
        TAXES,
        "taxes",
    }
)
"""Metadata of items, imported or written here, that is a field of an item in this dialect."""


def fields_of(item: Record) -> Record:
    """Return the metadata of an item by its key, some of which are fields in this dialect."""
    own = item["order"]["items_metadata"].get(item["id"])
    return first_values(own) if own else _NOTHING


def _metadata(item: Record) -> list[Object]:
    """Return the metadata of an item: its attributes, which can have IDs, and its entries."""
    record = item["order"]
    own, attributes = record["items_metadata"].get(item["id"], ()), item.get("meta") or ()
    if not own and not attributes:
        return []
    known = {key for _, key, _ in own}
    details = (record.get("item_details") or _NOTHING).get(str(item["id"]), _NOTHING)
    ids = details.get(META_IDS, ())
    numbers = ids if len(ids) == len(attributes) else [0] * len(attributes)
    found = [
        _entry(number, each["key"], each["value"], each.get("label"))
        for each, number in zip(attributes, numbers, strict=True)
        if each["key"] not in known
    ]
    found += [_entry(*each.values()) for each in metadata_list(own, _FIELDS)]
    return sorted(found, key=_ID) if ids else found


def _entry(number: int, key: str, value: object, label: str | None = None) -> Object:
    shown = {"display_key": label or key, "display_value": value}
    return {"id": number, "key": key, "value": value, **shown}


def is_amount(value: object) -> bool:
    """Return whether a value of metadata is an amount."""
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", str(value), re.ASCII))


def _amount_of(fields: Record, key: str) -> str:
    """Return a field with an amount that is stored as metadata; 0 for any other value."""
    value = fields.get(key)
    return str(value) if value is not None and is_amount(value) else "0"


def _taxes(item: Record, site: Site, *, has_subtotal: bool = False) -> list[Object]:
    if not (taxes := item.get("taxes")):
        return []
    amount = site.amount
    return [
        {
            "id": tax["id"],
            "total": amount(tax["total"]),
            "subtotal": amount(tax["subtotal"]) if has_subtotal else "",
        }
        for tax in taxes
    ]


class RestItemMetadata(Base):
    """Entry of the metadata of an item."""

    id = schemas.Integer()
    key = schemas.Text()
    value = display_key = display_value = schemas.Anything()


class RestItemTax(Base):
    """Tax of an item by its rate."""

    id = schemas.Integer()
    total = subtotal = schemas.Text()


class RestImage(Base):
    """Image of a product."""

    id = schemas.Anything()
    src = schemas.Text()


# The objects of items are made of an item and of its ``order``, which can be a refund.
_Taxes = partial(schemas.many, RestItemTax, _taxes)
_Metadata = partial(schemas.many, RestItemMetadata, lambda item, _: _metadata(item))


def _price(line: Record, _: Site) -> float:
    price = float(line["total"]) / line["quantity"] if line["quantity"] else 0.0
    return int(price) if price.is_integer() else price


class RestLineItem(Base):
    """Product of an order."""

    id = schemas.Integer()
    name = schemas.Text()
    product_id = schemas.IntegerOrZero()
    variation_id = schemas.Integer(lambda line, _: line.get("variation_id") or 0)
    quantity = schemas.Integer()
    tax_class = schemas.TextOrEmpty()
    subtotal = subtotal_tax = total = total_tax = schemas.Sum()
    taxes = schemas.many(RestItemTax, lambda line, site: _taxes(line, site, has_subtotal=True))
    meta_data = _Metadata()
    sku = schemas.OptionalText()
    global_unique_id = schemas.OptionalText("sku", lambda sku, _: None if sku is None else "")
    price = schemas.Number(_price)
    image = schemas.one(
        RestImage, lambda line, _: _OF_VARIATION if line.get("variation_id") else _NO_IMAGE
    )
    parent_name = schemas.OptionalText(lambda *_: None)


def _tax_sums(line: Record) -> tuple[str, str]:
    """Return the amounts of a tax line of an order without and with shipping."""
    if not (fields := fields_of(line)):
        return line["total"], "0.00"
    part = Decimal(_amount_of(fields, "shipping_tax_amount"))
    return f"{Decimal(line['total']) - part:.2f}", f"{part:.2f}"


class RestTaxLine(Base):
    """Tax of an order by its rate."""

    id = schemas.Integer()
    rate_code = schemas.Text("code")
    rate_id = schemas.Integer()
    label = schemas.Text("title")
    compound = schemas.Flag()
    tax_total = schemas.Sum(lambda line, _: _tax_sums(line)[0])
    shipping_tax_total = schemas.Sum(lambda line, _: _tax_sums(line)[1])
    rate_percent = schemas.Number(
        lambda line, _: plain_number(_amount_of(fields_of(line), "rate_percent"))
    )
    meta_data = _Metadata()


class RestShippingLine(Base):
    """Shipping of an order."""

    id = schemas.Integer()
    method_title = method_id = schemas.Text()
    instance_id = schemas.Text(lambda line, _: line.get("instance_id") or "")
    total = schemas.Sum()
    total_tax = schemas.Sum(lambda line, _: line.get("total_tax") or "0.00")
    taxes = _Taxes()
    tax_status = schemas.Text(lambda line, _: fields_of(line).get("tax_status", "taxable"))
    meta_data = _Metadata()


def fee_tax_status(line: Record) -> object:
    """Return the tax status of a fee of an order."""
    return fields_of(line).get("_tax_status", "taxable")


class RestFeeLine(Base):
    """Fee of an order."""

    id = schemas.Integer()
    name = schemas.Text("title")
    tax_class = schemas.TextOrEmpty()
    tax_status = schemas.Text(lambda line, _: fee_tax_status(line))
    amount = schemas.Text(lambda line, _: fields_of(line).get("_fee_amount", ""))
    total = total_tax = schemas.Sum()
    taxes = _Taxes()
    meta_data = _Metadata()


class RestCouponLine(Base):
    """Coupon of an order."""

    id = schemas.Integer()
    code = schemas.Text()
    discount = schemas.Text("amount", lambda amount, _: _unpadded(amount))
    discount_tax = schemas.Text(
        lambda line, _: _unpadded(_amount_of(fields_of(line), "discount_amount_tax"))
    )
    meta_data = schemas.many(RestItemMetadata)
    discount_type = schemas.Text()
    nominal_amount = schemas.Number()
    free_shipping = schemas.Flag()


def _with_coupon(line: Record) -> Object:
    """Return a coupon line with what is shown of its coupon."""
    shown = _metadata(line)
    info = next((each["value"] for each in shown if each["key"] == "coupon_info"), None)
    if info is None and (info := _coupon_info(line)):
        shown.append(_entry(0, "coupon_info", info))
    names = ("discount_type", "nominal_amount", "free_shipping")
    return {**line, "meta_data": shown, **dict(zip(names, _parsed_info(info), strict=True))}


def _coupon_info(line: Record) -> str | None:
    """Return what the original stores of an applied coupon, computed from the coupon."""
    record = line["order"]
    details = (record["item_details"] or {}).get(str(line["id"]), {})
    coupon = record["coupons"].get(details.get(COUPON_ID))
    if coupon is None or not details.get("applied"):
        return None  # a recorded line shows its metadata
    kind = None if coupon["type"] == "fixed_cart" else coupon["type"]
    amount = plain_number(coupon["amount"] or "0")
    info = [details[COUPON_ID], line["code"], kind, amount]
    return json.dumps([*info, True] if coupon["free_shipping"] else info, separators=(",", ":"))


def _parsed_info(info: Any) -> tuple[str, float | str, bool]:
    """Return type, amount and free shipping of ``coupon_info``."""
    try:
        _, _, kind, amount, *more = json.loads(info)
    except (TypeError, ValueError):
        return "fixed_cart", 0, False
    return kind or "fixed_cart", amount or 0, bool(more and more[0])


def _unpadded(amount: str) -> str:
    return (amount.rstrip("0").rstrip(".") if "." in amount else amount) or "0"


def items(
    name: str, schema: type[Base], prepared: Callable[[Record], Record] = lambda line: line
) -> schemas.Field:
    """Return the field of a list of items."""
    return schemas.parts(
        schema, lambda record: [prepared({**line, "order": record}) for line in record[name]]
    )


class RestOrderRefund(Base):
    """Refund in its order."""

    id = schemas.Integer()
    reason = schemas.Text()
    total = schemas.Text("amount", lambda amount, site: f"-{site.amount(amount)}")


def _refunds(record: Record) -> Sequence[Record]:
    """Return the refunds of an order. Those of one in the trash are in no list (records 5)."""
    found: Sequence[Record] = () if record["status"] == TRASH else record["refunds"]
    return found


def _order_links(record: Record, site: Site) -> Object:
    links = site.links("orders", record["id"], site.methods["orders"])
    if record["customer_id"]:
        links["customer"] = [{"href": f"{site.root}/customers/{record['customer_id']}"}]
    if record["parent_id"]:
        links["up"] = [{"href": f"{site.root}/orders/{record['parent_id']}"}]
    return links


class RestOrder(Base):
    """Order."""

    id, parent_id = schemas.Integer(), schemas.IntegerOrZero()
    status = currency = schemas.Text()
    version = schemas.Text(convert=lambda stored, _: stored or VERSION)
    prices_include_tax = schemas.Flag()
    date_created = schemas.LocalTime("created_at")
    date_modified = schemas.LocalTime("updated_at")
    discount_total, discount_tax = schemas.Sum("total_discount"), schemas.Sum()
    shipping_total = schemas.Sum("total_shipping")
    shipping_tax = cart_tax = total = total_tax = schemas.Sum()
    customer_id = schemas.IntegerOrZero()
    order_key = schemas.Text()
    billing = schemas.one(schemas.RestBilling)
    shipping = schemas.one(schemas.RestShipping)
    payment_method = schemas.Text("payment_method_id")
    payment_method_title = transaction_id = schemas.Text()
    customer_ip_address = schemas.Text("customer_ip")
    customer_user_agent = created_via = schemas.Text()
    customer_note = schemas.Text("note")
    date_completed = schemas.LocalTime("completed_at", allow_none=True)
    date_paid = schemas.LocalTime("paid_at", allow_none=True)
    cart_hash = schemas.Text()
    number = schemas.Text("order_number")
    meta_data = schemas.many(
        schemas.RestMetadata, lambda record, site: site.metadata(record["metadata"], STORED_KEYS)
    )
    line_items = items("line_items", RestLineItem)
    tax_lines = items("tax_lines", RestTaxLine)
    shipping_lines = items("shipping_lines", RestShippingLine)
    fee_lines = items("fee_lines", RestFeeLine)
    coupon_lines = items("coupon_lines", RestCouponLine, _with_coupon)
    refunds = schemas.parts(RestOrderRefund, _refunds)
    payment_url = schemas.Text(
        lambda record, site: (
            f"{site.home}/order-pay/{record['id']}/?pay_for_order=true&key={record['order_key']}"
        )
    )
    is_editable = schemas.Flag("status", lambda status, _: status in _EDITABLE)
    needs_payment = schemas.Flag(
        lambda record, _: record["status"] in _UNPAID and record["total"] > "0.00"
    )
    needs_processing = schemas.Flag("line_items", lambda lines, _: bool(lines))
    date_created_gmt = schemas.UtcTime("created_at")
    date_modified_gmt = schemas.UtcTime("updated_at")
    date_completed_gmt = schemas.UtcTime("completed_at", allow_none=True)
    date_paid_gmt = schemas.UtcTime("paid_at", allow_none=True)
    currency_symbol = schemas.Text("currency", lambda currency, _: symbol_of(currency))
    customer = schemas.one(RestOrderCustomer, all_of=order_customers, required=False)
    _links = schemas.links(_order_links)
