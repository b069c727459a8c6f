"""Campaigns: common conditions and limits of coupons (campaigns 2)."""

from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from sqlalchemy import Index, or_, text, true
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, Money, MoneySum, UtcDateTime


class Campaign(Model):
    """A campaign. Its coupons and uses have its ID in ``campaign_id``.

    No foreign key: who adds a coupon holds the campaign until the commit (``campaigns.locks``).
    """

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Key)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    active: Mapped[bool] = mapped_column(server_default=true())
    starts_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ends_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    usage_limit: Mapped[int] = mapped_column(Id)  # 0 means none
    usage_limit_per_user: Mapped[int] = mapped_column(Id)
    budget: Mapped[Decimal | None] = mapped_column(Money)  # None means none
    tags: Mapped[list[str]] = mapped_column(Json)
    combines_with: Mapped[list[str]] = mapped_column(Json)
    # Number and amount of the uses, also of reservations whose expiry is not stored. Only of a
    # campaign with a limit or a budget (campaigns 7).
    stored_uses: Mapped[int] = mapped_column(Id, server_default=text("0"))
    stored_discount: Mapped[Decimal] = mapped_column(MoneySum, server_default=text("0"))
    # The lower-cased name and the tags, each in a line of its own, for filters.
    search_text: Mapped[str] = mapped_column(Key)

    __table_args__ = (Index("ix_campaigns_created", "created_at", "id"), AUTOINCREMENT)


CAMPAIGNS = Campaign.__table__

IS_LIMITED = or_(
    CAMPAIGNS.c.usage_limit > 0,
    CAMPAIGNS.c.usage_limit_per_user > 0,
    CAMPAIGNS.c.budget > Decimal(0),
)
"""Whether a campaign has a limit or a budget, so that it stores number and amount of its uses."""


MOST_DISCOUNT = Decimal(2**63 - 1).scaleb(-2)
"""Maximum sum of the discounts of such a campaign, also without a budget: 64 bits on SQLite."""


class CampaignRow(TypedDict):
    """A campaign by its column names."""

    id: int
    name: str
    created_at: datetime
    updated_at: datetime
    active: bool
    starts_at: datetime | None
    ends_at: datetime | None
    usage_limit: int
    usage_limit_per_user: int
    budget: Decimal | None
    tags: list[str]
    combines_with: list[str]
    stored_uses: int
    stored_discount: Decimal
    search_text: str


def is_limited(campaign: CampaignRow) -> bool:
    """Return whether a campaign has a limit or a budget."""
    return bool(campaign["usage_limit"] or campaign["usage_limit_per_user"] or campaign["budget"])
