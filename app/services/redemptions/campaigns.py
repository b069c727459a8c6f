"""Uses of campaigns: exact limits and budgets of many coupons together (campaigns 7).

A campaign with a limit or a budget stores number and amount of its uses. They are read, checked and
changed while the campaign is locked. No condition depends on the clock: if a use is refused while
reservations of the campaign have expired, their expiry is stored in a transaction of its own, and
the request starts again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from sqlalchemy import bindparam, exists, null, select, true
from sqlalchemy.orm import Session

from app.db.errors import TryAgain
from app.db.sql.types import Id
from app.errors import Sentence
from app.models import CAMPAIGNS, REDEMPTIONS
from app.models.campaign import MOST_DISCOUNT, CampaignRow, is_limited
from app.models.redemption import IS_EXPIRED_RESERVATION, IS_STORED_LIVE
from app.pricing.carts import CampaignTerms, CouponTerms
from app.pricing.evaluation import (
    REASONS,
    Reason,
    budget_reasons,
    campaign_limit_reasons,
    limit_reasons,
)
from app.services.campaigns.locks import Held
from app.services.coupons.customers import Customer
from app.services.coupons.refusals import CouponRefused
from app.services.coupons.terms import IS_CURRENT, number_by_customer
from app.services.redemptions.campaign_numbers import (
    THIS_CAMPAIGN,
    change_numbers,
    counted_amount,
    held_campaign,
)
from app.services.redemptions.expiry import expire_all

_PAUSED = Reason("paused", Sentence(REASONS["paused"]))
_BY_CUSTOMER = number_by_customer(
    REDEMPTIONS.c.campaign_id == bindparam("this_campaign"),
    IS_STORED_LIVE,
    REDEMPTIONS.c.id != bindparam("own_id", type_=Id),
)
_NUMBERS = select(
    CAMPAIGNS.c.stored_uses,
    CAMPAIGNS.c.stored_discount,
    null().label("uses_by_customer"),
    true().label("is_current"),
).where(THIS_CAMPAIGN)
_NUMBERS_OF_CUSTOMER = select(
    CAMPAIGNS.c.stored_uses,
    CAMPAIGNS.c.stored_discount,
    _BY_CUSTOMER.label("uses_by_customer"),
    IS_CURRENT.label("is_current"),
).where(THIS_CAMPAIGN)
_HAS_EXPIRED = select(
    exists().where(REDEMPTIONS.c.campaign_id == bindparam("this_campaign"), IS_EXPIRED_RESERVATION)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignUse:
    """A use of a campaign that a transaction takes, or a use that it changes.

    Args:
        held: the campaigns that the transaction has locked.
        code: the code of the coupon, for errors.
        param: its location in the request.
        amount: the discount that the use adds; None counts as 0, as does a negative one.
        is_new: whether it is a use, and not a change of one.
        in_budget: whether the currency is that of budgets.
        active: whether to reject a paused campaign.
        own_id: ID of the redemption, whose own use does not count.
        terms: of the coupon, whose limits are among the reasons of a rejection.
    """

    held: Held
    code: str
    param: str
    amount: Decimal | None = None
    is_new: bool = True
    in_budget: bool = True
    active: bool = True
    own_id: int = 0
    terms: CouponTerms | None = None

    def take(self, session: Session, campaign_id: int | None, customer: Customer | None) -> None:
        """Add the use to the numbers of its campaign, within the limits and the budget.

        Args:
            customer: who must not exceed the limit per customer; None to skip this limit.

        Raises:
            ShopError: a limit is reached, the budget is exceeded, or the campaign is paused.
            TryAgain: the campaign is not locked, reservations that have expired use it up, or an
                account of the customer has changed since it was read.
        """
        if campaign_id is None:
            return
        campaign = held_campaign(self.held, campaign_id)
        if self.active and not campaign["active"]:
            raise CouponRefused(self.code, [_PAUSED], self.param)
        if not is_limited(campaign):
            return
        terms, is_current = self._stored_terms(session, campaign, customer)
        amount = counted_amount(self.amount)
        in_budget = self.in_budget or not campaign["budget"]
        reasons = [
            *campaign_limit_reasons(terms),
            *budget_reasons(terms, int(amount.scaleb(2)), in_budget=in_budget),
        ]
        if reasons and session.scalar(_HAS_EXPIRED, {"this_campaign": campaign_id}):
            raise TryAgain(partial(expire_all, REDEMPTIONS.c.campaign_id == campaign_id))
        if reasons:
            raise CouponRefused(self.code, self._with_limits_of_coupon(reasons), self.param)
        if not is_current:  # an account of the customer has changed since it was read
            raise TryAgain
        change_numbers(session, self.held, campaign_id, int(self.is_new), amount)

    def _stored_terms(
        self, session: Session, campaign: CampaignRow, customer: Customer | None
    ) -> tuple[CampaignTerms, bool]:
        """Return the terms of a locked campaign, and whether the uses by the customer are known."""
        numbers, parameters = _NUMBERS, Customer().parameters
        if campaign["usage_limit_per_user"] and customer is not None and customer.is_known:
            numbers, parameters = _NUMBERS_OF_CUSTOMER, customer.parameters
        this = {"this_campaign": campaign["id"], "own_id": self.own_id}
        row = session.connection().execute(numbers, parameters | this).one()
        terms = CampaignTerms(
            id=campaign["id"],
            usage_limit=campaign["usage_limit"] if self.is_new else 0,
            usage_limit_per_user=campaign["usage_limit_per_user"],
            budget=campaign["budget"] or MOST_DISCOUNT,
            uses=row.stored_uses,
            uses_by_customer=row.uses_by_customer,
            discount=int(row.stored_discount.scaleb(2)),
        )
        return terms, row.is_current

    def _with_limits_of_coupon(self, reasons: Sequence[Reason]) -> Sequence[Reason]:
        own = limit_reasons(replace(self.terms, campaign=None)) if self.terms else ()
        found = {each.code: each for each in (*reasons, *own)}
        return [found[code] for code in REASONS if code in found]
