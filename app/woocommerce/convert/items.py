"""Conversion of order items to the form in which responses contain them.

The values are those that the legacy API of the source returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from app.services.orders.item_changes import MAX_QUANTITY
from app.services.orders.sums import amount_text
from app.woocommerce.convert.coupons import code_of
from app.woocommerce.convert.stored_values import (
    Alterations,
    Cents,
    is_yes,
    quotient,
    rounded,
    whole,
)
from app.woocommerce.source.item_meta import Pairs, Products, visible_meta
from app.woocommerce.source.staging import Meta

Item = dict[str, Any]


@dataclass(slots=True)
class Items:
    """The items of an order.

    Attributes:
        lists: each list of an order, as it is stored.
        details: stored properties that responses do not contain, by item ID.
        subtotal: the sum of the line subtotals in cents.
        next_id: the ID of the next new item.
        coupons: the ID at the source, the code and the amount in cents of each coupon line.
    """

    lists: dict[str, list[Item]]
    details: dict[str, dict[str, Any]]
    subtotal: int = 0
    next_id: int = 1
    coupons: list[tuple[int, str, int]] = field(default_factory=list)


def items_of_order(
    rows: Sequence[Sequence[Any]],
    metas: Mapping[int, Pairs],
    products: Products,
    altered: Alterations,
) -> Items:
    """Return the items of an order.

    Args:
        rows: ID, name and kind of each item.
        metas: their metadata, by their ID.
    """
    subtotal: Cents = 0
    taxes: dict[str, _Tax] = {}
    kinds = ("line_items", "shipping_lines", "tax_lines", "fee_lines", "coupon_lines")
    items = Items({name: [] for name in kinds}, {})
    for item_id_text, name, kind in sorted(rows, key=lambda row: int(row[0])):
        item_id = int(item_id_text)
        items.next_id = max(items.next_id, item_id + 1)
        pairs, name = metas.get(item_id, ()), altered.text(name)  # noqa: PLW2901  # without NUL
        # The first of several values of a key counts.
        meta: Meta = dict(zip(pairs[-2::-2], pairs[::-2], strict=True))
        if kind == "line_item":
            line, of_line = _line(item_id, name, meta, products, altered)
            line["meta"] = visible_meta(pairs, line["product_id"] or 0, name, products)
            items.lists["line_items"].append(line)
            subtotal += of_line
            items.details[str(item_id)] = {
                "product_category_ids": [],
                "on_sale": False,
                # The total was given, so a coupon does not change it (orders 9).
                "own_total": True,
            }
        elif kind == "shipping":
            shipping = _shipping(item_id, name, meta, products, altered)
            items.lists["shipping_lines"].append(shipping)
        elif kind == "fee":
            items.lists["fee_lines"].append(_fee(item_id, name, meta, products, altered))
        elif kind == "tax":
            taxes[name] = _tax(item_id, meta, taxes.get(name), altered)
        elif kind == "coupon":
            _add_coupon(items, item_id, name, meta, altered)
        else:
            altered.append(f"the item {item_id} of the kind {kind!r} was left out")
    items.subtotal = rounded(subtotal)
    items.lists["tax_lines"] = [tax.line(code) for code, tax in taxes.items() if tax.amount]
    return items


def _line(
    item_id: int, name: str, meta: Meta, products: Products, altered: Alterations
) -> tuple[Item, Cents]:
    """Return a line without its attributes, and its subtotal in cents."""
    get, is_old = meta.get, products.version < 3
    subtotal = altered.exact(get("_line_subtotal"), "_line_subtotal")
    total = altered.exact(get("_line_total"), "_line_total")
    if not is_old:
        subtotal = max(subtotal, total)  # as WooCommerce reads it since 3.0
    product_id = whole(get("_variation_id")) or whole(get("_product_id"))
    quantity = _quantity(get("_qty"), altered)
    price = quotient(total, quantity or 1) if quantity or is_old else 0
    line = {
        "id": item_id,
        "subtotal": amount_text(rounded(subtotal)),
        "subtotal_tax": amount_text(altered.cents(get("_line_subtotal_tax"), "_line_subtotal_tax")),
        "total": amount_text(rounded(total)),
        "total_tax": amount_text(altered.cents(get("_line_tax"), "_line_tax")),
        "price": amount_text(price),
        "quantity": quantity,
        "tax_class": _tax_class(meta, products, altered),
        "name": name,
        "product_id": product_id or (None if is_old else 0),
        "sku": products.skus.get(product_id),
    }
    return line, subtotal


def _shipping(
    item_id: int, name: str, meta: Meta, products: Products, altered: Alterations
) -> Item:
    return {
        "id": item_id,
        "method_id": _method_id(meta, products, altered),
        "method_title": name,
        "total": amount_text(altered.cents(meta.get("cost"), "cost")),
    }


def _fee(item_id: int, name: str, meta: Meta, products: Products, altered: Alterations) -> Item:
    return {
        "id": item_id,
        "title": name,
        "tax_class": _tax_class(meta, products, altered),
        "total": amount_text(altered.cents(meta.get("_line_total"), "_line_total")),
        "total_tax": amount_text(altered.cents(meta.get("_line_tax"), "_line_tax")),
    }


def _tax_class(meta: Meta, products: Products, altered: Alterations) -> str | None:
    """Return the tax class. An absent class is null before version 3.0, and empty since."""
    return altered.text(meta.get("_tax_class")) or (None if products.version < 3 else "")


def _method_id(meta: Meta, products: Products, altered: Alterations) -> str:
    """Return the shipping method. Versions before 3.4 also store its instance: ``flat_rate:3``."""
    method = altered.text(meta.get("method_id"))
    return method if meta.get("instance_id") or products.version < 3 else method.partition(":")[0]


def _quantity(text: str | None, altered: Alterations) -> int:
    """Return a quantity without its fraction, as the legacy server reads it."""
    if not text:
        return 0
    if text.isdigit() and len(text) < 10:
        return int(text)
    try:
        exact = Decimal(text)
        number = int(exact)
    except (InvalidOperation, ValueError, OverflowError):
        exact, number = None, 0
    number = max(0, min(MAX_QUANTITY, number))
    if exact != number:
        altered.append(f"the quantity {text[:40]} was stored as {number}")
    return number


@dataclass(frozen=True, slots=True)
class _Tax:
    """A tax line. Taxes with the same code share a line. A line without tax is omitted."""

    id: int
    rate_id: int
    title: str
    amount: Cents
    compound: bool

    def line(self, code: str) -> Item:
        """Return the line of an order."""
        return {
            "id": self.id,
            "rate_id": self.rate_id,
            "code": code,
            "title": self.title,
            "total": amount_text(rounded(self.amount)),
            "compound": self.compound,
        }


def _tax(item_id: int, meta: Meta, before: _Tax | None, altered: Alterations) -> _Tax:
    """Return a tax line: this item, with the amounts of earlier items with the same code."""
    amount: Cents = before.amount if before else 0
    for key in ("tax_amount", "shipping_tax_amount"):
        amount += altered.exact(meta.get(key), key)
    title = altered.text(meta.get("label")) or "Tax"
    return _Tax(item_id, whole(meta.get("rate_id")), title, amount, is_yes(meta.get("compound")))


def _add_coupon(items: Items, item_id: int, name: str, meta: Meta, altered: Alterations) -> None:
    amount = altered.cents(meta.get("discount_amount"), "discount_amount")
    code = code_of(name) or name
    items.lists["coupon_lines"].append({"id": item_id, "code": code, "amount": amount_text(amount)})
    items.details[str(item_id)] = {"applied": False}
    items.coupons.append((item_id, code, amount))
