"""Runs of ``flask demo``, so that an interrupted one can be resumed and none repeats another."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.columns import NEVER_REUSED, Id, UtcDateTime
from app.db import Base


class DemoRun(Base):
    """A run: what it was asked for, and how far it came."""

    __tablename__ = "demo_runs"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    seed: Mapped[int] = mapped_column(Id)
    # The shop's present time, which the run was given or began at.
    present: Mapped[datetime] = mapped_column(UtcDateTime)
    # How many records it was asked for, and how many of them it has committed.
    customers: Mapped[int] = mapped_column(Id)
    coupons: Mapped[int] = mapped_column(Id)
    orders: Mapped[int] = mapped_column(Id)
    customers_loaded: Mapped[int] = mapped_column(Id)
    coupons_loaded: Mapped[int] = mapped_column(Id)
    orders_loaded: Mapped[int] = mapped_column(Id)
    # The numbers that its records begin with: no record of an earlier run has one from here on.
    first_customer: Mapped[int] = mapped_column(Id)
    first_coupon: Mapped[int] = mapped_column(Id)
    first_order: Mapped[int] = mapped_column(Id)
    # None while it is not complete.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (NEVER_REUSED,)
