"""Runs of ``shop-api demo``, stored so that an interrupted run can be resumed."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, UtcDateTime


class DemoRun(Model):
    """A run with its arguments and its progress."""

    __tablename__ = "demo_runs"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    seed: Mapped[int] = mapped_column(Id)
    # Current time of the shop: the argument --now, or the time when the run began.
    present: Mapped[datetime] = mapped_column(UtcDateTime)
    # Numbers of requested and of committed records.
    customers: Mapped[int] = mapped_column(Id)
    coupons: Mapped[int] = mapped_column(Id)
    orders: Mapped[int] = mapped_column(Id)
    customers_loaded: Mapped[int] = mapped_column(Id)
    coupons_loaded: Mapped[int] = mapped_column(Id)
    orders_loaded: Mapped[int] = mapped_column(Id)
    # First numbers of its records. Records of earlier runs have lower numbers.
    first_customer: Mapped[int] = mapped_column(Id)
    first_coupon: Mapped[int] = mapped_column(Id)
    first_order: Mapped[int] = mapped_column(Id)
    # None until the run is complete.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (AUTOINCREMENT,)


DEMO_RUNS = DemoRun.__table__
