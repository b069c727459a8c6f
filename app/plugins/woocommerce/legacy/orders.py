"""Orders in the form of the legacy API, which lacks newer fields (records 3 and 5)."""

from collections.abc import Mapping

from app.db.records import Record

Item = Mapping[str, object]

NEWER_FIELDS = (
    "transaction_id",
    "paid_at",
    "created_via",
    "parent_id",
    "prices_include_tax",
    "discount_tax",
    "cart_hash",
    "version",
    "total_refunded",
    "refunds",
)
"""Fields of an order that the legacy API does not have."""

NEWER_ITEM_FIELDS: Mapping[str, tuple[str, ...]] = {
    "line_items": ("variation_id", "taxes"),
    "shipping_lines": ("total_tax", "instance_id", "taxes"),
    "fee_lines": ("taxes",),
}
"""For each list of an order, the fields of its items that the legacy API does not have."""


def legacy_items(name: str, items: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the items of a list of an order without newer fields.

    The ``product_id`` of a line item is the ID of its variation, if it has one.
    """
    newer = NEWER_ITEM_FIELDS[name]
    shown = [{key: item[key] for key in item if key not in newer} for item in items]
    for item, legacy in zip(items, shown, strict=True):
        if item.get("variation_id"):
            legacy["product_id"] = item["variation_id"]
    return shown


def legacy_order(order: Record) -> Record:
    """Return an order of the native API without newer fields."""
    return {
        name: legacy_items(name, value) if name in NEWER_ITEM_FIELDS else value
        for name, value in order.items()
        if name not in NEWER_FIELDS
    }
