"""An independent computation of reports, from all records of a shop in plain Python (reports 2).

It decides for each record to which local date it belongs, and never computes the ends of intervals.
"""

from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, getcontext
from functools import lru_cache
from zoneinfo import ZoneInfo

from app.conversions.emails import comparable_email

getcontext().prec = 60
CENT, ZERO = Decimal("0.01"), Decimal("0.00")
COUNTED = {"processing", "completed", "shipped", "refunded"}


def text(amount):
    return str(Decimal(amount).quantize(CENT))


def average(total, number):
    return text((total / number).quantize(CENT, ROUND_HALF_UP)) if number else "0.00"


def hour_label(instant, zone):
    """Return the hour of an instant, counted from the first instant of its local date."""
    first = first_minute(instant.astimezone(zone).date(), zone)
    hours = (instant - first) // timedelta(hours=1)
    return (first + timedelta(hours=hours)).astimezone(zone).isoformat(timespec="minutes")


@lru_cache(200)
def first_minute(day, zone):
    minute = datetime.combine(day, time(), UTC) - timedelta(days=1)
    while minute.astimezone(zone).date() != day:
        minute += timedelta(minutes=1)
    return minute


def label_of(instant, interval, zone):
    day = instant.astimezone(zone).date()
    if interval == "hour":
        return hour_label(instant, zone)
    if interval == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[interval]]


