"""Random records of the demo shop, as the services take them: customers, coupons and orders."""

import random
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from app.db.records import Record
from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.models.coupon import CouponStatus
from app.services.common.bulk import Data
from app.services.common.metadata import METADATA
from app.services.maintenance.demo import names

EXAMPLE = "grace"
EXAMPLE_EMAIL = f"{EXAMPLE}@example.com"
"""Account of the first customer, which the examples of the OpenAPI document name."""

DISCOUNTS = {"demo-percent": 10, "demo-newsletter": 5, "demo-welcome": 15, "demo-season": 20}
"""Percent of the coupons of discounted orders, by their codes."""

_FREQUENCIES = (5, 4, 2, 1)
"""How often orders have each of the coupons."""

_YEARS = timedelta(days=3 * 365)
_CENT = Decimal("0.01")
_LEVELS = ("bronze", "silver", "gold")
_DIGITAL = {number for number, *_, is_digital in names.PRODUCTS if is_digital}

_COUPON: Record = {
    "status": CouponStatus.PUBLISHED,
    "trashed_at": None,
    "individual_use": False,
    "product_ids": [],
    "exclude_product_ids": [],
    "usage_limit": 0,
    "usage_limit_per_user": 0,
    "limit_usage_to_x_items": 0,
    "usage_count": 0,
    "expiry_date": None,
    "enable_free_shipping": False,
    "product_category_ids": [],
    "exclude_product_category_ids": [],
    "exclude_sale_items": False,
    "minimum_amount": None,
    "maximum_amount": None,
    "customer_emails": [],
}


