"""Reports: the figures of a period equal a computation from all records at a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

REPORT = "report"
COUNTED = frozenset({"processing", "completed", "refunded"})
CENT = Decimal("0.01")
INTERVALS = "hour", "hour", "hour", "day", "week", "month", "year"
AT_ONCE = 2
OF_OTHER = 0.25  # share of reports about the other currency
OF_SHOP, OTHER = "USD", "EUR"  # currencies; a few orders of a run have the other one

Record = dict[str, Any]


def ask_reports(
    get: Callable[[str], tuple[Any, dict[str, str]]], random: Random, state: Record
) -> list[Record]:
    """Read random reports of the period of the run; return each with its path.

    Args:
        get: sends a GET request; returns the body and the headers.
        state: the snapshot with which the results are compared.
    """
    days = [each["created_at"][:10] for each in state["orders"].values()]
    confirmed = (each["confirmed_at"] for each in state["redemptions"].values())
    days += [each[:10] for each in confirmed if each]
    first, last = (date.fromisoformat(each(days, default="2026-01-01")) for each in (min, max))
    day = timedelta(days=1)
    period = f"filter[from]={first - day}&filter[to]={last + day}"
    period += f"&filter[currency]={OTHER}" if random.random() < OF_OTHER else ""
    coupons = [each["id"] for each in state["coupons"].values() if each["usage_count"]]
    paths = [
        f"/reports/sales?{period}&filter[interval]={random.choice(INTERVALS)}",
        f"/reports/orders?{period}",
        f"/reports/coupons?{period}&filter[orderby]={random.choice(('uses', 'revenue', 'code'))}",
        f"/reports/customers?{period}",
    ]
    paths += [f"/reports/coupons/{id_}?{period}" for id_ in coupons]
    return [
        {"kind": REPORT, "path": path, "result": get(path)[0]}
        for path in random.sample(paths, AT_ONCE)
    ]


def check_report(query: Record, state: Record) -> list[str]:
    """Return what is wrong in a report."""
    path, body = query["path"], query["result"]
    shop = _Shop(state, OTHER if f"[currency]={OTHER}" in path else OF_SHOP)
    name = path.partition("?")[0].removeprefix("/reports/")
    shown: Any
    expected: Any
    if name == "sales":
        totals = body["sales"]["totals"]
        expected = shop.sales()
        shown = {each: totals[each] for each in expected}
        found = _differences(path, shown, expected)
        parts = body["sales"]["intervals"]
        for each in ("orders", "refunds", "items", "uses"):
            found += _differences(path, {each: sum(p[each] for p in parts)}, {each: shown[each]})
        starts = [each["start"] for each in parts]
        for part, end in zip(parts, [*starts[1:], "9999"], strict=True):
            expected = shop.in_interval(part["start"], end)
            where = f"{path}, interval {part['label']}"
            found += _differences(where, {each: part[each] for each in expected}, expected)
        return found
    if name == "orders":
        shown = {
            row["status"]: (row["orders"], row["total"])
            for row in body["order_reports"]
            if row["orders"]
        }
        return _differences(path, shown, shop.by_status())
    if name == "customers":
        shown = {
            row["customer"]["id"]: (row["orders"], row["total"])
            for row in body["customer_reports"]
            if row["customer"]["id"] and row["orders"]
        }
        return _differences(path, shown, shop.by_customer())
    rows = [body["coupon_report"]["totals"]] if "coupon_report" in body else body["coupon_reports"]
    coupons = [body["coupon_report"]] if "coupon_report" in body else rows
    found = []
    known = state["coupons"] | state["trashed_coupons"]
    for row, of in zip(rows, coupons, strict=True):
        id_ = of["coupon"]["id"]
        if id_ in known:
            expected = shop.of_coupon(id_)
            found += _differences(f"{path}, coupon {id_}", {n: row[n] for n in expected}, expected)
    missing = shop.used_coupons() & known.keys() - {of["coupon"]["id"] for of in coupons}
    if "coupon_reports" in body and missing:
        found.append(f"GET {path}: coupons {sorted(missing)} are missing")
    return found


def _differences(path: str, shown: Any, expected: Any) -> list[str]:
    if shown == expected:
        return []
    differ = {
        name: (shown.get(name), expected.get(name))
        for name in shown.keys() | expected.keys()
        if shown.get(name) != expected.get(name)
    }
    return [f"GET {path}: shown and computed differ: {differ}"]


def _sum(records: Iterable[Record], name: str) -> Decimal:
    return sum((Decimal(each[name] or 0) for each in records), Decimal(0))


def _text(amount: Decimal) -> str:
    return f"{amount:.2f}"


class _Shop:
    """The records of a snapshot that count in reports of a currency.

    A use without an order is in the currency of the shop.
    """

    def __init__(self, state: Record, currency: str) -> None:
        self.all = [each for each in state["orders"].values() if each["currency"] == currency]
        self.orders = [each for each in self.all if each["status"] in COUNTED]
        ids = {each["id"] for each in self.orders}
        shop = {"currency": OF_SHOP}
        self.refunds = [each for each in state["refunds"].values() if each["order_id"] in ids]
        self.uses = [
            each
            for each in state["redemptions"].values()
            if each["status"] == "confirmed"
            and state["orders"].get(each["order_id"], shop)["currency"] == currency
        ]

    def sales(self) -> Record:
        """Return the totals of all orders that count."""
        orders, total = self.orders, _sum(self.orders, "total")
        shipping = _sum(orders, "total_shipping")
        tax = _sum(orders, "cart_tax") + _sum(orders, "shipping_tax")
        refunded = _sum(self.refunds, "amount")
        average = (total / len(orders)).quantize(CENT, ROUND_HALF_UP) if orders else Decimal(0)
        people = {
            each["customer_id"] or each["billing_address"]["email"].lower() for each in orders
        }
        return {
            "orders": len(orders),
            "items": sum(each["total_line_items_quantity"] for each in orders),
            "customers": len(people),
            "total": _text(total),
            "discount": _text(_sum(orders, "total_discount")),
            "shipping": _text(shipping),
            "tax": _text(tax),
            "refunds": len(self.refunds),
            "refunded": _text(refunded),
            "net": _text(total - shipping - tax - refunded),
            "average_order": _text(average),
            "uses": len(self.uses),
        }

    def in_interval(self, start: str, end: str) -> Record:
        """Return how many records an interval has. The times are in UTC, as the API shows them."""
        times = {
            "orders": [each["created_at"] for each in self.orders],
            "refunds": [each["created_at"] for each in self.refunds],
            "uses": [each["confirmed_at"] for each in self.uses],
        }
        return {name: sum(start <= at < end for at in found) for name, found in times.items()}

    def by_status(self) -> Record:
        """Return the number of orders and their total by status."""
        statuses = {each["status"] for each in self.all}
        groups = {name: [o for o in self.all if o["status"] == name] for name in statuses}
        return {name: (len(own), _text(_sum(own, "total"))) for name, own in groups.items()}

    def by_customer(self) -> Record:
        """Return the number of orders and their total by account."""
        ids = {each["customer_id"] for each in self.orders} - {0}
        groups = {id_: [o for o in self.orders if o["customer_id"] == id_] for id_ in ids}
        return {id_: (len(own), _text(_sum(own, "total"))) for id_, own in groups.items()}

    def used_coupons(self) -> set[int]:
        """Return the IDs of the coupons with a confirmed use."""
        return {each["coupon_id"] for each in self.uses} - {None}

    def of_coupon(self, id_: int) -> Record:
        """Return the figures of a coupon."""
        uses = [each for each in self.uses if each["coupon_id"] == id_]
        used = {each["order_id"] for each in uses} - {None}
        orders = [each for each in self.orders if each["id"] in used]
        return {
            "uses": len(uses),
            "orders": len(orders),
            "discount": _text(_sum(uses, "amount")),
            "revenue": _text(_sum(orders, "total")),
        }
