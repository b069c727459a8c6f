"""What is left of an order to be refunded, and the rules of a new refund (records 2).

The functions are pure and do not use the database. Amounts are in cents.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from app.conversions.currencies import in_smallest_amounts
from app.errors import InvalidInputs, Sentence
from app.models.order import Item
from app.models.order_refund import OrderRefundRow, RefundedItem
from app.services.common.bulk import Data
from app.services.orders.items import OrderItems, amount_text, cents

REFUNDABLE = ("line_items", "shipping_lines", "fee_lines")
"""Lists of an order whose items can be refunded."""

Left = dict[str, int]
"""Quantity, total and tax of an item. Negative if more was refunded than the item has."""


class InvalidRefund(InvalidInputs):
    """A refund violates one or more rules, or an update leaves less than was refunded."""

    error_code = "shop_api_invalid_order_refund"


def left_of_items(items: OrderItems, refunds: Iterable[OrderRefundRow]) -> dict[int, Left]:
    """Return what is left of each item that can be refunded, by the ID of the item.

    Refunded items that the order does not have any more are negative. A shipping line or a fee line
    has the quantity 1.
    """
    left = {
        item["id"]: {
            "quantity": item.get("quantity", 1),
            "total": item["total"],
            "total_tax": item.get("total_tax", 0),
        }
        for name in REFUNDABLE
        for item in items.lists[name]
    }
    for refund in refunds:
        for refunded in refund["line_items"]:
            of_item = left.setdefault(refunded["id"], dict.fromkeys(_PARTS, 0))
            of_item["quantity"] -= refunded["quantity"]
            for name in ("total", "total_tax"):
                of_item[name] -= cents(Decimal(refunded[name]))
    return left


_PARTS = ("quantity", "total", "total_tax")


def refunded_items(
    data: Data,
    items: OrderItems,
    refunds: Sequence[OrderRefundRow],
    ids: Iterator[int],
    currency: str,
) -> list[RefundedItem]:
    """Return the items of a new refund as they are stored.

    Args:
        data: a loaded ``OrderRefundCreate``.
        ids: IDs for the items, ascending.
        currency: the currency of the order.

    Raises:
        InvalidRefund: with every item that violates a rule.
    """
    left = left_of_items(items, refunds)
    known = {item["id"]: (name, item) for name in REFUNDABLE for item in items.lists[name]}
    errors: dict[str, str | Sentence] = {}
    found: dict[int, RefundedItem] = {}
    for index, given in enumerate(data.get("line_items") or ()):
        place = f"order_refund.line_items[{index}]"
        item_id = given.get("id")
        if item_id not in known:
            errors[f"{place}.id"] = (
                "is not the ID of a line item, shipping line or fee line of the order."
            )
        elif item_id in found:
            errors[f"{place}.id"] = "occurs twice."
        else:
            name, item = known[item_id]
            parts = {
                "quantity": given.get("quantity") or 0,
                **{
                    part: _refunded(given.get(part), left[item_id][part], currency)
                    for part in ("total", "total_tax")
                },
            }
            errors |= _errors_of(place, parts, left[item_id], item)
            found[item_id] = _stored(name, item, parts, next(ids))
    if errors:
        raise InvalidRefund(errors)
    return list(found.values())


def _refunded(amount: Decimal | None, left: int, currency: str) -> int:
    """Return a refunded amount in cents: all that is left, or a whole amount of the currency."""
    given = cents(amount or Decimal(0))
    return given if given == left else in_smallest_amounts(given, currency)


def _errors_of(place: str, parts: Left, left: Left, item: Item) -> dict[str, str | Sentence]:
    errors: dict[str, str | Sentence] = {}
    for name, value in parts.items():
        shown = str if name == "quantity" else amount_text
        most = max(0, left[name])
        if name != "quantity" and item["total"] <= 0:
            most = 0
        if not 0 <= value <= most:
            reason = "must be between 0 and {0}, which is left of it."
            errors[f"{place}.{name}"] = Sentence(reason, shown(most))
    return errors


def _stored(name: str, item: Item, parts: Left, item_id: int) -> RefundedItem:
    return {
        "id": item["id"],
        "item_id": item_id,
        "quantity": parts["quantity"],
        "total": amount_text(parts["total"]),
        "total_tax": amount_text(parts["total_tax"]),
        "list": name,
        "name": item.get("name") or item.get("title") or item.get("method_title") or "",
        "product_id": item.get("product_id") or None,
        "variation_id": item.get("variation_id", 0),
        "sku": item.get("sku") or None,
        "tax_class": item.get("tax_class") or None,
    }


def refunded_amount(data: Data, items: Sequence[RefundedItem], left: int, currency: str) -> int:
    """Return the amount of a new refund in cents.

    Args:
        data: a loaded ``OrderRefundCreate``.
        items: its items. Without an amount, their sum is refunded.
        left: what is left of the total of the order.
        currency: the currency of the order.

    Raises:
        InvalidRefund: the amount is missing, not above 0, or above what is left.
    """
    given = data.get("amount")
    if given is None:
        amount = sum(
            cents(Decimal(item["total"])) + cents(Decimal(item["total_tax"])) for item in items
        )
        if not amount:
            missing = "is required, because no amount of an item is refunded."
            raise InvalidRefund({"order_refund.amount": missing})
    else:
        amount = _refunded(given, left, currency)
    if amount <= 0:
        raise InvalidRefund({"order_refund.amount": "must be above 0."})
    if amount > left:
        most = amount_text(max(0, left))
        reason = Sentence("must be at most {0}, which is left of the order.", most)
        raise InvalidRefund({"order_refund.amount": reason})
    return amount


def require_refunds_covered(
    before: tuple[int, OrderItems],
    after: tuple[int, OrderItems],
    refunds: Sequence[OrderRefundRow],
    data: Data,
) -> None:
    """Raise an error if an update leaves less of an order than was refunded of it.

    An order that an import brought in that state accepts updates that do not increase the excess.

    Args:
        before: the total and the items before the update.
        after: the total and the items after it.
        data: the loaded fields of the update, which locate the items.

    Raises:
        InvalidRefund: with every item, or with ``order`` for the total.
    """
    places = {
        item["id"]: f"order.{name}[{index}]"
        for name in REFUNDABLE
        for index, item in enumerate(data.get(name) or ())
        if item.get("id")
    }
    earlier, later = (left_of_items(items, refunds) for _, items in (before, after))
    refunded = {item["id"] for refund in refunds for item in refund["line_items"]}
    errors: dict[str, str | Sentence] = {
        places.get(item_id, "order"): "cannot become less than was refunded of it."
        for item_id in sorted(refunded)
        if any(later[item_id][part] < min(0, earlier[item_id][part]) for part in _PARTS)
    }
    total = sum(cents(refund["amount"]) for refund in refunds)
    if after[0] - total < min(0, before[0] - total):
        reason = "its total cannot become less than {0}, which was refunded."
        errors.setdefault("order", Sentence(reason, amount_text(total)))
    if errors:
        raise InvalidRefund(errors)
