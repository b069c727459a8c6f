"""Random records of the demo shop: customers, coupons and orders."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import itemgetter

from app.db.records import Record
from app.db.search import search_text
from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.models.coupon import CouponStatus
from app.models.user import with_normalized
from app.services.customers.columns import BLANK
from app.services.maintenance.demo import names
from app.services.maintenance.demo.examples import CAMPAIGN_WEIGHTS, CAMPAIGNS, with_limits
from app.services.orders.columns import BLANK as BLANK_ORDER
from app.services.orders.columns import derived_columns
from app.services.orders.item_changes import changed_items
from app.services.orders.items import OrderItems

EXAMPLE = "grace"
EXAMPLE_EMAIL = f"{EXAMPLE}@example.com"
"""Account of the first customer, which the examples of the OpenAPI document name."""

MAX_ITEMS = 6
"""Items of an order: three lines, and one of each other kind."""

ADDRESSES = (
    *(f"billing_{part}" for part in BILLING_PARTS),
    *(f"shipping_{part}" for part in SHIPPING_PARTS),
)
"""Columns of accounts and orders with the parts of their addresses."""

YEARS = timedelta(days=3 * 365)
CENT = Decimal("0.01")


class DemoShop:
    """Generates records from one random number generator."""

    def __init__(self, seed: int, present: datetime, currency: str) -> None:
        self.seed = seed
        self.random = random.Random(seed)  # nosec B311  # not used for secrets
        self.present = present
        self.currency = currency
        self.customer_ids: list[int] = []
        self.progress = 0.0
        self.example_number: int | None = None
        """The number of the customer with the example account, if it is available."""
        self.item_ids: Iterator[int] = iter(())
        """IDs for the items of orders."""
        self.limited_coupons: dict[int, Record] = {}
        """Limits of the example coupons whose codes are available, by coupon number."""

    def at(self, progress: float) -> DemoShop:
        """Set the progress of the shop from 0 to 1, which sets the time of the next records."""
        self.progress = progress
        return self

    def begin(self, part: str) -> None:
        """Seed the generator for a part, so that a resumed run creates the same records."""
        self.random.seed(f"{self.seed} {part}")

    def customer(self, number: int) -> Record:
        """Return a user with an address."""
        first, last = self.random.choice(names.FIRST_NAMES), self.random.choice(names.LAST_NAMES)
        username = f"{_ascii(first)}.{_ascii(last)}{number}"
        if number == self.example_number:
            first, last, username = "Grace", "Hopper", EXAMPLE
        timestamp = self._timestamp()
        account = {
            **BLANK,
            "username": username,
            "email": f"{username}@example.com",
            "first_name": first,
            "last_name": last,
            "created_at": timestamp,
            "updated_at": timestamp,
        }
        return with_normalized(account | self._addresses(first, last, str(account["email"])))

    def coupon(self, number: int) -> Record:
        """Return a coupon. One in twenty coupons is in the trash."""
        kind = self.random.choice(("fixed_cart", "percent", "fixed_product", "percent_product"))
        code = f"{self.random.choice(('tea', 'spring', 'autumn', 'welcome', 'thanks'))}-{number}"
        timestamp = self._timestamp()
        limited = self.random.random() < 0.3
        expires = self.random.random() < 0.5
        description = f"{self.random.choice(('Newsletter', 'Loyalty', 'Season'))} campaign"
        products = [product[0] for product in names.PRODUCTS]
        coupon = {
            "status": CouponStatus.TRASH if number % 20 == 0 else CouponStatus.PUBLISHED,
            "trashed_at": timestamp if number % 20 == 0 else None,
            "author_id": None,
            "code": code,
            "type": kind,
            "created_at": timestamp,
            "updated_at": timestamp,
            "amount": Decimal(self.random.randrange(5, 51, 5)).quantize(CENT),
            "individual_use": self.random.random() < 0.2,
            "product_ids": sorted(self.random.sample(products, 2)) if "product" in kind else [],
            "exclude_product_ids": [],
            "usage_limit": self.random.randrange(10, 500, 10) if limited else 0,
            "usage_limit_per_user": 1 if limited else 0,
            "limit_usage_to_x_items": 0,
            "usage_count": self.random.randrange(10) if limited else 0,
            "expiry_date": (timestamp + timedelta(days=self.random.randrange(30, 1500))).date()
            if expires
            else None,
            "enable_free_shipping": self.random.random() < 0.1,
            "product_category_ids": [],
            "exclude_product_category_ids": [],
            "exclude_sale_items": self.random.random() < 0.2,
            "minimum_amount": Decimal(20) if limited else None,
            "maximum_amount": None,
            "customer_emails": ["*@example.com"] if self.random.random() < 0.05 else [],
            "description": description,
            "search_text": search_text(code, description),
        }
        limits = self.limited_coupons.get(number)
        return with_limits(coupon, limits) if limits else coupon

    def order(self, number: int) -> Record:
        """Return an order with the addresses of a guest. One in ten orders is by a guest.

        ``with_addresses`` replaces the addresses of the other ones by those of their accounts.
        """
        guest = not self.customer_ids or self.random.random() < 0.1
        # Choose from the customers that exist at this time, in the order of their IDs.
        known = max(1, int(len(self.customer_ids) * self.progress))
        customer_id = None if guest else self.customer_ids[self.random.randrange(known)]
        first, last = self.random.choice(names.FIRST_NAMES), self.random.choice(names.LAST_NAMES)
        email = f"{_ascii(first)}.{_ascii(last)}@example.net"
        status = self.random.choice(names.STATUSES)
        timestamp = self._timestamp()
        present = self.present.astimezone(UTC).replace(microsecond=0)
        completed_at = min(timestamp + timedelta(days=2), present)
        done = status in {"completed", "refunded"}
        items = self._items()
        payment_id, payment_title = self.random.choice(names.PAYMENT)
        return {
            **BLANK_ORDER,
            **self._addresses(first, last, email),
            **items,
            "customer_id": customer_id,
            "order_number": str(number),
            # Unique, because the order number is unique.
            "order_key": f"order_{self.random.getrandbits(32):08x}{number:05x}",
            "status": status,
            "currency": self.currency,
            "created_at": timestamp,
            "updated_at": completed_at if done else timestamp,
            "completed_at": completed_at if done else None,
            "payment_method_id": payment_id,
            "payment_method_title": payment_title,
            "payment_paid": status in {"completed", "processing", "refunded"},
            "paid_at": timestamp if status in {"completed", "processing", "refunded"} else None,
            "note": "Please ring twice." if self.random.random() < 0.05 else "",
            "customer_ip": f"192.0.2.{number % 254 + 1}",  # documentation address (RFC 5737)
            "customer_user_agent": "Mozilla/5.0",
        }

    def _items(self) -> Record:
        """Return the items of an order, with their sums. One in five orders has a coupon."""
        discounted = self.random.random() < 0.2
        (code,) = self.random.choices(tuple(CAMPAIGNS), CAMPAIGN_WEIGHTS)
        percent = CAMPAIGNS[code] if discounted else 0
        lines = [self._line(percent) for _ in range(self.random.choice((1, 1, 2, 2, 3)))]
        discount, tax = (
            sum((amount(line) for line in lines), Decimal(0))
            for amount in (lambda line: line["subtotal"] - line["total"], itemgetter("total_tax"))
        )
        method_id, method_title, sending = self.random.choice(names.SHIPPING)
        shipping = _money(sending)
        shipping_tax = (shipping / 5).quantize(CENT)
        items = changed_items(
            OrderItems(),
            {
                "line_items": lines,
                "shipping_lines": [
                    {
                        "method_id": method_id,
                        "method_title": method_title,
                        "total": shipping,
                        "total_tax": shipping_tax,
                    }
                ],
                "tax_lines": [
                    {"rate_id": 1, "code": "VAT-1", "title": "VAT", "total": tax + shipping_tax}
                ],
                "coupon_lines": [{"code": code, "amount": discount}] if discounted else [],
            },
            self.item_ids,
        )
        return items.columns_with_sums(0)

    def _line(self, percent: int) -> Record:
        number, name, sku, price, _ = self.random.choice(names.PRODUCTS)
        quantity = self.random.choice((1, 1, 1, 2, 3))
        subtotal = _money(price * quantity)
        total = (subtotal * (100 - percent) / 100).quantize(CENT)
        return {
            "product_id": number,
            "name": name,
            "sku": sku,
            "quantity": quantity,
            "price": _money(price),
            "subtotal": subtotal,
            "total": total,
            "subtotal_tax": (subtotal / 5).quantize(CENT),
            "total_tax": (total / 5).quantize(CENT),
        }

    def _timestamp(self) -> datetime:
        return (self.present - YEARS * (1 - self.progress)).astimezone(UTC).replace(microsecond=0)

    def _addresses(self, first: str, last: str, email: str) -> dict[str, str]:
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
        billing = {f"billing_{part}": parts[part] for part in BILLING_PARTS}
        return billing | {f"shipping_{part}": parts[part] for part in SHIPPING_PARTS}

    def _phone(self, country: str) -> str:
        digits = iter(f"{self.random.randrange(10**6):06}")
        return re.sub("#", lambda _: next(digits), names.PHONES[country])


def with_addresses(order: Record, accounts: Mapping[int | None, Record]) -> Record:
    """Return an order with the addresses of its account, and its searchable text.

    Args:
        accounts: the columns ``ADDRESSES`` of accounts by ID.
    """
    complete = order | accounts.get(order["customer_id"], {})
    return complete | derived_columns(complete)


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _ascii(name: str) -> str:
    """Return a name in lower-case ASCII letters, for use in an e-mail address."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z]", "", plain)
