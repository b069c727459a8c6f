"""What the demo shop is made of: names, places, products, and what chance makes of them."""

from __future__ import annotations

import random
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.models.coupon import CouponStatus
from app.models.user import with_keys
from app.search import search_text
from app.services.accounts import BLANK

Record = dict[str, Any]

YEARS = timedelta(days=3 * 365)
CENT = Decimal("0.01")

FIRST_NAMES = [
    "Ada",
    "Alan",
    "Amélie",
    "Anna",
    "Barbara",
    "Carlos",
    "Chloé",
    "Dennis",
    "Edsger",
    "Elena",
    "Émile",
    "Fatima",
    "Frances",
    "Grace",
    "Hedy",
    "Hiro",
    "Ida",
    "Ivan",
    "Jana",
    "Jean",
    "Jürgen",
    "Katherine",
    "Ken",
    "Lea",
    "Linus",
    "Łukasz",
    "Margaret",
    "Mary",
    "Mei",
    "Niklaus",
    "Olga",
    "Omar",
    "Priya",
    "Radia",
    "Rózsa",
    "Søren",
    "Sophie",
    "Tim",
    "Yuki",
    "Zoë",
]
LAST_NAMES = [
    "Allen",
    "Bartik",
    "Bauer",
    "Berners",
    "Cerf",
    "Díaz",
    "Dijkstra",
    "Easley",
    "Fischer",
    "García",
    "Hamilton",
    "Hopper",
    "Ivanova",
    "Jensen",
    "Johnson",
    "Kaya",
    "Knuth",
    "Kowalski",
    "Lamarr",
    "Lamport",
    "Lovelace",
    "Martin",
    "Müller",
    "Nakamura",
    "Nowak",
    "O'Neil",
    "Péter",
    "Perlman",
    "Ritchie",
    "Rossi",
    "Sato",
    "Silva",
    "Smith",
    "Svensson",
    "Tanaka",
    "Thompson",
    "Torvalds",
    "Turing",
    "Vaughan",
    "Wirth",
]
PLACES = (
    ("Berlin", "BE", "10115", "DE"), ("Köln", "NW", "50667", "DE"), ("Wien", "", "1010", "AT"),
    ("Zürich", "ZH", "8001", "CH"), ("Paris", "", "75001", "FR"), ("Lyon", "", "69001", "FR"),
    ("Milano", "MI", "20121", "IT"), ("Madrid", "M", "28001", "ES"), ("Kraków", "", "30-001", "PL"),
    ("Aarhus", "", "8000", "DK"), ("London", "", "EC1A 1BB", "GB"), ("Austin", "TX", "73301", "US"),
    ("Portland", "OR", "97201", "US"), ("Toronto", "ON", "M5H 2N2", "CA"),
)  # fmt: skip
STREETS = (
    "Main Street",
    "Hauptstraße",
    "Rue de la Paix",
    "Via Roma",
    "Station Road",
    "Calle Mayor",
)
COMPANIES = ("", "", "", "Analytical Engines Ltd", "Nordwind GmbH", "Café Zola")
PRODUCTS = tuple(
    (number, name, f"SKU-{number:03}", cents, digital)
    for number, (name, cents, digital) in enumerate(
        (
            ("Teapot", 3450, False), ("Tea, Darjeeling, 250 g", 1290, False),
            ("Tea, Sencha, 100 g", 990, False), ("Mug, blue", 850, False),
            ("Mug, white", 850, False), ("Kettle", 5900, False), ("Honey", 640, False),
            ("Biscuits", 375, False), ("Tray, oak", 4200, False), ("Strainer", 560, False),
            ("E-book: The Way of Tea", 1199, True), ("Recipe collection (PDF)", 499, True),
        ),
        start=1,
    )
)  # fmt: skip
STATUSES = ("completed",) * 6 + ("processing",) * 2 + (
    "pending", "on-hold", "cancelled", "refunded", "failed")  # fmt: skip
