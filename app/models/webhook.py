"""Webhooks: receivers of events (events 2)."""

from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from sqlalchemy import CheckConstraint, ColumnElement, ForeignKey, Index, case, false
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, UtcDateTime


class WebhookStatus(StrEnum):
    """The states of a webhook. Only an active webhook collects and receives events."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"


class WebhookFormat(StrEnum):
    """What a webhook sends: Standard Webhooks, or the form of a plugin."""

    STANDARD = "standard"
    LEGACY = "legacy"
    BARE = "bare"  # stored with ``is_bare``


class Webhook(Model):
    """A receiver with its topics, secrets and the state of its deliveries."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Key)
    format: Mapped[str] = mapped_column(Key)
    status: Mapped[str] = mapped_column(Key)
    disabled_reason: Mapped[str | None] = mapped_column(Key)
    topics: Mapped[list[str]] = mapped_column(Json)
    delivery_url: Mapped[str] = mapped_column(Key)
    # Encrypted with SECRET_KEY. After a rotation, the previous secret also signs, until a time.
    secret_encrypted: Mapped[str] = mapped_column(Key)
    previous_secret_encrypted: Mapped[str | None] = mapped_column(Key)
    previous_secret_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # None when the account was deleted.
    user_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_delivery_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    failing_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # The last event for which deliveries to this webhook were created.
    position: Mapped[int] = mapped_column(Id)
    # Failed attempts since the last success, and the end of the back-off because of them.
    failure_count: Mapped[int]
    resume_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # The worker that holds the lease of this webhook, and the end of the lease.
    lease_owner: Mapped[str | None] = mapped_column(Key)
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # Whether the form of the webhook is BARE.
    is_bare: Mapped[bool] = mapped_column(server_default=false(), sort_order=1)

    __table_args__ = (
        CheckConstraint("status IN ('active', 'paused', 'disabled')", name="status"),
        CheckConstraint("format IN ('standard', 'legacy')", name="format"),
        Index("ix_webhooks_status", "status"),
        AUTOINCREMENT,
    )


WEBHOOKS = Webhook.__table__

FORM: ColumnElement[str] = case((WEBHOOKS.c.is_bare, WebhookFormat.BARE), else_=WEBHOOKS.c.format)
"""The form of a webhook."""


class WebhookRow(TypedDict):
    """A webhook by its column names."""

    id: int
    name: str
    format: str
    status: str
    disabled_reason: str | None
    topics: list[str]
    delivery_url: str
    secret_encrypted: str
    previous_secret_encrypted: str | None
    previous_secret_until: datetime | None
    user_id: int | None
    created_at: datetime
    updated_at: datetime
    last_delivery_at: datetime | None
    failing_since: datetime | None
    position: int
    failure_count: int
    resume_at: datetime | None
    lease_owner: str | None
    lease_until: datetime | None
    is_bare: bool


def form_of(webhook: WebhookRow) -> str:
    """Return the form of a webhook."""
    return WebhookFormat.BARE if webhook["is_bare"] else webhook["format"]


def columns_of(form: WebhookFormat) -> dict[str, object]:
    """Return the columns that store a form."""
    is_bare = form is WebhookFormat.BARE
    return {"format": WebhookFormat.LEGACY if is_bare else form, "is_bare": is_bare}
