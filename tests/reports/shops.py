"""Random shops for the tests of reports, as rows of the tables."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy import insert

from app.conversions.emails import comparable_email
from app.db.session import run_in_transaction
from app.models import COUPONS, ORDER_REFUNDS, ORDERS, REDEMPTIONS, USERS
from app.models.address import ADDRESS_COLUMNS
from app.models.user import with_normalized
from app.services.orders.columns import guest_key
from app.services.orders.items import MAX_TOTAL
from tests.factories import ORDER

EMAILS = (
    "ada@example.com", "Ada@Example.com", "É@example.com", "é@example.com", "\u212a@example.com",
    "k@example.com", "K@example.com", "", "user3@example.com", "1003",
    "ada@m\u00fcnchen.example", "Ada@xn--mnchen-3ya.example",
)  # fmt: skip
"""Of guests. The Kelvin sign is a lower-case k in Python only."""

LONG_EMAIL = f"{random.Random(1).randbytes(2000).hex()}@example.com"
"""Of orders. An entry of an index on PostgreSQL has at most 2,704 bytes."""

CURRENCIES = ("USD", "USD", "USD", "EUR", "CHF")

STATUSES = (
    "completed", "completed", "processing", "refunded", "on-hold", "pending", "cancelled", "trash",
    "shipped", "packed",  # of a plugin; orders that are shipped are paid
)  # fmt: skip
COUPON = {
    "status": "published", "author_id": None, "type": "percent", "amount": Decimal("10.00"),
    "individual_use": False, "product_ids": [], "exclude_product_ids": [], "usage_limit": 0,
    "usage_limit_per_user": 0, "limit_usage_to_x_items": 0, "usage_count": 0, "expiry_date": None,
    "enable_free_shipping": False, "product_category_ids": [], "exclude_product_category_ids": [],
    "exclude_sale_items": False, "minimum_amount": None, "maximum_amount": None,
    "customer_emails": [], "description": "", "trashed_at": None,
}  # fmt: skip


@dataclass
class RandomShop:
    """Rows of a shop by table, each with its ID."""

    users: list = field(default_factory=list)
    coupons: list = field(default_factory=list)
    orders: list = field(default_factory=list)
    redemptions: list = field(default_factory=list)
    refunds: list = field(default_factory=list)


def email_of(address):
    """The columns of the address of an order."""
    return {"billing_email": address, "billing_email_normalized": guest_key(address)}


def random_shop(app, seed, middle, *, orders=60, largest=10**6, currencies=CURRENCIES):
    """Insert a random shop into empty tables and return it.

    Args:
        middle: the time around which the records were created.
        largest: the largest amount in cents.
        currencies: those of the orders.
    """
    shop, chance = RandomShop(), random.Random(seed)

    def instant():
        # Often at the turn of an hour, where intervals begin.
        moment = middle + timedelta(hours=chance.randrange(-24 * 14, 24 * 14))
        moment += timedelta(minutes=chance.choice((0, 0, 15, 30, 45)))
        return moment + timedelta(microseconds=chance.choice((-1, 0, 0, 0, 1)))

    def amount(most=largest):
        return Decimal(chance.choice((0, 1, chance.randrange(most), most))).scaleb(-2)

    first = {"user": 1000, "order": 1000, "coupon": 1000}
    blank = dict.fromkeys(ADDRESS_COLUMNS, "")
    for number in range(8):
        created = instant()
        account = {
            **blank, "id": first["user"] + number, "username": f"user{number}",
            "email": f"user{number}@example.com", "first_name": f"First {number}",
            "last_name": "Last", "created_at": created, "updated_at": created,
        }  # fmt: skip
        shop.users.append(with_normalized(account))
    for number in range(5):
        created, code = instant(), f"code-{number}"
        state = {"status": "trash", "trashed_at": created} if number == 4 else {}
        shop.coupons.append(
            COUPON | {"id": first["coupon"] + number, "code": code, "search_text": code,
                      "created_at": created, "updated_at": created} | state
        )  # fmt: skip
    for number in range(orders):
        created, is_guest = instant(), chance.random() < 0.5
        shop.orders.append(
            ORDER | {
                "id": first["order"] + number,
                "order_key": f"random_{number}",
                "customer_id": None if is_guest else chance.choice(shop.users)["id"],
                **email_of(chance.choice((*EMAILS, LONG_EMAIL))),
                "billing_first_name": f"Guest {number}",
                "status": chance.choice(STATUSES),
                "currency": chance.choice(currencies),
                "created_at": created, "updated_at": created,
                "total": amount(min(largest, MAX_TOTAL)), "total_discount": amount(), "total_shipping": amount(),
                "cart_tax": amount(), "shipping_tax": amount(), "fees": -amount(),
                "items": chance.randrange(10),
                "trashed_at": None,
            }
        )  # fmt: skip
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            refunded = instant()
            shop.refunds.append(
                {"order_id": first["order"] + number, "created_at": refunded, "reason": "",
                 "updated_at": refunded, "amount": amount(largest - 1) + Decimal("0.01"), "line_items": [],
                 "refunded_by": None}
            )  # fmt: skip
    _add_redemptions(shop, chance, instant, amount)
    tables = (
        (USERS, shop.users), (COUPONS, shop.coupons), (ORDERS, shop.orders),
        (REDEMPTIONS, shop.redemptions), (ORDER_REFUNDS, shop.refunds),
    )  # fmt: skip
    with app.app_context():
        for table, rows in tables:
            run_in_transaction(lambda session, t=table, r=rows: session.execute(insert(t), r))
    return shop


def _add_redemptions(shop, chance, instant, amount):
    for number in range(60):
        # Of an order, without an order, or of an order that was deleted.
        order = chance.choice((chance.choice(shop.orders), None, {"id": 5_000_000 + number}))
        coupon = chance.choice([*shop.coupons, None])
        used = {(each["order_id"], each["coupon_id"]) for each in shop.redemptions}
        key = (order["id"] if order else None, coupon["id"] if coupon else None)
        if order and key in used:
            continue
        status = chance.choice(("confirmed", "confirmed", "confirmed", "reserved", "released"))
        created, email = instant(), chance.choice(EMAILS)
        is_erased = chance.random() < 0.1
        is_account = chance.random() < 0.4
        shop.redemptions.append(
            {
                "coupon_id": key[1], "code": coupon["code"] if coupon else "gone",
                "reference": f"cart-{number}", "order_id": key[0],
                "customer_id": chance.choice(shop.users)["id"] if is_account else None,
                "email": "" if is_erased else email,
                "email_normalized": "erased:hash" if is_erased else comparable_email(email),
                "amount": chance.choice((None, amount())), "status": status, "holds_slot": False,
                "created_at": created, "updated_at": created, "expires_at": None,
                "confirmed_at": instant() if status == "confirmed" else None,
            }
        )  # fmt: skip


def utc(text):
    """Return a UTC time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