SHIPPING = (("flat_rate", "Flat rate", 490), ("free_shipping", "Free shipping", 0))
PAYMENT = (("bacs", "Bank transfer"), ("card", "Credit card"), ("cod", "Cash on delivery"))


class DemoShop:
    """Makes up records, one after the other, from one source of chance."""

    def __init__(self, seed: int, present: datetime) -> None:
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311  # nosec B311  # no secrets
        self.present = present
        self.customer_ids: list[int] = []
        self.progress = 0.0

    def at(self, progress: float) -> DemoShop:
        """Go to a point of the shop's life, from 0 to 1; what is made next happens there."""
        self.progress = progress
        return self

    def begin(self, part: str) -> None:
        """Begin a part, which is the same whatever was made before: so a run can be resumed."""
        self.chance.seed(f"{self.seed} {part}")

    def customer(self, number: int) -> Record:
        """Return a user with an address."""
        first, last = self.chance.choice(FIRST_NAMES), self.chance.choice(LAST_NAMES)
        username = f"{_ascii(first)}.{_ascii(last)}{number}"
        moment = self._moment()
        account = {
            **BLANK,
            "username": username,
            "email": f"{username}@example.com",
            "first_name": first,
            "last_name": last,
            "created_at": moment,
            "updated_at": moment,
        }
        return with_keys(account | self._addresses(first, last, str(account["email"])))

    def coupon(self, number: int) -> Record:
        """Return a coupon, published or, one in twenty, in the trash."""
        kind = self.chance.choice(("fixed_cart", "percent", "fixed_product", "percent_product"))
        code = f"{self.chance.choice(('tea', 'spring', 'summer', 'welcome', 'thanks'))}-{number}"
        moment = self._moment()
        limited = self.chance.random() < 0.3
        expires = self.chance.random() < 0.5
        description = f"{self.chance.choice(('Newsletter', 'Loyalty', 'Season'))} campaign"
        products = [product[0] for product in PRODUCTS]
        return {
            "status": CouponStatus.TRASH if number % 20 == 0 else CouponStatus.PUBLISHED,
            "author_id": None,
            "code": code,
            "type": kind,
            "created_at": moment,
            "updated_at": moment,
            "amount": Decimal(self.chance.randrange(5, 51, 5)).quantize(CENT),
            "individual_use": self.chance.random() < 0.2,
            "product_ids": sorted(self.chance.sample(products, 2)) if "product" in kind else [],
            "exclude_product_ids": [],
            "usage_limit": self.chance.randrange(10, 500, 10) if limited else 0,
            "usage_limit_per_user": 1 if limited else 0,
            "limit_usage_to_x_items": 0,
            "usage_count": self.chance.randrange(10) if limited else 0,
            "expiry_date": (moment + timedelta(days=self.chance.randrange(30, 1500))).date()
            if expires
            else None,
            "enable_free_shipping": self.chance.random() < 0.1,
            "product_category_ids": [],
            "exclude_product_category_ids": [],
            "exclude_sale_items": self.chance.random() < 0.2,
            "minimum_amount": Decimal(20) if limited else None,
            "maximum_amount": None,
            "customer_emails": ["*@example.com"] if self.chance.random() < 0.05 else [],
            "description": description,
            "search_text": search_text(code, description),
        }

    def order(self, number: int) -> Record:
        """Return an order of a customer or, one in ten, of a guest."""
        guest = not self.customer_ids or self.chance.random() < 0.1
        # Only those who are customers by then: they came in the order of their ids.
        known = max(1, int(len(self.customer_ids) * self.progress))
        customer_id = None if guest else self.customer_ids[self.chance.randrange(known)]
        first, last = self.chance.choice(FIRST_NAMES), self.chance.choice(LAST_NAMES)
        email = f"{_ascii(first)}.{_ascii(last)}@example.net"
        status = self.chance.choice(STATUSES)
        moment = self._moment()
        done = status in {"completed", "refunded"}
        discounted = self.chance.random() < 0.2
        lines = [
            self._line(number * 10 + position, discounted=discounted)
            for position in range(self.chance.choice((1, 1, 2, 2, 3)))
        ]
        subtotal, after_discount, tax = (
            sum((Decimal(line[key]) for line in lines), Decimal(0))
            for key in ("subtotal", "total", "total_tax")
        )
        discount = subtotal - after_discount
        method_id, method_title, sending = self.chance.choice(SHIPPING)
        shipping = _money(sending)
        shipping_tax = (shipping / 5).quantize(CENT)
        payment_id, payment_title = self.chance.choice(PAYMENT)
        addresses = self._addresses(first, last, email)
        return {
            **addresses,
            "customer_id": customer_id,
            "order_number": str(number),
            # Unique: no other order has this number.
            "order_key": f"order_{self.chance.getrandbits(32):08x}{number:05x}",
            "status": status,
            "currency": "EUR",
            "created_at": moment,
            "updated_at": moment + timedelta(days=2) if done else moment,
            "completed_at": moment + timedelta(days=2) if done else None,
            "total": subtotal - discount + tax + shipping + shipping_tax,
            "subtotal": subtotal,
            "cart_tax": tax,
            "shipping_tax": shipping_tax,
            "total_shipping": shipping,
            "total_discount": discount,
            "payment_method_id": payment_id,
            "payment_method_title": payment_title,
            "payment_paid": status in {"completed", "processing", "refunded"},
            "note": "Please ring twice." if self.chance.random() < 0.05 else "",
            "customer_ip": f"192.0.2.{number % 254 + 1}",  # RFC 5737: nobody's address
            "customer_user_agent": "Mozilla/5.0",
            "line_items": lines,
            "shipping_lines": [
                {"id": number * 10 + 5, "method_id": method_id, "method_title": method_title,
                 "total": str(shipping)}
            ],
            "tax_lines": [
                {"id": number * 10 + 6, "rate_id": 1, "code": "VAT-1", "title": "VAT",
                 "total": str(tax + shipping_tax), "compound": False}
            ],
            "fee_lines": [],
            "coupon_lines": [{"id": number * 10 + 7, "code": "tea-1", "amount": str(discount)}]
            if discounted
            else [],
            "search_text": search_text(
                str(number), f"{first} {last}", email, addresses["billing_company"],
                addresses["billing_city"],
            ),
        }  # fmt: skip

    def _line(self, line_id: int, *, discounted: bool) -> Record:
        number, name, sku, cents, _ = self.chance.choice(PRODUCTS)
        quantity = self.chance.choice((1, 1, 1, 2, 3))
        subtotal = _money(cents * quantity)
        total = (subtotal * 9 / 10).quantize(CENT) if discounted else subtotal
        return {
            "id": line_id,
            "subtotal": str(subtotal),
            "subtotal_tax": str((subtotal / 5).quantize(CENT)),
            "total": str(total),
            "total_tax": str((total / 5).quantize(CENT)),
            "price": str(_money(cents)),
            "quantity": quantity,
            "tax_class": None,
            "name": name,
            "product_id": number,
            "sku": sku,
            "meta": [],
        }

    def _moment(self) -> datetime:
        return (self.present - YEARS * (1 - self.progress)).astimezone(UTC).replace(microsecond=0)

    def _addresses(self, first: str, last: str, email: str) -> dict[str, str]:
        city, state, postcode, country = self.chance.choice(PLACES)
        parts = {
            "first_name": first,
            "last_name": last,
            "company": self.chance.choice(COMPANIES),
            "address_1": f"{self.chance.randrange(1, 200)} {self.chance.choice(STREETS)}",
            "address_2": "",
            "city": city,
            "state": state,
            "postcode": postcode,
            "country": country,
            "email": email,
            "phone": f"+49 30 {self.chance.randrange(10**6):06}",
        }
        billing = {f"billing_{part}": parts[part] for part in BILLING_PARTS}
        return billing | {f"shipping_{part}": parts[part] for part in SHIPPING_PARTS}


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _ascii(name: str) -> str:
    """Return a name as it could stand in an address."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z]", "", plain)
