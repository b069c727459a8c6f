"""Items of an order: their kinds, their stored form, and their columns (orders 2, decisions 7).

An order has five lists of items. They are stored as responses contain them. Properties that
responses do not contain are stored in ``Order.item_details``. In this module, an item is a dict of
both, with amounts in cents. The functions are pure and do not use the database.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.conversions.numbers import INT64_MAX
from app.db.records import Record
from app.errors import InvalidOrderItems, Sentence
from app.models.order import Item

MAX_TOTAL = 10**15
"""Largest total of an order in cents. The sum of thousands of totals fits into 64 bits."""

PRICE_UNITS = 10**6
"""Parts of a currency unit in which a price per unit is counted."""


def cents(amount: Decimal) -> int:
    """Return an amount with two decimals in cents."""
    return int(amount.scaleb(2))


def amount_text(value: int) -> str:
    """Return cents as a decimal string: 1050 is ``10.50``."""
    units, rest = divmod(abs(value), 100)
    return f"{'-' if value < 0 else ''}{units}.{rest:02}"


def divided(value: int, by: int) -> int:
    """Return an integer divided by a positive one, rounded half away from zero."""
    quotient = (2 * abs(value) + by) // (2 * by)
    return -quotient if value < 0 else quotient


def price_times_quantity(price: Decimal, quantity: int) -> int:
    """Return price * quantity in cents. Prices have up to six decimals (orders 9)."""
    return divided(int(price.scaleb(6)) * quantity, PRICE_UNITS // 100)


def sums_of(lists: Mapping[str, Iterable[Item]], shipping_tax: int) -> dict[str, int]:
    """Return the sums of an order in cents, by column name (orders 2 and 9, records 3).

    Args:
        lists: the items of each list, amounts in cents.
        shipping_tax: in cents.
    """
    lines, fees = list(lists["line_items"]), list(lists["fee_lines"])
    coupons = list(lists["coupon_lines"])
    subtotal = sum(line["subtotal"] for line in lines)
    line_totals = sum(line["total"] for line in lines)
    shipping = sum(line["total"] for line in lists["shipping_lines"])
    cart_tax = sum(item["total_tax"] for item in (*lines, *fees))
    reduced = subtotal - line_totals
    applied = sum(coupon["amount"] for coupon in coupons if coupon["applied"])
    recorded = sum(coupon["amount"] for coupon in coupons if not coupon["applied"])
    # Recorded amounts count only if no line total contains them (orders 9).
    discount = reduced + max(0, recorded - (reduced - applied))
    fee_totals = sum(fee["total"] for fee in fees)
    return {
        "subtotal": subtotal,
        "total_discount": discount,
        "cart_tax": cart_tax,
        "total_shipping": shipping,
        "shipping_tax": shipping_tax,
        "total": line_totals + fee_totals + shipping + cart_tax + shipping_tax,
        "discount_tax": max(0, sum(line["subtotal_tax"] - line["total_tax"] for line in lines)),
        "fees": fee_totals,
    }


def sum_error(sums: Mapping[str, int]) -> str | Sentence | None:
    """Return the reason why sums are outside the allowed range, or None."""
    if sums["total"] < 0:
        return "the total must not be negative."
    if sums["total"] > MAX_TOTAL:
        return Sentence("the total must not be above {0}.", amount_text(MAX_TOTAL))
    total_tax = sums["cart_tax"] + sums["shipping_tax"]
    if any(abs(value) > INT64_MAX for value in (*sums.values(), total_tax)):
        return "a sum in cents exceeds the range of 64-bit integers."
    return None


EARLIER_REDEMPTIONS = "earlier_redemptions"
"""Detail of a coupon line: how many redemptions of removed lines of the order have its code."""

COUPON_ID = "coupon_id"
"""Detail of a coupon line: ID of its coupon, or None for a code that matched no coupon.

