"""Coupons of the demo shop with limits, and the redemptions of its carts and orders."""

from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.catalog import RedemptionEffect, current_catalog
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.search import search_text
from app.models import COUPONS, REDEMPTIONS
from app.models.coupon import CouponStatus

PERCENT = "demo-percent"
"""The coupon of carts."""

CAMPAIGNS = {PERCENT: 10, "demo-newsletter": 5, "demo-welcome": 15, "demo-season": 20}
"""Percent of the coupons of discounted orders, by their codes."""

CAMPAIGN_WEIGHTS = (5, 4, 2, 1)
"""How often orders have each of the coupons."""

_OPEN: Record = {
    "individual_use": False,
    "product_ids": [],
    "usage_limit_per_user": 0,
    "usage_count": 0,
    "expiry_date": None,
    "enable_free_shipping": False,
    "exclude_sale_items": False,
    "minimum_amount": None,
    "customer_emails": [],
}
GENERATED = tuple(f"gift-{digits}" for digits in ("2759", "3864", "4297", "5386", "7432"))
"""Codes of a batch of generated coupons."""

# The first coupons of a demo shop are examples.
LIMITED: tuple[Record, ...] = (
    _OPEN
    | {"code": PERCENT, "type": "percent", "amount": Decimal("10.00"), "usage_limit": 1_000_000},
    _OPEN
    | {
        "code": "demo-vip",
        "type": "fixed_cart",
        "amount": Decimal("25.00"),
        "usage_limit": 50,
        "usage_limit_per_user": 1,
        "minimum_amount": Decimal("100.00"),
    },
    _OPEN
    | {
        "code": "demo-last",
        "type": "fixed_cart",
        "amount": Decimal("5.00"),
        "usage_limit": 1,
        "usage_count": 1,
    },
    *(
        _OPEN | {"code": code, "type": "fixed_cart", "amount": Decimal("20.00"), "usage_limit": 1}
        for code in GENERATED
    ),
    *(
        _OPEN | {"code": code, "type": "percent", "amount": Decimal(percent), "usage_limit": 0}
        for code, percent in CAMPAIGNS.items()
        if code != PERCENT
    ),
)
# Statuses of the first redemptions, which belong to carts, in the order of their IDs.
_CARTS = ("confirmed",) * 3 + ("released",) * 2 + ("reserved",) * 4 + ("expired",)


def limited_coupons(first: int) -> dict[int, Record]:
    """Return the changes that make the first coupons of a run examples, by coupon number."""
    codes = [limits["code"] for limits in LIMITED]
    published = COUPONS.c.status == CouponStatus.PUBLISHED
    found = fetch(select(COUPONS.c.code).where(COUPONS.c.code.in_(codes), published))
    taken = {row[0] for row in found}
    numbered = enumerate(LIMITED, start=first)
    return {number: limits for number, limits in numbered if limits["code"] not in taken}


def with_limits(coupon: Record, limits: Record) -> Record:
    """Return a published coupon with limits."""
    changed = coupon | limits | {"status": CouponStatus.PUBLISHED, "trashed_at": None}
    return changed | {"search_text": search_text(changed["code"], changed["description"])}


def add_cart_redemptions(session: Session, present: datetime) -> None:
    """Add redemptions of carts to a shop that has none."""
    coupon_id = _coupon_ids(session).get(PERCENT)
    if coupon_id is None or session.scalar(select(REDEMPTIONS.c.id).limit(1)):
        return
    rows = []
    for number, status in enumerate(_CARTS, start=1):
        email = f"guest{number}@example.net"
        expires = {
            "reserved": present + timedelta(days=7),
            "expired": present - timedelta(hours=1),
        }.get(status)
        rows.append(
            _redemption(coupon_id, PERCENT, f"cart-{number}", email, present - timedelta(hours=2))
            | {
                "amount": Decimal("2.79"),
                "status": "reserved" if status == "expired" else status,
                "holds_slot": status in {"reserved", "expired"},
                "expires_at": expires,
            }
        )
    _store(session, coupon_id, rows)


def add_order_redemptions(session: Session, ids: list[int], orders: list[Record]) -> None:
    """Add the coupon uses of orders of the demo shop."""
    coupon_ids = _coupon_ids(session)
    effects = current_catalog().redemption_effects
    rows: dict[int, list[Record]] = {}
    for order_id, order in zip(sorted(ids), orders, strict=True):
        for line in order["coupon_lines"]:
            coupon_id = coupon_ids.get(line["code"])
            if coupon_id is None:
                continue
            effect = effects[order["status"]]
            if effect == RedemptionEffect.RELEASE:
                status = "released"
            else:
                status = "reserved" if effect == RedemptionEffect.RESERVE else "confirmed"
            email = order["billing_email"]
            rows.setdefault(coupon_id, []).append(
                _redemption(
                    coupon_id, line["code"], f"order-{order_id}", email, order["created_at"]
                )
                | {
                    "order_id": order_id,
                    "customer_id": order["customer_id"],
                    "amount": Decimal(line["amount"]),
                    "status": status,
                    "holds_slot": status == "reserved",
                    "updated_at": order["updated_at"],
                }
            )
    for coupon_id, of_coupon in rows.items():
        _store(session, coupon_id, of_coupon)


def _coupon_ids(session: Session) -> dict[str, int]:
    """Return the IDs of the coupons of orders and carts by their codes."""
    found = select(COUPONS.c.code, COUPONS.c.id).where(
        COUPONS.c.code.in_(CAMPAIGNS), COUPONS.c.status == CouponStatus.PUBLISHED
    )
    return {row.code: row.id for row in session.execute(found)}


def _redemption(
    coupon_id: int, code: str, reference: str, email: str, timestamp: datetime
) -> Record:
    return {
        "coupon_id": coupon_id,
        "code": code,
        "reference": reference,
        "order_id": None,
        "customer_id": None,
        "email": email,
        "email_normalized": comparable_email(email),
        "created_at": timestamp,
        "updated_at": timestamp,
        "expires_at": None,
    }


def _store(session: Session, coupon_id: int, rows: list[Record]) -> None:
    for row in rows:
        row["confirmed_at"] = row["updated_at"] if row["status"] == "confirmed" else None
    session.execute(insert(REDEMPTIONS), rows)
    confirmed = sum(row["status"] == "confirmed" for row in rows)
    held = sum(row["holds_slot"] for row in rows)
    session.execute(
        update(COUPONS)
        .where(COUPONS.c.id == coupon_id)
        .values(
            usage_count=COUPONS.c.usage_count + confirmed,
            reserved_count=COUPONS.c.reserved_count + held,
        )
    )
