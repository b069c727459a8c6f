"""Orders: coupon lines and redemptions agree for every status, and sums equal the items."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from typing import Any

from qa.histories.generator import RECORDED
from qa.histories.history import Operation, Segment, Violation

NAME = "orders"
HELD = {
    "pending": "reserved", "processing": "confirmed", "on-hold": "confirmed",
    "completed": "confirmed", "cancelled": None, "failed": None,
}  # fmt: skip
"""Status of the uses by the status of their order. ``refunded`` leaves them as they are."""


def check_orders(segment: Segment) -> list[Violation]:
    """Return the violations in the state after a segment, and in the responses."""
    state = segment.after
    of_orders: dict[int, list[Any]] = {}
    for redemption in state["redemptions"].values():
        if redemption["order_id"] and redemption["status"] != "released":
            of_orders.setdefault(redemption["order_id"], []).append(redemption)
    found = []
    for order_id, order in state["orders"].items():
        problems = [*_uses(order, of_orders.pop(order_id, [])), *_sums(order)]
        problems += _refunds(order, state["refunds"].values())
        found += [_violation(segment, order_id, text) for text in problems]
    for order_id, redemptions in of_orders.items():
        ids = [each["id"] for each in redemptions]
        where = "in the trash" if order_id in state["trashed_orders"] else "deleted"
        text = f"order {order_id} is {where}, and its redemptions {ids} are live"
        found.append(_violation(segment, order_id, text))
    for operation in segment.operations:
        found += _discount(operation) + _evaluation(operation)
        order = (operation.response or {}).get("order") if operation.is_done else None
        if isinstance(order, dict) and not operation.path.startswith("/wc-api"):
            found += [Violation(NAME, text, [operation]) for text in _sums(order)]
    return found


def _violation(segment: Segment, order_id: int, text: str) -> Violation:
    operations = [
        each
        for each in segment.operations
        if each.args.get("order") == order_id
        or ((each.response or {}).get("order") or {}).get("id") == order_id
    ]
    events = [each for each in segment.events if _is_about(each.data, order_id)]
    return Violation(NAME, text, operations, events)


def _is_about(event: dict[str, Any], order_id: int) -> bool:
    if event["resource"] == "order":
        return bool(event["resource_id"] == order_id)
    return bool(event["data"].get("redemption", {}).get("order_id") == order_id)


def _uses(order: dict[str, Any], redemptions: list[Any]) -> list[str]:
    found = []
    codes = [line["code"] for line in order["coupon_lines"]]
    held = sorted(each["code"] for each in redemptions)
    if len(set(held)) < len(held):
        found.append(f"order {order['id']} has several live uses of one code: {held}")
    if extra := set(held) - set(codes):
        found.append(f"order {order['id']} has live uses of {extra} without a coupon line")
    if order["status"] == "refunded":
        return found
    wanted = HELD[order["status"]]
    statuses = {each["code"]: each["status"] for each in redemptions}
    found += [
        f"order {order['id']} is {order['status']}, and its use of {code} is {status}"
        for code, status in statuses.items()
        if status != wanted
    ]
    # The code of a recorded line can be one that matched no coupon.
    applied = {line["code"] for line in order["coupon_lines"] if line["amount"] != RECORDED}
    if wanted and (missing := applied - set(held)):
        found.append(f"order {order['id']} is {order['status']} and has no use of {missing}")
    return found


def _sums(order: dict[str, Any]) -> list[str]:
    lines, fees = order["line_items"], order["fee_lines"]

    def total(items: Any, name: str = "total") -> Decimal:
        return sum((Decimal(each[name] or 0) for each in items), Decimal(0))

    reduced = total(lines, "subtotal") - total(lines)
    tax = total(lines, "total_tax") + total(fees, "total_tax")
    shipping = total(order["shipping_lines"])
    expected = {
        "subtotal": total(lines, "subtotal"),
        "total_shipping": shipping,
        "cart_tax": tax,
        "total": total(lines) + total(fees) + shipping + tax + Decimal(order["shipping_tax"]),
    }
    found = [
        f"order {order['id']}: {name} is {order[name]}, and its items have {value:.2f}"
        for name, value in expected.items()
        if Decimal(order[name]) != value
    ]
    if order["total_line_items_quantity"] != sum(each["quantity"] for each in lines):
        found.append(f"order {order['id']}: total_line_items_quantity is wrong")
    amounts = [Decimal(line["amount"]) for line in order["coupon_lines"]]
    discounts = {
        reduced + max(Decimal(0), sum(recorded) - (reduced - (sum(amounts) - sum(recorded))))
        for number in range(len(amounts) + 1)
        for recorded in combinations(amounts, number)
    }
    if reduced and not amounts:
        found.append(f"order {order['id']}: its items have {reduced} off, and it has no coupons")
    if Decimal(order["total_discount"]) not in discounts:
        found.append(f"order {order['id']}: total_discount is {order['total_discount']}")
    return found


def _discount(operation: Operation) -> list[Violation]:
    """Check the discount of a new order: each coupon of a run takes 1.00 off its items."""
    if operation.kind != "create_order" or operation.path != "/orders" or operation.status != 201:
        return []
    order = operation.response["order"]
    wanted = Decimal(len(operation.args["codes"]))
    given = [Decimal(line["amount"]) for line in order["coupon_lines"]]
    if sum(given) == wanted == Decimal(order["total_discount"]):
        return []
    text = f"order {order['id']}: a discount of {order['total_discount']} by {given}, not {wanted}"
    return [Violation(NAME, text, [operation])]


def _evaluation(operation: Operation) -> list[Violation]:
    """Check the sums of an evaluation: each applicable coupon takes 1.00 off the items."""
    if operation.kind != "evaluate" or not operation.is_done:
        return []
    shown = operation.response["evaluation"]
    items = operation.body["cart"]["items"]
    subtotal = sum((Decimal(each["price"]) * each["quantity"] for each in items), Decimal(0))
    discount = Decimal(sum(each["applicable"] for each in shown["coupons"]))
    expected = {"subtotal": subtotal, "discount": discount, "total": subtotal - discount}
    if all(Decimal(shown[name]) == value for name, value in expected.items()):
        return []
    return [Violation(NAME, f"an evaluation has the sums {shown}, not {expected}", [operation])]


def _refunds(order: dict[str, Any], refunds: Any) -> list[str]:
    own = [each for each in refunds if each["order_id"] == order["id"]]
    amount = sum((Decimal(each["amount"]) for each in own), Decimal(0))
    found = []
    if amount > Decimal(order["total"]):
        found.append(f"order {order['id']}: {amount} of {order['total']} were refunded")
    left = {
        line["id"]: [Decimal(line["quantity"]), Decimal(line["total"])]
        for line in order["line_items"]
    }
    for item in (item for each in own for item in each["line_items"]):
        of_line = left.setdefault(item["id"], [Decimal(0), Decimal(0)])
        of_line[0] -= item["quantity"]
        of_line[1] -= Decimal(item["total"])
    found += [
        f"order {order['id']}: more than line {id_} was refunded, by {quantity} and {total}"
        for id_, (quantity, total) in left.items()
        if quantity < 0 or (total < 0 and any(id_ == i["id"] for e in own for i in e["line_items"]))
    ]
    return found