Lines that an earlier release wrote do not have it either.
"""

META_IDS = "meta_ids"
"""Detail of an imported line: the IDs of the entries of ``meta`` at the source, in their order."""

_OF_ORDER, _OWN_SHIPPING_TAX = "order", "own_shipping_tax"
"""Key in the details for what is stored of the order itself, and its entry."""


@dataclass(frozen=True, slots=True)
class ItemKind:
    """Properties of the items of one list.

    Attributes:
        shown: keys of an item in responses, in their order, beginning with ``id``.
        amounts: keys that contain amounts.
        details: keys that are stored, but not contained in responses.
        defaults: default values of optional keys.
        unset: keys whose empty value is stored and returned as null.
        required: key whose value must not be empty.
    """

    shown: tuple[str, ...]
    amounts: frozenset[str]
    defaults: Mapping[str, object]
    details: tuple[str, ...] = ()
    unset: frozenset[str] = frozenset()
    required: str | None = None


KINDS: Mapping[str, ItemKind] = {
    "line_items": ItemKind(
        shown=(
            "id", "subtotal", "subtotal_tax", "total", "total_tax", "price", "quantity",
            "tax_class", "name", "product_id", "sku", "meta", "variation_id", "taxes",
        ),
        amounts=frozenset({"subtotal", "subtotal_tax", "total", "total_tax", "price"}),
        defaults={
            "subtotal_tax": 0, "total_tax": 0, "quantity": 1, "tax_class": "", "name": "",
            "product_id": 0, "sku": "", "meta": [], "product_category_ids": [], "on_sale": False,
            "variation_id": 0, "taxes": [],
        },
        # own_total: the total was given, so that no discount of a coupon changes it (orders 9).
        details=("product_category_ids", "on_sale", "own_total"),
        unset=frozenset({"tax_class", "product_id", "sku"}),
    ),
    "shipping_lines": ItemKind(
        shown=("id", "method_id", "method_title", "total", "total_tax", "instance_id", "taxes"),
        amounts=frozenset({"total", "total_tax"}),
        defaults={
            "method_id": "", "method_title": "", "total": 0, "total_tax": 0, "instance_id": "",
            "taxes": [],
        },
        required="method_id",
    ),
    "fee_lines": ItemKind(
        shown=("id", "title", "tax_class", "total", "total_tax", "taxes"),
        amounts=frozenset({"total", "total_tax"}),
        defaults={"title": "", "tax_class": "", "total": 0, "total_tax": 0, "taxes": []},
        unset=frozenset({"tax_class"}),
        required="title",
    ),
    "tax_lines": ItemKind(
        shown=("id", "rate_id", "code", "title", "total", "compound"),
        amounts=frozenset({"total"}),
        defaults={"rate_id": 0, "code": "", "title": "", "total": 0, "compound": False},
    ),
    "coupon_lines": ItemKind(
        shown=("id", "code", "amount"),
        amounts=frozenset({"amount"}),
        defaults={"code": "", "amount": 0, EARLIER_REDEMPTIONS: 0, COUPON_ID: None},
        # applied: the amount was computed; otherwise it was given, and the coupon is recorded.
        details=("applied", EARLIER_REDEMPTIONS, COUPON_ID),
        required="code",
    ),
}  # fmt: skip


@dataclass(slots=True)
class OrderItems:
    """Items of an order during a create or an update.

    Attributes:
        lists: the items of each list, in their order, with amounts in cents.
        next_id: ID after the last one of the order. Further items get this ID or a higher one.
        places: location of an item in the request body (``order.line_items[2]``), by its ID. Items
            that the request does not contain have no location.
        metadata: what the request says of the metadata of items, by the ID of the item.
        own_shipping_tax: whether the tax on shipping was supplied. Otherwise, it is the sum of the
            taxes of the shipping lines (records 3).
    """

    lists: dict[str, list[Item]] = field(default_factory=lambda: {name: [] for name in KINDS})
    next_id: int = 1
    places: dict[int, str] = field(default_factory=dict)
    metadata: dict[int, Any] = field(default_factory=dict)
    own_shipping_tax: bool = False

    @property
    def shipping_taxes(self) -> int:
        """Return the sum of the taxes of the shipping lines, in cents."""
        return sum(line["total_tax"] for line in self.lists["shipping_lines"])

    def ids(self) -> frozenset[int]:
        """Return the IDs of all items."""
        return frozenset(item["id"] for items in self.lists.values() for item in items)

    def columns_with_sums(self, shipping_tax: int) -> Record:
        """Return the order columns that contain the items and the sums.

        Args:
            shipping_tax: the tax on shipping that was supplied, in cents.

        Raises:
            InvalidOrderItems: a sum is outside the allowed range.
        """
        if not self.own_shipping_tax:
            shipping_tax = self.shipping_taxes
        sums = sums_of(self.lists, shipping_tax)
        if reason := sum_error(sums):
            raise InvalidOrderItems({"order": reason})
        for line in self.lists["line_items"]:
            line["price"] = divided(line["total"], line["quantity"] or 1)
        details = {
            str(item["id"]): {
                key: item[key]
                for key in (*KINDS[name].details, *([META_IDS] if item.get(META_IDS) else []))
            }
            for name, items in self.lists.items()
            if KINDS[name].details
            for item in items
        }
        if self.own_shipping_tax:
            details[_OF_ORDER] = {_OWN_SHIPPING_TAX: True}
        return {
            **{
                name: [_shown(KINDS[name], item) for item in items]
                for name, items in self.lists.items()
            },
            "item_details": details,
            "next_item_id": self.next_id,
            **{name: Decimal(value).scaleb(-2) for name, value in sums.items()},
            "items": sum(line["quantity"] for line in self.lists["line_items"]),
        }


def items_of(order: Mapping[str, Any]) -> OrderItems:
    """Return the items of a stored order."""
    details = order["item_details"] or {}
    lists = {
        name: [_stored(kind, item, details.get(str(item["id"]), {})) for item in order[name]]
        for name, kind in KINDS.items()
    }
    items = OrderItems(lists, 1 + last_item_id(order))
    # Orders that an earlier release wrote have no detail.
    items.own_shipping_tax = (
        details.get(_OF_ORDER, {}).get(_OWN_SHIPPING_TAX, False)
        or cents(order["shipping_tax"]) != items.shipping_taxes
    )
    return items


def last_item_id(order: Mapping[str, Any]) -> int:
    """Return the highest ID of the items that a stored order and its refunds have ever had."""
    ids = [item["id"] for name in KINDS for item in order[name]]
    # Before migration 0012, orders had no ``next_item_id``.
    return max((order["next_item_id"] or 1) - 1, max(ids, default=0))


def _shown(kind: ItemKind, item: Item) -> Item:
    shown = {}
    for key in kind.shown:
        value = item[key]
        if key in kind.amounts:
            value = amount_text(value)
        elif key in kind.unset:
            value = value or None
        shown[key] = value
    return shown


def _stored(kind: ItemKind, item: Mapping[str, object], details: Mapping[str, object]) -> Item:
    """Return a stored item with amounts in cents and defaults for missing keys."""
    known: Item = {**kind.defaults, **dict.fromkeys(kind.amounts, "0.00"), **item, **details}
    for key in kind.amounts:
        known[key] = cents(Decimal(known[key]))
    for key in kind.unset:
        known[key] = known[key] or kind.defaults[key]
    for key in kind.details:
        known.setdefault(key, False)
    return known
