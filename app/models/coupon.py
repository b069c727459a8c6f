"""Coupons (spec 2.1)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.columns import NEVER_REUSED, Id, Json, Key, Money, UtcDateTime
from app.db import Base


class CouponStatus(StrEnum):
    """The states of a stored coupon (spec 3); the third state is being gone."""

    PUBLISHED = "published"
    TRASH = "trash"


class Coupon(Base):
    """A discount coupon, published or in the trash."""

    __tablename__ = "coupons"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    status: Mapped[str] = mapped_column(Key)
    # Editing or deleting someone else's coupon needs another capability (decisions 2).
    author_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    code: Mapped[str] = mapped_column(Key)
    type: Mapped[str] = mapped_column(Key)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    amount: Mapped[Decimal | None] = mapped_column(Money)
    individual_use: Mapped[bool]
    product_ids: Mapped[list[int]] = mapped_column(Json)
    exclude_product_ids: Mapped[list[int]] = mapped_column(Json)
    usage_limit: Mapped[int] = mapped_column(Id)
    usage_limit_per_user: Mapped[int] = mapped_column(Id)
    limit_usage_to_x_items: Mapped[int] = mapped_column(Id)
    usage_count: Mapped[int] = mapped_column(Id)
    expiry_date: Mapped[date | None]
    enable_free_shipping: Mapped[bool]
    product_category_ids: Mapped[list[int]] = mapped_column(Json)
    exclude_product_category_ids: Mapped[list[int]] = mapped_column(Json)
    exclude_sale_items: Mapped[bool]
    minimum_amount: Mapped[Decimal | None] = mapped_column(Money)
    maximum_amount: Mapped[Decimal | None] = mapped_column(Money)
    customer_emails: Mapped[list[str]] = mapped_column(Json)
    description: Mapped[str]
    # Lower-cased code and description, for filter[q].
    search_text: Mapped[str] = mapped_column(Key)

    __table_args__ = (
        CheckConstraint("status IN ('published', 'trash')", name="status"),
        CheckConstraint("code <> ''", name="code_not_empty"),
        # spec 2.1: a code is unique among published coupons, whoever writes at the same time.
        Index(
            "uq_coupons_published_code",
            "code",
            unique=True,
            sqlite_where=text("status = 'published'"),
            postgresql_where=text("status = 'published'"),
        ),
        Index("ix_coupons_status_type", "status", "type", "created_at", "id"),
        Index("ix_coupons_status_created", "status", "created_at", "id"),
        Index("ix_coupons_status_updated", "status", "updated_at", "id"),
        Index("ix_coupons_status_amount", "status", "amount", "id"),
        Index("ix_coupons_status_usage_count", "status", "usage_count", "id"),
        Index("ix_coupons_status_expiry", "status", "expiry_date", "id"),
        NEVER_REUSED,
    )
