"""Batches of generated coupons (migration 3)."""

from datetime import datetime
from typing import cast

from sqlalchemy import CheckConstraint, ForeignKey, Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime


class CouponBatch(Model):
    """Coupons that were generated together. Its coupons have its ID in ``batch_id``."""

    __tablename__ = "coupon_batches"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # The author of the coupons. None for a batch of the command line without a user.
    author_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Number of generated coupons, including those that were deleted since.
    count: Mapped[int] = mapped_column(Id)
    # How the codes were made, normalized.
    prefix: Mapped[str] = mapped_column(Key)
    pattern: Mapped[str] = mapped_column(Key)
    charset: Mapped[str] = mapped_column(Key)

    # What people call the batch, such as the campaign.
    name: Mapped[str] = mapped_column(Key, server_default=text("''"))

    # The campaign for which it was generated.
    campaign_id: Mapped[int | None] = mapped_column(Id)

    __table_args__ = (
        CheckConstraint("count > 0", name="count_positive"),
        Index("ix_coupon_batches_created", "created_at", "id"),
        AUTOINCREMENT,
    )


COUPON_BATCHES = cast("Table", CouponBatch.__table__)
