"""Notes and refunds of orders as objects of this dialect: pure functions of their records."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial

import marshmallow as ma

from app.conversions.numbers import whole_number
from app.plugins.woocommerce.rest import schemas
from app.plugins.woocommerce.rest.order_objects import (
    STORED_KEYS,
    TAXES,
    RestFeeLine,
    RestLineItem,
    RestShippingLine,
    RestTaxLine,
    fields_of,
    is_amount,
    items,
)
from app.plugins.woocommerce.rest.site import Entries, Object, Record, Site
from app.schemas.base import Base
from app.services.orders.refund_rules import REFUNDABLE

_BELOW = ("GET", "DELETE")
_PAYMENT = "_refunded_payment"
"""Metadata of an imported refund: whether the payment provider was called."""
_OF_REFUNDS = STORED_KEYS | {_PAYMENT}
_REFUNDED = "_refunded_item_id"
"""Metadata of an item of a refund: the item of the order."""


def _links_below(path: str, record: Record, site: Site) -> Object:
    order_id = record["order_id"]
    links = site.links(f"orders/{order_id}/{path}", record["id"], _BELOW)
    return {**links, "up": [{"href": site.url("orders", order_id)}]}


class RestOrderNote(Base):
    """Note of an order."""

    id = schemas.Integer()
    author = schemas.Text(convert=lambda author, _: author or "WooCommerce")
    date_created, date_created_gmt = schemas.times("created_at")
    note, customer_note = schemas.Text(), schemas.Flag()
    _links = schemas.links(partial(_links_below, "notes"))


def _refunded_tax_lines(record: Record, site: Site) -> list[Object]:
    """Return the tax lines of the order, each with what a refund has of its rate."""
    sums: dict[tuple[int, bool], Decimal] = {}
    for name in REFUNDABLE:
        for tax in (tax for item in record[name] for tax in item["taxes"]):
            key = tax["id"], name == "shipping_lines"
            sums[key] = sums.get(key, Decimal(0)) + Decimal(tax["total"])
    rates = {rate for rate, _ in sums}
    lines = [line for line in record["tax_lines"] if line["rate_id"] in rates]
    made = _tax_lines([{**line, "order": record} for line in lines], site, ())
    return [
        {
            **each,
            "tax_total": site.amount(f"{sums.get((line['rate_id'], False), 0):.2f}"),
            "shipping_tax_total": site.amount(f"{sums.get((line['rate_id'], True), 0):.2f}"),
        }
        for line, each in zip(lines, made, strict=True)
    ]


class RestRefund(Base):
    """Refund. In the list of all refunds it names its order."""

    id = schemas.Integer()
    parent_id = schemas.Integer(
        lambda record, _: record.get("parent_id", ma.missing), required=False
    )
    date_created, date_created_gmt = schemas.times("created_at")
    amount, reason = schemas.Sum(), schemas.Text()
    refunded_by = schemas.IntegerOrZero()
    refunded_payment = schemas.Flag(
        "metadata", lambda entries, _: any(key == _PAYMENT and value for _, key, value in entries)
    )
    meta_data = schemas.many(
        schemas.RestMetadata, lambda record, site: site.metadata(record["metadata"], _OF_REFUNDS)
    )
    line_items = items("line_items", RestLineItem)
    shipping_lines = items("shipping_lines", RestShippingLine)
    tax_lines = schemas.many(RestTaxLine, _refunded_tax_lines)
    fee_lines = items("fee_lines", RestFeeLine)
    _links = schemas.links(partial(_links_below, "refunds"))


_tax_lines = schemas.maker(RestTaxLine)


def complete_refund(record: Record) -> Object:
    """Return a refund with the lists and the metadata that its object shows."""
    own = {"items_metadata": _with_references(record)}
    return {**record, **_refunded_lists(record), **own}


def _refunded_lists(record: Record) -> dict[str, list[Object]]:
    """Return the items of a refund as items of an order, with negative amounts, by list."""
    found: dict[str, list[Object]] = {name: [] for name in REFUNDABLE}
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
                "taxes": _refunded_taxes({**own, "order": record}),
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


def _negative(amount: str) -> str:
    return amount if amount == "0.00" else f"-{amount}"


def _refunded_taxes(item: Record) -> list[Object]:
    """Return the taxes of an item of a refund by rate."""
    fields = fields_of(item)
    stored = fields.get(TAXES) or fields.get("taxes")
    totals = stored.get("total") if isinstance(stored, dict) else None
    if not isinstance(totals, dict):
        return []
    return [
        {"id": number, "total": f"{Decimal(amount):.2f}", "subtotal": f"{Decimal(amount):.2f}"}
        for rate, amount in totals.items()
        if (number := whole_number(str(rate))) is not None and is_amount(amount)
    ]