class DemoShop:
    """Generates records from a random number generator.

    Each record depends on the seed and its own number only, so that a resumed run creates the same
    records.

    Args:
        run: the run by the columns of ``DemoRun``.
        has_example: whether the first customer is the example account.
        coupons: the example coupons of the run, by their numbers.
    """

    def __init__(self, run: Record, coupons: Mapping[int, Data], *, has_example: bool) -> None:
        self._run = run
        self._coupons = coupons
        self._example_number = run["first_customer"] if has_example else None
        self.random = random.Random()  # nosec B311  # not used for secrets
        self.present: datetime = run["present"].astimezone(UTC).replace(microsecond=0)
        self.customer_ids: list[int] = []
        """The customers of the run, in the order of their numbers."""

    def _begin(self, record: str, number: int) -> float:
        """Begin a record, and return its position in the three years of the shop: 0 to 1."""
        self.random.seed(f"{self._run['seed']} {record} {number}")
        return float((number - self._run[f"first_{record}"]) / self._run[f"{record}s"])

    def _timestamp(self, progress: float) -> datetime:
        return (self.present - _YEARS * (1 - progress)).replace(microsecond=0)

    def customer(self, number: int) -> Data:
        """Return an account with an address."""
        timestamp = self._timestamp(self._begin("customer", number))
        first, last = self.random.choice(names.FIRST_NAMES), self.random.choice(names.LAST_NAMES)
        username = f"{_ascii(first)}.{_ascii(last)}{number}"
        if number == self._example_number:
            first, last, username = "Grace", "Hopper", EXAMPLE
        email = f"{username}@example.com"
        return {
            "username": username,
            "email": email,
            "first_name": first,
            "last_name": last,
            **self._addresses(first, last, email),
            "created_at": timestamp,
            METADATA: {
                "erp_id": f"K-{number:06}",
                "newsletter": number % 4 != 0,
                "loyalty": {"level": _LEVELS[number % 3], "points": number * 7 % 500},
            },
        }

    def coupon(self, number: int) -> Data:
        """Return a coupon. One in twenty coupons is in the trash."""
        timestamp = self._timestamp(self._begin("coupon", number))
        topic = self.random.choice(("Newsletter", "Loyalty", "Season"))
        coupon = _COUPON | {
            "created_at": timestamp,
            "updated_at": timestamp,
            "description": f"{topic} campaign",
            METADATA: {"campaign": topic.lower()},
        }
        if example := self._coupons.get(number):
            return {**coupon, **example}
        kind = self.random.choice(("fixed_cart", "percent", "fixed_product", "percent_product"))
        prefix = self.random.choice(("tea", "spring", "autumn", "welcome", "thanks"))
        coupon |= {
            "code": f"{prefix}-{number}",
            "type": kind,
            "amount": Decimal(self.random.randrange(5, 51, 5)).quantize(_CENT),
            "individual_use": self._is_one_of(5),
            "enable_free_shipping": self._is_one_of(10),
            "exclude_sale_items": self._is_one_of(5),
            "customer_emails": ["*@example.com"] if self._is_one_of(20) else [],
        }
        if "product" in kind:
            products = [product[0] for product in names.PRODUCTS]
            coupon["product_ids"] = sorted(self.random.sample(products, 2))
        if self._is_one_of(3):
            coupon |= {
                "usage_limit": self.random.randrange(10, 500, 10),
                "usage_limit_per_user": 1,
                "usage_count": self.random.randrange(10),
                "minimum_amount": Decimal(20),
            }
        if self._is_one_of(2):
            later = timedelta(days=self.random.randrange(30, 1500))
            coupon["expiry_date"] = (timestamp + later).date()
        if number % 20 == 0:
            coupon |= {"status": CouponStatus.TRASH, "trashed_at": timestamp}
        return coupon

    def order(self, number: int) -> Data:
        """Return an order of an account, with its addresses. One in ten orders is by a guest."""
        progress = self._begin("order", number)
        timestamp = self._timestamp(progress)
        completed_at = min(timestamp + timedelta(days=2), self.present)
        status = self.random.choice(names.STATUSES)
        is_done = status in {"completed", "refunded"}
        key = f"order_{self.random.getrandbits(32):08x}{number:05x}"  # unique, as the number is
        payment_id, payment_title = self.random.choice(names.PAYMENT)
        is_paid = is_done or status == "processing"
        tracking = {"carrier": "dhl", "number": f"{number * 7919:012}"}
        order: Record = {
            "order_number": str(number),
            "order_key": key,
            "status": status,
            "created_at": timestamp,
            "updated_at": completed_at if is_done else timestamp,
            "completed_at": completed_at if is_done else None,
            "payment_details": {
                "method_id": payment_id,
                "method_title": payment_title,
                "paid": is_paid,
            },
            "note": "Please ring twice." if self._is_one_of(20) else "",
            "customer_ip": f"192.0.2.{number % 254 + 1}",  # documentation address (RFC 5737)
            "customer_user_agent": "Mozilla/5.0",
            METADATA: {"erp_id": f"A-{number:07}"}
            | ({"tracking": tracking} if status == "completed" else {}),
            **self._items(),
        }
        order["download_permissions"] = [
            _permission(number, order, line)
            for line in order["line_items"]
            if line["product_id"] in _DIGITAL
        ]
        if not self.customer_ids or self._is_one_of(10):
            first = self.random.choice(names.FIRST_NAMES)
            last = self.random.choice(names.LAST_NAMES)
            email = f"{_ascii(first)}.{_ascii(last)}@example.net"
            return order | self._addresses(first, last, email)
        # Choose from the customers that exist at this time.
        known = max(1, int(len(self.customer_ids) * progress))
        place = self.random.randrange(known)
        account = self.customer(self._run["first_customer"] + place)
        addresses = {name: account[name] for name in ("billing_address", "shipping_address")}
        return {**order, **addresses, "customer_id": self.customer_ids[place]}

    def _is_one_of(self, number: int) -> bool:
        """Return true for one in a number of calls."""
        return self.random.randrange(number) == 0

    def _items(self) -> Record:
        """Return the items of an order. One in five orders has a coupon."""
        (code,) = self.random.choices(tuple(DISCOUNTS), _FREQUENCIES)
        percent = DISCOUNTS[code] if self._is_one_of(5) else 0
        lines = [self._line(percent) for _ in range(self.random.choice((1, 1, 2, 2, 3)))]
        discount = sum(line["subtotal"] - line["total"] for line in lines)
        method_id, method_title, sending = self.random.choice(names.SHIPPING)
        shipping = _money(sending)
        taxes = {"total": shipping, "total_tax": (shipping / 5).quantize(_CENT)}
        tax = sum(item["total_tax"] for item in (*lines, taxes))
        return {
            "line_items": lines,
            "shipping_lines": [{"method_id": method_id, "method_title": method_title, **taxes}],
            "tax_lines": [{"rate_id": 1, "code": "VAT-1", "title": "VAT", "total": tax}],
            "coupon_lines": [{"code": code, "amount": discount}] if percent else [],
        }

    def _line(self, percent: int) -> Record:
        number, name, sku, price, _ = self.random.choice(names.PRODUCTS)
        quantity = self.random.choice((1, 1, 1, 2, 3))
        subtotal = _money(price * quantity)
        total = (subtotal * (100 - percent) / 100).quantize(_CENT)
        return {
            "product_id": number,
            "name": name,
            "sku": sku,
            "quantity": quantity,
            "price": _money(price),
            "subtotal": subtotal,
            "total": total,
            "subtotal_tax": (subtotal / 5).quantize(_CENT),
            "total_tax": (total / 5).quantize(_CENT),
        }

    def _addresses(self, first: str, last: str, email: str) -> Record:
        city, state, postcode, country = self.random.choice(names.PLACES)
        parts = {
            "first_name": first,
            "last_name": last,
            "company": self.random.choice(names.COMPANIES),
            "address_1": f"{self.random.randrange(1, 200)} {self.random.choice(names.STREETS)}",
            "address_2": "",
            "city": city,
            "state": state,
            "postcode": postcode,
            "country": country,
            "email": email,
            "phone": self._phone(country),
        }
        return {
            "billing_address": {part: parts[part] for part in BILLING_PARTS},
            "shipping_address": {part: parts[part] for part in SHIPPING_PARTS},
        }

    def _phone(self, country: str) -> str:
        digits = iter(f"{self.random.randrange(10**6):06}")
        return re.sub("#", lambda _: next(digits), names.PHONES[country])


def _permission(number: int, order: Data, line: Data) -> Record:
    """Return the permission to download a line. Some are used up or expired."""
    product_id, key = line["product_id"], order["order_key"]
    file = f"file-{product_id}"
    return {
        "product_id": product_id,
        "download_id": file,
        "download_name": line["name"],
        "download_url": f"https://shop.example/?download_file={product_id}&order={key}&key={file}",
        "file_name": line["name"],
        "file_url": f"https://shop.example/files/{product_id}.pdf",
        "downloads_remaining": number % 4 if number % 3 == 0 else None,
        "access_expires": order["created_at"] + timedelta(days=730) if number % 5 == 0 else None,
    }


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _ascii(name: str) -> str:
    """Return a name in lower-case ASCII letters, for use in an e-mail address."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z]", "", plain)
