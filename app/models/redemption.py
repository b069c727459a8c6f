"""Redemptions: the ledger of coupon uses, and their live status (redemptions 4).

An expired reservation counts as released from the second in which it expires, before the status is
stored. Only the stored status decides about slots, because the clocks of machines differ: a
transaction stores the expiry before it uses the slot (``store_expiry`` in ``redemptions.stored``).
"""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypedDict

from sqlalchemy import BindParameter, CheckConstraint, Index, and_, bindparam, or_, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.records import with_columns
from app.db.session import Model, now
from app.db.sql.index_hints import has_constant
from app.db.sql.types import AUTOINCREMENT, Id, Key, OptionalMoney, UtcDateTime
from app.models.coupon import COUPONS
from app.models.user import USERS


class RedemptionStatus(StrEnum):
    """Status of a redemption. An expired reservation counts as released."""

    RESERVED = "reserved"
    CONFIRMED = "confirmed"
    RELEASED = "released"


class Redemption(Model):
    """Use of a coupon by a cart or an order."""

    __tablename__ = "redemptions"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # It stays after the coupon was permanently deleted, and readers then show None (redemptions 4).
    # Not a foreign key, which would change all uses of the coupon. Its ID is never assigned again.
    coupon_id: Mapped[int | None] = mapped_column(Id)
    code: Mapped[str] = mapped_column(Key)
    reference: Mapped[str] = mapped_column(Key)
    # Not a foreign key, because redemptions outlive orders. Order IDs are never reused.
    order_id: Mapped[int | None] = mapped_column(Id)
    # Not a foreign key: the worker clears it if an account has many uses (``Erasure``).
    customer_id: Mapped[int | None] = mapped_column(Id)
    email: Mapped[str] = mapped_column(Key)
    email_normalized: Mapped[str] = mapped_column(Key)
    amount: Mapped[Decimal | None] = mapped_column(OptionalMoney)
    status: Mapped[str] = mapped_column(Key)
    # Whether coupons.reserved_count includes this reservation. One from a time when the coupon had
    # no limit is included as soon as it gets a usage_limit.
    holds_slot: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # The last confirmation. None unless the use is confirmed.
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # The campaign for which the use counts: that of the coupon when the use was taken.
    campaign_id: Mapped[int | None] = mapped_column(Id)

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
        # Live and expired reservations of a coupon, and those without a slot.
        Index("ix_redemptions_slots", "coupon_id", "status", "holds_slot", "expires_at"),
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
        Index("ix_redemptions_created", "created_at", "id", "status", "expires_at", "updated_at"),
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
        # For reports, which read these indexes alone.
        Index(
            "ix_redemptions_report",
            "confirmed_at",
            "coupon_id",
            "order_id",
            "amount",
            "customer_id",
            "email_normalized",
            "code",
            "status",
            sqlite_where=text("status = 'confirmed'"),
            postgresql_where=text("status = 'confirmed'"),
        ),
        Index(
            "ix_redemptions_order_confirmed",
            "order_id",
            "coupon_id",
            "code",
            "status",
            sqlite_where=text("status = 'confirmed'"),
            postgresql_where=text("status = 'confirmed'"),
        ),
        # Number and amount of the uses of a campaign, and its reservations that have expired.
        *(
            Index(
                f"ix_redemptions_campaign{suffix}",
                "campaign_id",
                *columns,
                sqlite_where=text(condition),
                postgresql_where=text(condition),
            )
            for suffix, columns, condition in (
                ("", ("status", "expires_at", "amount"), "campaign_id IS NOT NULL"),
                ("_customer", ("customer_id",), "campaign_id IS NOT NULL"),
                ("_email", ("email_normalized",), "campaign_id IS NOT NULL"),
            )
        ),
        Index("ix_redemptions_customer", "customer_id"),
        Index("ix_redemptions_email", "email_normalized"),
        Index("ix_redemptions_reference", "reference"),
        Index("ix_redemptions_code", "code"),
        AUTOINCREMENT,
    )


REDEMPTIONS = Redemption.__table__
for _table in (COUPONS, USERS):
    REDEMPTIONS.add_is_dependent_on(_table)  # without a foreign key


class RedemptionRow(TypedDict):
    """A redemption by its column names."""

    id: int
    coupon_id: int | None
    code: str
    reference: str
    order_id: int | None
    customer_id: int | None
    email: str
    email_normalized: str
    amount: Decimal | None
    status: str
    holds_slot: bool
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    confirmed_at: datetime | None
    campaign_id: int | None


# The value is computed for each execution, so that a statement is built once.
NOW: BindParameter[datetime] = bindparam("now", callable_=now, type_=UtcDateTime)

IS_RESERVED = has_constant(REDEMPTIONS.c.status, RedemptionStatus.RESERVED)
IS_CONFIRMED = has_constant(REDEMPTIONS.c.status, RedemptionStatus.CONFIRMED)
IS_LIVE_RESERVATION = and_(
    IS_RESERVED, or_(REDEMPTIONS.c.expires_at.is_(None), REDEMPTIONS.c.expires_at > NOW)
)
IS_EXPIRED_RESERVATION = and_(IS_RESERVED, REDEMPTIONS.c.expires_at <= NOW)
"""Whether a reservation has expired and this is not stored yet."""

IS_LIVE = or_(IS_CONFIRMED, IS_LIVE_RESERVATION)
IS_STORED_LIVE = or_(IS_CONFIRMED, IS_RESERVED)
"""Whether a use is confirmed or reserved, also if it has expired and this is not stored yet."""


def is_live(redemption: RedemptionRow, timestamp: datetime | None = None) -> bool:
    """Return whether a use is reserved or confirmed and has not expired, now or at a timestamp."""
    expires_at = redemption["expires_at"]
    return redemption["status"] == RedemptionStatus.CONFIRMED or (
        redemption["status"] == RedemptionStatus.RESERVED
        and (expires_at is None or expires_at > (timestamp or now()))
    )


def has_expired(redemption: RedemptionRow) -> bool:
    """Return whether a reservation ended by expiry, and not by a release."""
    if redemption["status"] == RedemptionStatus.RELEASED:
        # Written by ``store_expiry``. A release is always earlier: it writes the time at which the
        # reservation was live.
        return redemption["updated_at"] == redemption["expires_at"]
    return redemption["status"] == RedemptionStatus.RESERVED and not is_live(redemption)


def as_shown(redemption: RedemptionRow) -> RedemptionRow:
    """Return a redemption with its live status (redemptions 4)."""
    if redemption["status"] == RedemptionStatus.RESERVED and has_expired(redemption):
        expired = {"status": RedemptionStatus.RELEASED, "updated_at": redemption["expires_at"]}
        return with_columns(redemption, expired)
    return redemption
