"""The five kinds of order items and their properties (orders 2, decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EARLIER_REDEMPTIONS = "earlier_redemptions"
"""Detail of a coupon line: how many redemptions of removed lines of the order have its code."""


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
    defaults: Mapping[str, Any]
    details: tuple[str, ...] = ()
    unset: frozenset[str] = frozenset()
    required: str | None = None


KINDS: Mapping[str, ItemKind] = {
    "line_items": ItemKind(
        shown=(
            "id", "subtotal", "subtotal_tax", "total", "total_tax", "price", "quantity",
            "tax_class", "name", "product_id", "sku", "meta",
        ),
        amounts=frozenset({"subtotal", "subtotal_tax", "total", "total_tax", "price"}),
        defaults={
            "subtotal_tax": 0, "total_tax": 0, "quantity": 1, "tax_class": "", "name": "",
            "product_id": 0, "sku": "", "meta": [], "product_category_ids": [], "on_sale": False,
        },
        # own_total: the total was given, so that no discount of a coupon changes it (orders 9).
        details=("product_category_ids", "on_sale", "own_total"),
        unset=frozenset({"tax_class", "product_id", "sku"}),
    ),
    "shipping_lines": ItemKind(
        shown=("id", "method_id", "method_title", "total"),
        amounts=frozenset({"total"}),
        defaults={"method_id": "", "method_title": "", "total": 0},
        required="method_id",
    ),
    "fee_lines": ItemKind(
        shown=("id", "title", "tax_class", "total", "total_tax"),
        amounts=frozenset({"total", "total_tax"}),
        defaults={"title": "", "tax_class": "", "total": 0, "total_tax": 0},
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
        defaults={"code": "", "amount": 0, EARLIER_REDEMPTIONS: 0},
        # applied: the amount was computed; otherwise it was given, and the coupon is recorded.
        details=("applied", EARLIER_REDEMPTIONS),
        required="code",
    ),
}  # fmt: skip
