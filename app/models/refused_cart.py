"""Refused codes of the last days, each with its customer (reports 2)."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key, OptionalMoney, UtcDateTime

REFUSED_CARTS_DAYS = 7
"""Days for which refused carts are kept."""


class RefusedCart(Model):
    """A code that was refused for a customer. ``CouponRefusal`` has the numbers of all."""

    __tablename__ = "refused_carts"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # The first 100 characters. Empty for codes that are not kept.
    code: Mapped[str] = mapped_column(Key)
    reason: Mapped[str] = mapped_column(Key)
    customer_id: Mapped[int | None] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))
    # Of a guest, as uses of coupons are compared. Empty for an account.
    email_normalized: Mapped[str] = mapped_column(Key)
    # Sum of the items before discounts; None if the request names no items.
    total: Mapped[Decimal | None] = mapped_column(OptionalMoney)
    currency: Mapped[str] = mapped_column(Key)

    __table_args__ = (
        Index("ix_refused_carts_code", "code", "id"),
        Index("ix_refused_carts_customer", "customer_id"),
        Index("ix_refused_carts_email", "email_normalized"),
    )


REFUSED_CARTS = RefusedCart.__table__