class Reports:
    """Reports of a shop for a period of local dates."""

    def __init__(self, shop, zone, first, last, currency="USD"):
        self.shop, self.zone, self.currency = shop, ZoneInfo(zone), currency
        self.first, self.last = date.fromisoformat(first), date.fromisoformat(last)
        self.orders_by_id = {order["id"]: order for order in shop.orders}

    def previous(self):
        length = (self.last - self.first).days + 1
        end = self.first - timedelta(days=1)
        start = end - timedelta(days=length - 1)
        return Reports(self.shop, self.zone.key, str(start), str(end), self.currency)

    def is_within(self, instant):
        return self.first <= instant.astimezone(self.zone).date() <= self.last

    def counts(self, order, currency=None):
        return order["status"] in COUNTED and order["currency"] == (currency or self.currency)

    def orders(self, where=lambda order: True):
        return [
            order
            for order in self.shop.orders
            if self.counts(order) and self.is_within(order["created_at"]) and where(order)
        ]

    def refunds(self):
        return [
            refund
            for refund in self.shop.refunds
            if self.is_within(refund["created_at"])
            and self.counts(self.orders_by_id[refund["order_id"]])
        ]

    def uses(self, where=lambda use: True):
        found = []
        for use in self.shop.redemptions:
            if use["status"] != "confirmed" or not self.is_within(use["confirmed_at"]):
                continue
            order = self.orders_by_id.get(use["order_id"])
            if (order["currency"] if order else "USD") == self.currency and where(use):
                found.append(use)
        return found

    @staticmethod
    def customer(order):
        return order["customer_id"] or f"guest {comparable_email(order['billing_email'])}"

    @staticmethod
    def user(use):
        return use["customer_id"] or f"guest {comparable_email(use['email'])}"

    def sales(self):
        figures = self.order_figures(self.orders(), self.refunds())
        return figures | {
            "customers": len({*map(self.customer, self.orders())}),
            "new_customers": sum(self.is_within(user["created_at"]) for user in self.shop.users),
            "uses": len(self.uses()),
        }

    @staticmethod
    def order_figures(orders, refunds):
        def total(name):
            return sum((order[name] for order in orders), ZERO)

        tax = total("cart_tax") + total("shipping_tax")
        refunded = sum((refund["amount"] for refund in refunds), ZERO)
        return {
            "orders": len(orders),
            "items": sum(order["items"] for order in orders),
            "total": text(total("total")),
            "discount": text(total("total_discount")),
            "shipping": text(total("total_shipping")),
            "tax": text(tax),
            "fees": text(total("fees")),
            "refunds": len(refunds),
            "refunded": text(refunded),
            "net": text(total("total") - total("total_shipping") - tax - refunded),
            "average_order": average(total("total"), len(orders)),
        }

    def by_interval(self, interval, figures):
        """Return figures by the label of each interval that has a record or a day."""
        labels = defaultdict(lambda: None)
        times = [
            *(order["created_at"] for order in self.shop.orders),
            *(refund["created_at"] for refund in self.shop.refunds),
            *(use["confirmed_at"] for use in self.shop.redemptions if use["confirmed_at"]),
            *(user["created_at"] for user in self.shop.users),
        ]
        for instant in filter(self.is_within, times):
            labels[label_of(instant, interval, self.zone)] = None
        within = self.is_within
        for label in labels:
            self.is_within = lambda instant, own=label: (
                within(instant) and label_of(instant, interval, self.zone) == own
            )
            labels[label] = figures()
        self.is_within = within
        return dict(labels)

    def currencies(self):
        return sorted(
            {
                order["currency"]
                for order in self.shop.orders
                if order["status"] in COUNTED and self.is_within(order["created_at"])
            }
            - {self.currency}
        )

    def coupon(self, of_coupon):
        """Return the figures of a coupon; ``of_coupon`` says whether a redemption is of it."""
        uses = self.uses(of_coupon)
        used = {
            use["order_id"]
            for use in self.shop.redemptions
            if use["status"] == "confirmed" and of_coupon(use)
        }
        orders = self.orders(lambda order: order["id"] in used)
        revenue = sum((order["total"] for order in orders), ZERO)
        times = [use["confirmed_at"] for use in uses]
        return {
            "uses": len(uses),
            "orders": len(orders),
            "customers": len({*map(self.user, uses)}),
            "discount": text(sum((use["amount"] or ZERO for use in uses), ZERO)),
            "revenue": text(revenue),
            "average_order": average(revenue, len(orders)),
            "new_customers": sum(self.is_first(order) for order in orders),
            "first_use": shown(min(times)) if times else None,
            "last_use": shown(max(times)) if times else None,
        }

    def is_first(self, order):
        theirs = [
            each
            for each in self.shop.orders
            if self.counts(each) and self.customer(each) == self.customer(order)
        ]
        return min(theirs, key=lambda each: (each["created_at"], each["id"])) is order

    def coupons(self):
        """Return the rows of the report of coupons, by ID or by the code of a deleted coupon."""
        known = {coupon["id"]: coupon for coupon in self.shop.coupons}
        rows = []
        for coupon_id in [*known, None]:
            figures = self.coupon(lambda use, own=coupon_id: use["coupon_id"] == own)
            coupon = known.get(coupon_id, {"code": "gone", "type": None, "status": None})
            about = {"id": coupon_id, **{name: coupon[name] for name in ("code", "type", "status")}}
            if figures["uses"] or figures["orders"]:
                rows.append({"coupon": about, **figures})
        return rows

    def customers(self):
        orders, refunds = defaultdict(list), defaultdict(list)
        for order in self.orders():
            orders[self.customer(order)].append(order)
        for refund in self.refunds():
            refunds[self.customer(self.orders_by_id[refund["order_id"]])].append(refund)
        rows = []
        for customer in {*orders, *refunds}:
            figures = self.order_figures(orders[customer], refunds[customer])
            rows.append({"customer": self.person(customer), **figures})
        return rows

    def person(self, customer):
        for user in self.shop.users:
            if user["id"] == customer:
                return {name: user[name] for name in ("id", "email", "first_name", "last_name")}
        latest = max(
            (
                each
                for each in self.shop.orders
                if self.counts(each) and self.customer(each) == customer
            ),
            key=lambda each: (each["created_at"], each["id"]),
        )
        names = {name: latest[f"billing_{name}"] for name in ("first_name", "last_name")}
        return {"id": 0, "email": customer.removeprefix("guest "), **names}

    def statuses(self, labels):
        rows = []
        for status, label in labels.items():
            orders = [
                order
                for order in self.shop.orders
                if order["status"] == status
                and order["currency"] == self.currency
                and self.is_within(order["created_at"])
            ]
            total = text(sum((order["total"] for order in orders), ZERO))
            rows.append({"status": status, "label": label, "orders": len(orders), "total": total})
        return rows


def shown(instant):
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
