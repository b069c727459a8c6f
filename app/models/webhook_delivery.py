"""Deliveries of events to webhooks, and counts of their attempts (events 2)."""

from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, UtcDateTime


class DeliveryState(StrEnum):
    """The states of a delivery. Only a pending delivery has a time of its next attempt."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


_IS_PENDING = text("state = 'pending'")


class WebhookDelivery(Model):
    """The delivery of an event to a webhook, with its attempts."""

    __tablename__ = "webhook_deliveries"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    webhook_id: Mapped[int] = mapped_column(Id, ForeignKey("webhooks.id", ondelete="CASCADE"))
    # The number of the event. None for the first ping of a webhook. No foreign key, because
    # deliveries are created in bulk and removed together with their events.
    event_id: Mapped[int | None] = mapped_column(Id)
    # Deliveries of one resource are sent in order.
    resource: Mapped[str] = mapped_column(Key)
    resource_id: Mapped[int | None] = mapped_column(Id)
    state: Mapped[str] = mapped_column(Key)
    # [{at, status, duration_ms, error}], the oldest first.
    attempts: Mapped[list[dict[str, object]]] = mapped_column(Json)
    # Attempts since the event was queued, which determine the next wait.
    attempt_count: Mapped[int]
    next_attempt_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Headers of the last attempt, and the start of its response.
    request_headers: Mapped[dict[str, str]] = mapped_column(Json)
    response_headers: Mapped[dict[str, str]] = mapped_column(Json)
    response_body: Mapped[str] = mapped_column(Key)

    __table_args__ = (
        CheckConstraint("state IN ('pending', 'delivered', 'failed')", name="state"),
        CheckConstraint(
            "(state = 'pending') = (next_attempt_at IS NOT NULL)", name="next_attempt_when_pending"
        ),
        Index("uq_webhook_deliveries_event", "webhook_id", "event_id", unique=True),
        Index("ix_webhook_deliveries_event", "event_id"),
        Index("ix_webhook_deliveries_webhook", "webhook_id", "id"),
        Index("ix_webhook_deliveries_state", "webhook_id", "state", "id"),
        Index(
            "ix_webhook_deliveries_due",
            "webhook_id",
            "next_attempt_at",
            sqlite_where=_IS_PENDING,
            postgresql_where=_IS_PENDING,
        ),
        Index(
            "ix_webhook_deliveries_order",
            "webhook_id",
            "resource",
            "resource_id",
            "event_id",
            sqlite_where=_IS_PENDING,
            postgresql_where=_IS_PENDING,
        ),
        AUTOINCREMENT,
    )


class DeliveryCount(Model):
    """Number of attempts by result since the installation, for ``/metrics``."""

    __tablename__ = "delivery_counts"

    result: Mapped[str] = mapped_column(Key, primary_key=True)
    count: Mapped[int] = mapped_column(Id)


DELIVERY_COUNTS = DeliveryCount.__table__
WEBHOOK_DELIVERIES = WebhookDelivery.__table__


class WebhookDeliveryRow(TypedDict):
    """A delivery by its column names."""

    id: int
    webhook_id: int
    event_id: int | None
    resource: str
    resource_id: int | None
    state: str
    attempts: list[dict[str, object]]
    attempt_count: int
    next_attempt_at: datetime | None
    created_at: datetime
    request_headers: dict[str, str]
    response_headers: dict[str, str]
    response_body: str


def new_delivery(webhook_id: int | None, timestamp: datetime) -> dict[str, object]:
    """Return the columns of a delivery that is due at a time, of no event: the first ping."""
    return {
        "webhook_id": webhook_id,
        "event_id": None,
        "resource": "",
        "resource_id": None,
        "state": DeliveryState.PENDING,
        "attempts": [],
        "attempt_count": 0,
        "next_attempt_at": timestamp,
        "created_at": timestamp.replace(microsecond=0),
        "request_headers": {},
        "response_headers": {},
        "response_body": "",
    }
