"""Records of the demo shop that examples and guides name, and its redemptions."""

from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import RowMapping, SQLColumnExpression, insert, select, update
from sqlalchemy.orm import Session

from app.auth.encryption import encrypt
from app.catalog import RedemptionEffect, current_catalog
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.search import search_text
from app.models import (
    COUPONS,
    ORDERS,
    REDEMPTIONS,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
    Campaign,
    CouponBatch,
    OrderNote,
    OrderRefund,
)
from app.models.coupon import CouponStatus
from app.models.webhook import WebhookFormat, WebhookStatus
from app.models.webhook_delivery import DeliveryState, new_delivery
from app.outbound.signatures import new_secret
from app.services.campaigns.writes import BLANK, with_search_text

_REFUNDED = Decimal("1.00")

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


def add_examples(
    session: Session, present: datetime, user_id: int, first_order_id: int | None
) -> None:
    """Add a batch, a campaign, an order note, a refund and webhooks to a shop without them.

    Args:
        first_order_id: the first order of the demo shop, to which the note and the refund belong;
            None for a shop without orders. Other orders of the shop stay as they are.
    """
    if _is_empty(session, CouponBatch.id):
        _add_batch(session, present, user_id)
    if _is_empty(session, Campaign.id):
        _add_campaign(session, present)
    orders = session.execute(select(ORDERS).where(ORDERS.c.id == first_order_id)).mappings()
    if order := orders.first():
        if _is_empty(session, OrderNote.id):
            _add_note(session, order)
        if _is_empty(session, OrderRefund.id):
            _add_refund(session, order, user_id)
    if _is_empty(session, WEBHOOKS.c.id):
        _add_webhooks(session, present, user_id)


def _is_empty(session: Session, identity: SQLColumnExpression[int]) -> bool:
    return session.scalar(select(identity).limit(1)) is None


def _add_batch(session: Session, present: datetime, user_id: int) -> None:
    """Make the coupons with generated codes a batch."""
    ids = session.scalars(select(COUPONS.c.id).where(COUPONS.c.code.in_(GENERATED))).all()
    if ids:
        batch = {
            "author_id": user_id,
            "created_at": present,
            "count": len(ids),
            "prefix": "gift-",
            "pattern": "####",
            "charset": "23456789",
            "name": "Gift cards",
        }
        batch_id = session.scalar(insert(CouponBatch).values(batch).returning(CouponBatch.id))
        session.execute(update(COUPONS).where(COUPONS.c.id.in_(ids)).values(batch_id=batch_id))


def _add_campaign(session: Session, present: datetime) -> None:
    """Let the coupons with generated codes share limits and a budget."""
    campaign = {
        "name": "Gift cards",
        "created_at": present,
        "updated_at": present,
        "usage_limit": 1000,
        "usage_limit_per_user": 1,
        "budget": Decimal("5000.00"),
        "tags": ["gift"],
        "combines_with": ["-gift"],
    }
    values = with_search_text({**BLANK, **campaign})
    campaign_id = session.scalar(insert(Campaign).values(values).returning(Campaign.id))
    has_code = COUPONS.c.code.in_(GENERATED)
    session.execute(update(COUPONS).where(has_code).values(campaign_id=campaign_id))


def _add_refund(session: Session, order: RowMapping, user_id: int) -> None:
    """Refund a part of an order."""
    if order["total"] <= _REFUNDED:
        return
    refund = {
        "order_id": order["id"],
        "created_at": order["updated_at"],
        "updated_at": order["updated_at"],
        "amount": _REFUNDED,
        "reason": "One mug arrived broken.",
        "refunded_by": user_id,
        "line_items": [],
    }
    session.execute(insert(OrderRefund).values(refund))
    of_order = ORDERS.c.id == order["id"]
    session.execute(update(ORDERS).where(of_order).values(total_refunded=_REFUNDED))


def _add_note(session: Session, order: RowMapping) -> None:
    """Add a note to an order."""
    note = {
        "order_id": order["id"],
        "created_at": order["created_at"],
        "note": "Packed, waiting for the courier.",
        "customer_note": False,
    }
    session.execute(insert(OrderNote).values(note))


def _add_webhooks(session: Session, present: datetime, user_id: int) -> None:
    """Add a webhook with a delivery, in the form of a plugin if there is one, and another webhook.

    Both are paused, so that nothing is sent.
    """
    form_of_plugin = next(iter(current_catalog().webhook_forms), WebhookFormat.STANDARD)
    ids = []
    for name, form, topics, delivered_at in (
        ("Warehouse", form_of_plugin, ["order.updated"], present),
        ("Accounting", WebhookFormat.STANDARD, ["order.*"], None),
    ):
        webhook = {
            "name": name,
            "format": form,
            "status": WebhookStatus.PAUSED,
            "topics": topics,
            "delivery_url": "https://receiver.example/hooks",
            "user_id": user_id,
            "position": 0,
            "secret_encrypted": encrypt(new_secret()),
            "created_at": present,
            "updated_at": present,
            "last_delivery_at": delivered_at,
            "failure_count": 0,
        }
        ids.append(session.scalar(insert(WEBHOOKS).values(webhook).returning(WEBHOOKS.c.id)))
    session.execute(insert(WEBHOOK_DELIVERIES).values(_delivered_ping(ids[0], present)))


def _delivered_ping(webhook_id: int | None, present: datetime) -> Record:
    """Return the first ping of a webhook, as it is stored after its delivery."""
    at = present + timedelta(seconds=1)
    attempt = {"at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "status": 200, "duration_ms": 41, "error": None}
    sent = {"state": DeliveryState.DELIVERED, "attempts": [attempt], "attempt_count": 1}
    return new_delivery(webhook_id, present) | sent | {"next_attempt_at": None}


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
