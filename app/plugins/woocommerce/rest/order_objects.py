"""Orders, notes and refunds as objects of this dialect: pure functions of their records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from app.catalog import TRASH
from app.conversions.numbers import whole_number
from app.plugins.woocommerce.rest.customers import customer_fields
from app.plugins.woocommerce.rest.site import (
    VERSION,
    Entries,
    Object,
    Record,
    Site,
    metadata_list,
    plain_number,
)
from app.plugins.woocommerce.rest.stored_customers import BILLING_PARTS, SHIPPING_PARTS
from app.plugins.woocommerce.stored_keys import ORDER_KEYS
from app.services.common.metadata import first_values
from app.services.orders.items import COUPON_ID, META_IDS

_EDITABLE, _UNPAID = {"pending", "on-hold"}, {"pending", "failed"}
_STORED = ORDER_KEYS | {
    "_recorded_sales",
    "_recorded_coupon_usage_counts",
    "_download_permissions_granted",
    "_order_stock_reduced",
    "_new_order_email_sent",
}
"""Metadata with the name under which the original stores a field. It is not shown."""
_KEY, _ID = itemgetter(1), itemgetter("id")
_NO_IMAGE, _OF_VARIATION = {"id": "", "src": ""}, {"id": 0, "src": ""}


KNOWN_CURRENCIES: Mapping[str, Sequence[str]] = json.loads(
    (Path(__file__).parent / "currencies.json").read_text(encoding="utf-8")
)
"""Name and symbol of each currency by its code."""


def symbol_of(currency: str) -> str:
    """Return the symbol of a currency, or its code."""
    return KNOWN_CURRENCIES.get(currency, ("", currency))[1]


Customers = dict[int, Object]


def order_object(record: Record, site: Site, page: Customers | None = None) -> Object:
    """Return an order of this dialect.

    Args:
        record: the order.
        page: of a page, the objects of its customers so far, by ID. On a page, metadata is in the
            order of its IDs, otherwise in that of its keys.
    """
    order_id, status, key = record["id"], record["status"], record["order_key"]
    created, modified = record["created_at"], record["updated_at"]
    completed, paid = record["completed_at"], record["paid_at"]
    metadata = record["metadata"] if page is not None else sorted(record["metadata"], key=_KEY)
    local = site.local
    shown = {
        "id": order_id,
        "parent_id": record["parent_id"] or 0,
        "status": status,
        "currency": record["currency"],
        "version": record["version"] or VERSION,
        "prices_include_tax": record["prices_include_tax"],
        "date_created": local(created),
        "date_modified": local(modified),
        **_sums(record, site),
        "customer_id": record["customer_id"] or 0,
        "order_key": key,
        "billing": record["billing"],
        "shipping": record["shipping"],
        **_payment(record),
        "customer_note": record["note"],
        "date_completed": local(completed),
        "date_paid": local(paid),
        "cart_hash": record["cart_hash"],
        "number": record["order_number"],
        "meta_data": site.metadata(metadata, _STORED),
        **_lines(record, site),
        "refunds": _short_refunds(record, site),
        "payment_url": f"{site.home}/order-pay/{order_id}/?pay_for_order=true&key={key}",
        "is_editable": status in _EDITABLE,
        "needs_payment": status in _UNPAID and record["total"] > "0.00",
        "needs_processing": bool(record["line_items"]),
        "date_created_gmt": created[:19],
        "date_modified_gmt": modified[:19],
        "date_completed_gmt": completed and completed[:19],
        "date_paid_gmt": paid and paid[:19],
        "currency_symbol": symbol_of(record["currency"]),
    }
    if site.has_customer:
        shown["customer"] = customer_of(record, site, {} if page is None else page)
    shown["_links"] = _links(record, site)
    return shown


def _sums(record: Record, site: Site) -> Object:
    amount = site.amount
    return {
        "discount_total": amount(record["total_discount"]),
        "discount_tax": amount(record["discount_tax"]),
        "shipping_total": amount(record["total_shipping"]),
        "shipping_tax": amount(record["shipping_tax"]),
        "cart_tax": amount(record["cart_tax"]),
        "total": amount(record["total"]),
        "total_tax": amount(record["total_tax"]),
    }


def _payment(record: Record) -> Object:
    return {
        "payment_method": record["payment_method_id"],
        "payment_method_title": record["payment_method_title"],
        "transaction_id": record["transaction_id"],
        "customer_ip_address": record["customer_ip"],
        "customer_user_agent": record["customer_user_agent"],
        "created_via": record["created_via"],
    }


def _lines(record: Record, site: Site) -> Object:
    return {
        "line_items": [_line(line, record, site) for line in record["line_items"]],
        "tax_lines": [_tax_line(line, record, site) for line in record["tax_lines"]],
        "shipping_lines": [_shipping_line(one, record, site) for one in record["shipping_lines"]],
        "fee_lines": [_fee_line(line, record, site) for line in record["fee_lines"]],
        "coupon_lines": [_coupon_line(line, record) for line in record["coupon_lines"]],
    }


def _links(record: Record, site: Site) -> Object:
    links = site.links("orders", record["id"], site.methods["orders"])
    if record["customer_id"]:
        links["customer"] = [{"href": f"{site.root}/customers/{record['customer_id']}"}]
    if record["parent_id"]:
        links["up"] = [{"href": f"{site.root}/orders/{record['parent_id']}"}]
    return links


def _short_refunds(record: Record, site: Site) -> list[Object]:
    """Return the refunds of an order. Those of one in the trash are in no list (records 5)."""
    if record["status"] == TRASH:
        return []
    return [
        {"id": each["id"], "reason": each["reason"], "total": f"-{site.amount(each['amount'])}"}
        for each in record["refunds"]
    ]


def customer_of(record: Record, site: Site, known: Customers) -> Object:
    """Return the account of an order; for a guest its names and addresses."""
    account = record["customer"]
    if account:
        if account["id"] not in known:
            known[account["id"]] = customer_fields(account, site)
        return known[account["id"]]
    billing, shipping = orjson.loads(orjson.dumps([record["billing"], record["shipping"]]))
    return {
        "id": 0,
        "email": billing["email"],
        "first_name": billing["first_name"],
        "last_name": billing["last_name"],
        "billing": {part: billing[part] for part in BILLING_PARTS},
        "shipping": {part: shipping[part] for part in SHIPPING_PARTS},
    }


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


def _fields_of(item: Record, record: Record) -> Record:
    """Return the metadata of an item by its key, some of which are fields in this dialect."""
    own = record["items_metadata"].get(item["id"])
    return first_values(own) if own else _NOTHING


def _metadata(item: Record, record: Record) -> list[Object]:
    """Return the metadata of an item: its attributes, which can have IDs, and its entries."""
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


def _refunded_taxes(item: Record, record: Record) -> list[Object]:
    """Return the taxes of an item of a refund by rate."""
    fields = _fields_of(item, record)
    stored = fields.get(TAXES) or fields.get("taxes")
    totals = stored.get("total") if isinstance(stored, dict) else None
    if not isinstance(totals, dict):
        return []
    return [
        {"id": number, "total": f"{Decimal(amount):.2f}", "subtotal": f"{Decimal(amount):.2f}"}
        for rate, amount in totals.items()
        if (number := whole_number(str(rate))) is not None and _is_amount(amount)
    ]


def _is_amount(value: object) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", str(value), re.ASCII))


def _amount_of(fields: Record, key: str) -> str:
    """Return a field with an amount that is stored as metadata; 0 for any other value."""
    value = fields.get(key)
    return str(value) if value is not None and _is_amount(value) else "0"


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


def _line(line: Record, record: Record, site: Site) -> Object:
    quantity, amount, sku = line["quantity"], site.amount, line["sku"]
    total, variation = line["total"], line.get("variation_id") or 0
    price = float(total) / quantity if quantity else 0.0
    return {
        "id": line["id"],
        "name": line["name"],
        "product_id": line["product_id"] or 0,
        "variation_id": variation,
        "quantity": quantity,
        "tax_class": line["tax_class"] or "",
        "subtotal": amount(line["subtotal"]),
        "subtotal_tax": amount(line["subtotal_tax"]),
        "total": amount(total),
        "total_tax": amount(line["total_tax"]),
        "taxes": _taxes(line, site, has_subtotal=True) if line.get("taxes") else [],
        "meta_data": _metadata(line, record),
        "sku": sku,
        "global_unique_id": None if sku is None else "",
        "price": int(price) if price.is_integer() else price,
        "image": _OF_VARIATION if variation else _NO_IMAGE,
        "parent_name": None,
    }


def _tax_line(line: Record, record: Record, site: Site) -> Object:
    total, shipping, rate = line["total"], "0.00", "0"
    if fields := _fields_of(line, record):
        part, rate = Decimal(_amount_of(fields, "shipping_tax_amount")), _amount_of(fields, _RATE)
        total, shipping = f"{Decimal(total) - part:.2f}", f"{part:.2f}"
    return {
        "id": line["id"],
        "rate_code": line["code"],
        "rate_id": line["rate_id"],
        "label": line["title"],
        "compound": line["compound"],
        "tax_total": site.amount(total),
        "shipping_tax_total": site.amount(shipping),
        "rate_percent": plain_number(rate),
        "meta_data": _metadata(line, record),
    }


def _shipping_line(line: Record, record: Record, site: Site) -> Object:
    return {
        "id": line["id"],
        "method_title": line["method_title"],
        "method_id": line["method_id"],
        "instance_id": line.get("instance_id") or "",
        "total": site.amount(line["total"]),
        "total_tax": site.amount(line.get("total_tax") or "0.00"),
        "taxes": _taxes(line, site),
        "tax_status": _fields_of(line, record).get("tax_status", "taxable"),
        "meta_data": _metadata(line, record),
    }


def fee_tax_status(line: Record, record: Record) -> object:
    """Return the tax status of a fee of an order."""
    return _fields_of(line, record).get("_tax_status", "taxable")


def _fee_line(line: Record, record: Record, site: Site) -> Object:
    fields = _fields_of(line, record)
    return {
        "id": line["id"],
        "name": line["title"],
        "tax_class": line["tax_class"] or "",
        "tax_status": fee_tax_status(line, record),
        "amount": fields.get("_fee_amount", ""),
        "total": site.amount(line["total"]),
        "total_tax": site.amount(line["total_tax"]),
        "taxes": _taxes(line, site),
        "meta_data": _metadata(line, record),
    }


def _coupon_line(line: Record, record: Record) -> Object:
    shown = _metadata(line, record)
    info = next((each["value"] for each in shown if each["key"] == "coupon_info"), None)
    if info is None and (info := _coupon_info(line, record)):
        shown.append(_entry(0, "coupon_info", info))
    kind, amount, free = _parsed_info(info)
    return {
        "id": line["id"],
        "code": line["code"],
        "discount": _unpadded(line["amount"]),
        "discount_tax": _unpadded(_amount_of(_fields_of(line, record), "discount_amount_tax")),
        "meta_data": shown,
        "discount_type": kind,
        "nominal_amount": amount,
        "free_shipping": free,
    }


def _coupon_info(line: Record, record: Record) -> str | None:
    """Return what the original stores of an applied coupon, computed from the coupon."""
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


# --- notes and refunds ---

_BELOW = ("GET", "DELETE")
_PAYMENT = "_refunded_payment"
"""Metadata of an imported refund: whether the payment provider was called."""
_OF_REFUNDS = _STORED | {_PAYMENT}
_REFUNDED = "_refunded_item_id"
"""Metadata of an item of a refund: the item of the order."""


def note_object(record: Record, site: Site) -> Object:
    """Return a note of this dialect."""
    order_id = record["order_id"]
    links = site.links(f"orders/{order_id}/notes", record["id"], _BELOW)
    return {
        "id": record["id"],
        "author": record["author"] or "WooCommerce",
        **site.dates(created=record["created_at"]),
        "note": record["note"],
        "customer_note": record["customer_note"],
        "_links": {**links, "up": [{"href": site.url("orders", order_id)}]},
    }


def refund_object(record: Record, site: Site, *, with_parent: bool = False) -> Object:
    """Return a refund of this dialect.

    Args:
        record: the refund.
        site: the shop.
        with_parent: whether it has ``parent_id``, as in the list of all refunds.
    """
    order_id, lists = record["order_id"], _refunded_lists(record)
    record = {**record, "items_metadata": _with_references(record)}
    links = site.links(f"orders/{order_id}/refunds", record["id"], _BELOW)
    return {
        "id": record["id"],
        **({"parent_id": order_id} if with_parent else {}),
        **site.dates(created=record["created_at"]),
        "amount": site.amount(record["amount"]),
        "reason": record["reason"],
        "refunded_by": record["refunded_by"] or 0,
        "refunded_payment": any(key == _PAYMENT and value for _, key, value in record["metadata"]),
        "meta_data": site.metadata(record["metadata"], _OF_REFUNDS),
        "line_items": [_line(each, record, site) for each in lists["line_items"]],
        "shipping_lines": [_shipping_line(each, record, site) for each in lists["shipping_lines"]],
        "tax_lines": _refunded_tax_lines(lists, record, site),
        "fee_lines": [_fee_line(each, record, site) for each in lists["fee_lines"]],
        "_links": {**links, "up": [{"href": site.url("orders", order_id)}]},
    }


def _refunded_lists(record: Record) -> dict[str, list[Object]]:
    """Return the items of a refund as items of an order, with negative amounts, by list."""
    found: dict[str, list[Object]] = {"line_items": [], "shipping_lines": [], "fee_lines": []}
    for item in record["line_items"]:
        own = {"id": item.get("item_id") or item["id"], "quantity": -item["quantity"]}
        total, tax = _negative(item["total"]), _negative(item["total_tax"])
        shipped = (line for line in record["shipping_lines"] if line["id"] == item["id"])
        found[item["list"]].append(
            {
                "method_id": "",
                **next(shipped, {}),
                **item,
                **own,
                "title": item["name"],
                "method_title": item["name"],
                "taxes": _refunded_taxes(own, record),
                "subtotal": total,
                "subtotal_tax": tax,
                "total": total,
                "total_tax": tax,
            }
        )
    return found


def _with_references(record: Record) -> Mapping[int, Entries]:
    """Return the metadata of the items of a refund, with the items that they refund."""
    entries: dict[int, Entries] = {**record["items_metadata"]}
    for item in record["line_items"]:
        own_id = item.get("item_id") or item["id"]
        stored = entries.get(own_id, ())
        if not any(key == _REFUNDED for _, key, _ in stored):
            reference = (item.get("meta_id", 0), _REFUNDED, str(item["id"]))
            entries[own_id] = [reference, *stored]
    return entries


def _refunded_tax_lines(
    lists: Mapping[str, Sequence[Record]], record: Record, site: Site
) -> list[Object]:
    """Return the tax lines of the order, each with what a refund has of its rate."""
    sums: dict[tuple[int, bool], Decimal] = {}
    for name, items in lists.items():
        for tax in (tax for item in items for tax in item["taxes"]):
            key = tax["id"], name == "shipping_lines"
            sums[key] = sums.get(key, Decimal(0)) + Decimal(tax["total"])
    rates = {rate for rate, _ in sums}
    return [
        {
            **_tax_line(line, record, site),
            "tax_total": site.amount(f"{sums.get((line['rate_id'], False), 0):.2f}"),
            "shipping_tax_total": site.amount(f"{sums.get((line['rate_id'], True), 0):.2f}"),
        }
        for line in record["tax_lines"]
        if line["rate_id"] in rates
    ]


def _negative(amount: str) -> str:
    return amount if amount == "0.00" else f"-{amount}"
