"""Redemptions: the ledger of coupon uses (redemptions 4)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import cast

from sqlalchemy import CheckConstraint, ForeignKey, Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, OptionalMoney, UtcDateTime


class RedemptionStatus(StrEnum):
    """Status of a redemption. An expired reservation counts as released."""

    RESERVED = "reserved"
    CONFIRMED = "confirmed"
    RELEASED = "released"


class Redemption(Model):
    """Use of a coupon by a cart or an order."""

    __tablename__ = "redemptions"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # None after the coupon was permanently deleted. The code remains (redemptions 4).
    coupon_id: Mapped[int | None] = mapped_column(Id, ForeignKey("coupons.id", ondelete="SET NULL"))
    code: Mapped[str] = mapped_column(Key)
    reference: Mapped[str] = mapped_column(Key)
    # Not a foreign key, because redemptions outlive orders. Order IDs are never reused.
    order_id: Mapped[int | None] = mapped_column(Id)
    customer_id: Mapped[int | None] = mapped_column(Id, ForeignKey("users.id", ondelete="SET NULL"))
    email: Mapped[str] = mapped_column(Key)
    email_normalized: Mapped[str] = mapped_column(Key)
    amount: Mapped[Decimal | None] = mapped_column(OptionalMoney)
    status: Mapped[str] = mapped_column(Key)
    # Whether coupons.reserved_count includes this reservation. It does not while the coupon has no
    # limit.
    holds_slot: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint("status IN ('reserved', 'confirmed', 'released')", name="status"),
        CheckConstraint("NOT holds_slot OR status = 'reserved'", name="holds_slot_when_reserved"),
        # Unique, so that concurrent requests with one code and reference get one redemption.
        Index(
            "uq_redemptions_coupon_reference",
            "coupon_id",
            "reference",
            unique=True,
            sqlite_where=text("order_id IS NULL"),
            postgresql_where=text("order_id IS NULL"),
        ),
        # At most one live redemption per order and coupon (redemptions 6).
        Index(
            "uq_redemptions_order_coupon",
            "order_id",
            "coupon_id",
            unique=True,
            sqlite_where=text("status <> 'released'"),
            postgresql_where=text("status <> 'released'"),
        ),
        # Live and expired reservations of a coupon.
        Index("ix_redemptions_slots", "coupon_id", "status", "holds_slot", "expires_at"),
        # Coupons with reservations, without reading confirmed uses.
        Index(
            "ix_redemptions_reserved",
            "coupon_id",
            sqlite_where=text("status = 'reserved'"),
            postgresql_where=text("status = 'reserved'"),
        ),
        # Reservations to expire, oldest first.
        Index(
            "ix_redemptions_expiring",
            "expires_at",
            "id",
            sqlite_where=text("status = 'reserved' AND expires_at IS NOT NULL"),
            postgresql_where=text("status = 'reserved' AND expires_at IS NOT NULL"),
        ),
        # Uses of a coupon by one customer.
        Index("ix_redemptions_coupon_customer", "coupon_id", "customer_id"),
        Index("ix_redemptions_coupon_email", "coupon_id", "email_normalized"),
        # With the columns of the live status, which is then read from the index alone.
        Index("ix_redemptions_created", "created_at", "id", "status", "expires_at"),
        Index("ix_redemptions_updated", "updated_at", "id", "status", "expires_at"),
        Index("ix_redemptions_expires", "expires_at", "id"),
        # PostgreSQL reads an index backwards with the nulls first.
        Index(
            "ix_redemptions_expires_desc", text("expires_at DESC NULLS LAST"), text("id DESC")
        ).ddl_if("postgresql"),
        Index(
            "ix_redemptions_confirmed",
            "created_at",
            "id",
            "status",
            sqlite_where=text("status = 'confirmed'"),
            postgresql_where=text("status = 'confirmed'"),
        ),
        Index("ix_redemptions_customer", "customer_id"),
        Index("ix_redemptions_email", "email_normalized"),
        Index("ix_redemptions_reference", "reference"),
        Index("ix_redemptions_code", "code"),
        AUTOINCREMENT,
    )


REDEMPTIONS = cast("Table", Redemption.__table__)
