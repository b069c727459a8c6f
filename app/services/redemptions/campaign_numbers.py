"""Stored number and amount of the uses of a campaign with a limit or a budget (campaigns 7)."""

from decimal import Decimal

from sqlalchemy import bindparam, update
from sqlalchemy.orm import Session

from app.db.errors import TryAgain
from app.db.sql.types import Id, Money
from app.models import CAMPAIGNS
from app.models.campaign import CampaignRow, is_limited
from app.models.redemption import RedemptionRow
from app.services.campaigns.locks import Held

THIS_CAMPAIGN = CAMPAIGNS.c.id == bindparam("this_campaign")
_CHANGE = (
    update(CAMPAIGNS)
    .where(THIS_CAMPAIGN)
    .values(
        stored_uses=CAMPAIGNS.c.stored_uses + bindparam("more", type_=Id),
        stored_discount=CAMPAIGNS.c.stored_discount + bindparam("more_amount", type_=Money),
    )
)


def held_campaign(held: Held, campaign_id: int) -> CampaignRow:
    """Return a campaign that the transaction has locked, or raise TryAgain."""
    if campaign_id not in held:  # a coupon or a use has joined it since the locks were taken
        raise TryAgain
    return held[campaign_id]


def counted_amount(amount: Decimal | None) -> Decimal:
    """Return what an amount adds to the discount of a campaign."""
    return max(amount or Decimal(0), Decimal(0))


def give_back_to_campaign(session: Session, held: Held, redemption: RedemptionRow) -> None:
    """Subtract a live use from the numbers of its campaign."""
    change_numbers(
        session, held, redemption["campaign_id"], -1, -counted_amount(redemption["amount"])
    )


def change_numbers(
    session: Session, held: Held, campaign_id: int | None, uses: int, amount: Decimal
) -> None:
    """Add to the numbers of a campaign that the transaction has locked, if it stores them."""
    if campaign_id is not None and is_limited(held_campaign(held, campaign_id)):
        parameters = {"this_campaign": campaign_id, "more": uses, "more_amount": amount}
        session.connection().execute(_CHANGE, parameters)
