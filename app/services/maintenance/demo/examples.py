"""Records of the demo shop that examples and guides name."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import SQLColumnExpression, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.db.records import Record
from app.models import (
    COUPON_BATCHES,
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
from app.models.webhook import WebhookFormat, WebhookStatus
from app.models.webhook_delivery import DeliveryState, new_delivery
from app.services.campaigns.writes import create_campaign
from app.services.common.bulk import BulkItem, Data
from app.services.coupons.queries import PUBLISHED
from app.services.coupons.writes import save_coupons
from app.services.maintenance.demo.shop import DISCOUNTS
from app.services.orders.notes import create_note
from app.services.orders.refunds import create_refund
from app.services.redemptions.writes import reserve_use
from app.services.webhooks.writes import create_webhook

_GENERATED = tuple(f"gift-{digits}" for digits in ("2759", "3864", "4297", "5386", "7432"))
"""Codes of a batch of generated coupons. The codes of ``generate`` differ between two shops."""

_PERCENT, *_OTHERS = DISCOUNTS

COUPONS_OF_EXAMPLES: Mapping[str, Data] = {
    _PERCENT: {"type": "percent", "amount": Decimal(10), "usage_limit": 1_000_000},
    "demo-vip": {
        "type": "fixed_cart",
        "amount": Decimal(25),
        "usage_limit": 50,
        "usage_limit_per_user": 1,
        "minimum_amount": Decimal(100),
    },
    "demo-last": {"type": "fixed_cart", "amount": Decimal(5), "usage_limit": 1, "usage_count": 1},
    **{
        code: {"type": "fixed_cart", "amount": Decimal(20), "usage_limit": 1} for code in _GENERATED
    },
    **{code: {"type": "percent", "amount": Decimal(DISCOUNTS[code])} for code in _OTHERS},
}
"""The first coupons of a demo shop, by their codes."""

_HOUR = 3600
_WEEK = 7 * 24 * _HOUR


def add_carts(session: Session, actor: Principal, present: datetime, first_id: int) -> None:
    """Reserve a coupon for ten carts in a shop without redemptions. One reservation has expired.

    Args:
        first_id: the first coupon of the demo shop. Others need not be applicable.
    """
    has_coupon = COUPONS.c.code == _PERCENT, PUBLISHED, COUPONS.c.id >= first_id
    if not _is_empty(session, REDEMPTIONS.c.id) or not session.scalar(
        select(COUPONS.c.id).where(*has_coupon)
    ):
        return
    for number in range(1, 11):
        cart = {
            "code": _PERCENT,
            "reference": f"cart-{number}",
            "customer_id": 0,
            "email": f"guest{number}@example.net",
            "amount": Decimal("2.79"),
            "expires_in": _HOUR if number == 10 else _WEEK,
            "created_at": present - timedelta(seconds=2 * _HOUR),
        }
        reserve_use(actor, cart)


def add_examples(
    session: Session, actor: Principal, present: datetime, first_order_id: int | None
) -> None:
    """Add a batch, a campaign, an order note, a refund and webhooks to a shop without them.

    Args:
        first_order_id: the first order of the demo shop, to which the note and the refund belong;
            None for a shop without orders. Other orders of the shop stay as they are.
    """
    _add_gift_cards(session, actor, present)
    order = session.execute(select(ORDERS).where(ORDERS.c.id == first_order_id)).mappings().first()
    if order and _is_empty(session, OrderNote.id):
        text = "Packed, waiting for the courier."
        note = {"note": text, "customer_note": False, "created_at": order["created_at"]}
        create_note(actor, order["id"], note)
    if order and _is_empty(session, OrderRefund.id):
        refund = {
            "amount": Decimal(1),
            "reason": "One mug arrived broken.",
            "created_at": order["updated_at"],
        }
        create_refund(actor, order["id"], refund)
    if _is_empty(session, WEBHOOKS.c.id):
        _add_webhooks(session, actor, present)


def _is_empty(session: Session, identity: SQLColumnExpression[int]) -> bool:
    return session.scalar(select(identity).limit(1)) is None


def _add_gift_cards(session: Session, actor: Principal, present: datetime) -> None:
    """Let the coupons with generated codes be a batch, and share limits and a budget."""
    generated = select(COUPONS.c.id).where(COUPONS.c.code.in_(_GENERATED), PUBLISHED)
    ids = session.scalars(generated.order_by(COUPONS.c.id)).all()
    changes: Record = {}
    if ids and _is_empty(session, CouponBatch.id):
        batch = {
            "author_id": actor.user_id,
            "created_at": present,
            "count": len(ids),
            "prefix": "gift-",
            "pattern": "####",
            "charset": "23456789",
            "name": "Gift cards",
        }
        inserted = insert(COUPON_BATCHES).values(batch).returning(COUPON_BATCHES.c.id)
        changes["batch_id"] = session.scalar(inserted)
    if _is_empty(session, Campaign.id):
        campaign = {
            "name": "Gift cards",
            "created_at": present,
            "updated_at": present,
            "usage_limit": 1000,
            "usage_limit_per_user": 1,
            "budget": Decimal(5000),
            "tags": ["gift"],
            "combines_with": ["-gift"],
        }
        changes["campaign_id"] = create_campaign(actor, campaign)["id"]
    save_coupons(actor, [BulkItem(coupon_id, changes) for coupon_id in ids])


def _add_webhooks(session: Session, actor: Principal, present: datetime) -> None:
    """Add a webhook with a delivery, in the form of a plugin if there is one, and another webhook.

    Both are paused, so that nothing is sent.
    """
    shared = {
        "status": WebhookStatus.PAUSED,
        "delivery_url": "https://receiver.example/hooks",
        "secret": "",
        "created_at": present,
    }
    form = WebhookFormat(next(iter(current_catalog().webhook_forms), WebhookFormat.STANDARD))
    warehouse = shared | {"name": "Warehouse", "topics": ["order.updated"]}
    first_id = create_webhook(actor, warehouse, form)["id"]
    create_webhook(actor, shared | {"name": "Accounting", "topics": ["order.*"]})
    this = update(WEBHOOKS).where(WEBHOOKS.c.id == first_id)
    session.execute(this.values(last_delivery_at=present))
    session.execute(insert(WEBHOOK_DELIVERIES).values(_delivered_ping(first_id, present)))


def _delivered_ping(webhook_id: int, present: datetime) -> Record:
    """Return the first ping of a webhook, as it is stored after its delivery."""
    at = present + timedelta(seconds=1)
    attempt = {"at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "status": 200, "duration_ms": 41, "error": None}
    sent = {"state": DeliveryState.DELIVERED, "attempts": [attempt], "attempt_count": 1}
    return new_delivery(webhook_id, present) | sent | {"next_attempt_at": None}
