"""Planted defects of limits and budgets of campaigns (campaigns 7)."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

from app.errors import Sentence
from app.models.campaign import is_limited
from app.pricing.carts import CampaignTerms
from app.pricing.evaluation import Reason, budget_reasons, campaign_limit_reasons
from app.services.coupons.refusals import CouponRefused
from app.services.orders import redemptions as order_redemptions
from app.services.redemptions import campaigns, writes
from app.services.redemptions.campaign_numbers import (
    change_numbers,
    counted_amount,
    held_campaign,
)

OLD = 1.0  # seconds; age of numbers that were read before the lock


def campaign_before_lock(_: Any) -> None:
    """The numbers of a campaign are those before its lock, and not checked again."""
    read: dict[int, tuple[float, Any]] = {}

    def take(self: Any, session: Any, campaign_id: Any, customer: Any) -> None:
        campaign = held_campaign(self.held, campaign_id) if campaign_id is not None else None
        if self.active and campaign and not campaign["active"]:
            raise CouponRefused(self.code, [Reason("paused", Sentence(""))], self.param)
        if campaign is None or not is_limited(campaign):
            return
        if campaign_id not in read or time.monotonic() - read[campaign_id][0] > OLD:
            read[campaign_id] = time.monotonic(), campaign
        before, amount = read[campaign_id][1], counted_amount(self.amount)
        terms = CampaignTerms(
            id=campaign_id,
            usage_limit=campaign["usage_limit"] if self.is_new else 0,
            budget=campaign["budget"],
            uses=before["stored_uses"],
            discount=int(before["stored_discount"].scaleb(2)),
        )
        cents = int(amount.scaleb(2))
        reasons = [*campaign_limit_reasons(terms), *budget_reasons(terms, cents)]
        if reasons:
            raise CouponRefused(self.code, reasons, self.param)
        change_numbers(session, self.held, campaign_id, int(self.is_new), amount)

    campaigns.CampaignUse.take = take
    original = writes.redemption_reasons

    def without_numbers(terms: Any, *rest: Any) -> Any:
        # What a request reads before its transaction would be newer.
        unused = {"uses": 0, "uses_by_customer": None, "discount": 0}
        campaign = terms.campaign and replace(terms.campaign, **unused)
        return original(replace(terms, campaign=campaign), *rest)

    writes.redemption_reasons = without_numbers


def amount_kept(_: Any) -> None:
    """A release gives back the use of a campaign, and not its amount."""

    def give_back(session: Any, held: Any, redemption: Any) -> None:
        change_numbers(session, held, redemption["campaign_id"], -1, Decimal(0))

    order_redemptions.give_back_to_campaign = writes.give_back_to_campaign = give_back


def change_skips_budget(_: Any) -> None:
    """A discount of an order that grows is counted, whatever is left of the budget."""

    def change(self: Any, session: Any, line: Any, redemption: Any) -> None:
        more = order_redemptions._increase(line, redemption)
        if more > 0:
            change_numbers(session, self.held, redemption["campaign_id"], 0, more)

    order_redemptions.CouponPlan._change_amount = change


ALL = (campaign_before_lock, amount_kept, change_skips_budget)
