"""Records of the demo shop with the IDs that the examples of the OpenAPI document name."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, insert, select, update
from sqlalchemy.orm import Session

from app.auth.encryption import encrypt
from app.catalog import current_catalog
from app.db.records import Record
from app.models import (
    COUPONS,
    ORDERS,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
    Campaign,
    CouponBatch,
    OrderNote,
    OrderRefund,
)
from app.models.webhook import WebhookFormat, WebhookStatus
from app.models.webhook_delivery import DeliveryState, new_delivery
from app.outbound.signatures import new_secret
from app.services.campaigns.writes import BLANK, with_search_text
from app.services.maintenance.demo.redemptions import GENERATED

_REFUNDED = Decimal("1.00")


def add_examples(
    session: Session, present: datetime, user_id: int, first_order_id: int | None
) -> None:
    """Add a batch, a campaign, an order note, a refund and webhooks to a shop without them.

    Args:
        first_order_id: the first order of the demo shop, to which the note and the refund belong;
            None for a shop without orders. Other orders of the shop stay as they are.
    """
    if _is_empty(session, CouponBatch):
        _add_batch(session, present, user_id)
    if _is_empty(session, Campaign):
        _add_campaign(session, present)
    orders = session.execute(select(ORDERS).where(ORDERS.c.id == first_order_id)).mappings()
    if order := orders.first():
        if _is_empty(session, OrderNote):
            _add_note(session, order)
        if _is_empty(session, OrderRefund):
            _add_refund(session, order, user_id)
    if session.scalar(select(WEBHOOKS.c.id).limit(1)) is None:
        _add_webhooks(session, present, user_id)


def _is_empty(session: Session, model: Any) -> bool:
    return session.scalar(select(model.id).limit(1)) is None


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
