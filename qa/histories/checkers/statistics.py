"""Statistics: the figures of every customer equal a computation from all orders."""

from __future__ import annotations

from decimal import Decimal

from qa.histories.history import Segment, Violation

NAME = "statistics"
PAID = ("processing", "completed")


def check_statistics(segment: Segment) -> list[Violation]:
    """Return the violations in the state after a segment."""
    found = []
    orders = sorted(segment.after["orders"].values(), key=lambda order: order["id"])
    for customer in segment.after["customers"].values():
        own = [order for order in orders if order["customer_id"] == customer["id"]]
        spent = sum((Decimal(each["total"]) for each in own if each["status"] in PAID), Decimal(0))
        expected = {
            "orders_count": len(own),
            "total_spent": f"{spent:.2f}",
            "last_order_id": own[-1]["id"] if own else None,
            "last_order_date": own[-1]["created_at"] if own else None,
        }
        differ = {
            name: (customer[name], value)
            for name, value in expected.items()
            if customer[name] != value
        }
        if differ:
            ids = {order["id"] for order in own}
            operations = [
                each
                for each in segment.operations
                if each.args.get("order") in ids or each.args.get("customer_id") == customer["id"]
            ]
            text = f"customer {customer['id']}: shown and computed differ: {differ}"
            found.append(Violation(NAME, text, operations))
    return found
