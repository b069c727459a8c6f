"""Refused coupon codes by day (reports 2)."""

from datetime import date, datetime
from typing import cast

from sqlalchemy import Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key, UtcDateTime


class CouponRefusal(Model):
    """Number of times that a code was refused for a reason, on a day of the shop's time zone."""

    __tablename__ = "coupon_refusals"

    day: Mapped[date] = mapped_column(primary_key=True)
    # The first 100 characters. Empty for codes that are not kept.
    code: Mapped[str] = mapped_column(Key, primary_key=True)
    reason: Mapped[str] = mapped_column(Key, primary_key=True)
    # Whether a coupon had the code. Only the number of other codes is limited.
    is_known: Mapped[bool]
    count: Mapped[int] = mapped_column(Id)
    first_at: Mapped[datetime] = mapped_column(UtcDateTime)
    last_at: Mapped[datetime] = mapped_column(UtcDateTime)


COUPON_REFUSALS = cast("Table", CouponRefusal.__table__)
