"""Coupons (spec 2.1)."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from sqlalchemy import CheckConstraint, ForeignKey, Index, text, true
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, JsonFields, Key, Money, UtcDateTime


class CouponStatus(StrEnum):
    """Status of a stored coupon (spec 3). Permanently deleted coupons are not stored."""

    PUBLISHED = "published"
    TRASH = "trash"


class CouponOptions(NamedTuple):
    """Fields that few coupons use (campaigns 1), as they are stored. Their defaults are all false.

    Attributes:
        maximum_discount: an amount such as ``50.00``, or None.
    """

    tags: Sequence[str] = ()
    combines_with: Sequence[str] = ()
    customer_tags: Sequence[str] = ()
    first_order_only: bool = False
    maximum_discount: str | None = None
    buy_quantity: int = 0
    get_quantity: int = 0
    get_product_ids: Sequence[int] = ()


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


class Coupon(Model):
    """A discount coupon, published or in the trash."""

    __tablename__ = "coupons"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    status: Mapped[str] = mapped_column(Key)
    # Updating or deleting a coupon of another user requires a second capability (decisions 2).
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
    usage_count: Mapped[int] = mapped_column(Id)  # confirmed uses
    # Number of redemptions with holds_slot, including expired ones (redemptions 4).
    reserved_count: Mapped[int] = mapped_column(Id, server_default=text("0"), sort_order=1)
    # The batch with which it was generated. No foreign key: batches are never deleted, and the
    # database would look up the batch for each of a million coupons.
    batch_id: Mapped[int | None] = mapped_column(Id, sort_order=1)
    expiry_date: Mapped[date | None]
    enable_free_shipping: Mapped[bool]
    product_category_ids: Mapped[list[int]] = mapped_column(Json)
    exclude_product_category_ids: Mapped[list[int]] = mapped_column(Json)
    exclude_sale_items: Mapped[bool]
    minimum_amount: Mapped[Decimal | None] = mapped_column(Money)
    maximum_amount: Mapped[Decimal | None] = mapped_column(Money)
    customer_emails: Mapped[list[str]] = mapped_column(Json)
    description: Mapped[str]
    # Number of the changes that other columns do not show, such as those of metadata.
    revision: Mapped[int] = mapped_column(Id, server_default=text("0"), sort_order=2)
    # Lower-cased code and description, for filter[q].
    search_text: Mapped[str] = mapped_column(Key)
    # Time when the coupon was moved to the trash. Null for published coupons.
    trashed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # Time of the last update other than by a use. Null if it is updated_at.
    edited_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=3)
    # False pauses the coupon (campaigns 1).
    active: Mapped[bool] = mapped_column(server_default=true(), sort_order=3)
    starts_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=3)
    # No foreign key: services.campaigns.locks holds the campaign while a coupon is added.
    campaign_id: Mapped[int | None] = mapped_column(Id, sort_order=4)
    options: Mapped[CouponOptions] = mapped_column(
        JsonFields(CouponOptions), nullable=True, sort_order=3
    )

    __table_args__ = (
        CheckConstraint("status IN ('published', 'trash')", name="status"),
        CheckConstraint("code <> ''", name="code_not_empty"),
        # spec 2.1: codes are unique among published coupons, also under concurrent writes.
        Index("uq_coupons_published_code", "code", unique=True, **_where("status = 'published'")),
        # With the status, because SQLite would otherwise read it from the records. The type is the
        # first column, because coupons of a type are counted entry by entry.
        Index(
            "ix_coupons_type",
            "type",
            "created_at",
            "id",
            "status",
            **_where("status = 'published'"),
        ),
        # Coupons in the trash are counted by type, too.
        Index("ix_coupons_trash_type", "type", "status", **_where("status = 'trash'")),
        # With the other times, so that the index alone finds the first coupon of a period.
        Index("ix_coupons_status_id", "status", "id", "created_at", "updated_at"),
        # With the status, because SQLite would otherwise read it from the records. Not as the first
        # column, because SQLite would then read all coupons to find several codes.
        Index("ix_coupons_code", "code", "id", "status", **_where("status = 'published'")),
        Index("ix_coupons_status_created", "status", "created_at", "id", "updated_at"),
        Index("ix_coupons_status_updated", "status", "updated_at", "id", "created_at"),
        Index("ix_coupons_status_amount", "status", "amount", "id"),
        # PostgreSQL reads an index backwards with the nulls first.
        *(
            Index(name, "status", text(f"{column} DESC NULLS LAST"), text("id DESC")).ddl_if(
                "postgresql"
            )
            for name, column in (
                ("ix_coupons_status_amount_desc", "amount"),
                ("ix_coupons_status_expiry_desc", "expiry_date"),
            )
        ),
        Index("ix_coupons_status_usage_count", "status", "usage_count", "id", "updated_at"),
        Index("ix_coupons_status_expiry", "status", "expiry_date", "id"),
        # With the text of ``IS_USED_UP`` in ``services.coupons.queries``.
        Index(
            "ix_coupons_used_up",
            "status",
            "created_at",
            "id",
            **_where("usage_limit > 0 AND usage_count >= usage_limit - reserved_count"),
        ),
        # Few coupons are paused or have a start.
        Index(
            "ix_coupons_paused",
            "status",
            "created_at",
            "id",
            sqlite_where=text("active = 0"),
            postgresql_where=text("NOT active"),
        ),
        Index("ix_coupons_starts", "status", "starts_at", "id", **_where("starts_at IS NOT NULL")),
        Index(
            "ix_coupons_campaign",
            "campaign_id",
            "status",
            "created_at",
            "id",
            **_where("campaign_id IS NOT NULL"),
        ),
        # Few coupons are generated, and few generated ones are used.
        Index(
            "ix_coupons_batch",
            "batch_id",
            "status",
            "created_at",
            "id",
            **_where("batch_id IS NOT NULL"),
        ),
        Index(
            "ix_coupons_batch_used",
            "batch_id",
            "status",
            **_where("batch_id IS NOT NULL AND usage_count > 0"),
        ),
        AUTOINCREMENT,
    )


class DeletedCoupon(Model):
    """Coupon with uses that was permanently deleted. A trigger adds it (migration 0065).

    Uses keep its ID, which readers do not show.
    """

    __tablename__ = "deleted_coupons"

    id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)


DELETED_COUPONS = DeletedCoupon.__table__
COUPONS = Coupon.__table__

ON_REQUEST: Mapping[str, Any] = {
    "active": True,
    "starts_at": None,
    "campaign_id": None,
    "options": CouponOptions(),
}
"""Columns that a request need not contain, and files of version 1.0 do not, with their values."""

COUNTS = ("usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count")
"""Columns with a count or a limit of at most 15 digits (decisions 3)."""


class CouponRow(TypedDict):
    """A coupon by its column names."""

    id: int
    status: str
    author_id: int | None
    code: str
    type: str
    created_at: datetime
    updated_at: datetime
    amount: Decimal | None
    individual_use: bool
    product_ids: list[int]
    exclude_product_ids: list[int]
    usage_limit: int
    usage_limit_per_user: int
    limit_usage_to_x_items: int
    usage_count: int
    reserved_count: int
    batch_id: int | None
    expiry_date: date | None
    enable_free_shipping: bool
    product_category_ids: list[int]
    exclude_product_category_ids: list[int]
    exclude_sale_items: bool
    minimum_amount: Decimal | None
    maximum_amount: Decimal | None
    customer_emails: list[str]
    description: str
    search_text: str
    trashed_at: datetime | None
    edited_at: datetime | None
    revision: int
    active: bool
    starts_at: datetime | None
    campaign_id: int | None
    options: CouponOptions


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


COUPON_BATCHES = CouponBatch.__table__


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


COUPON_REFUSALS = CouponRefusal.__table__
