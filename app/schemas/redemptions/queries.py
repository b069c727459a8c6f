"""Query parameters of lists and counts of redemptions (redemptions 4)."""

from __future__ import annotations

from app.schemas.fields.query import (
    ChoiceParam,
    CodeParam,
    IntegerParam,
    RedemptionStatusParam,
    TextParam,
)
from app.schemas.queries import CountQuery, LimitQuery, PageQuery, ReadQuery, Times


class RedemptionFilter(Times):
    """Filter of redemptions (redemptions 4)."""

    code = CodeParam("filter[code]", "Only redemptions of this coupon code.")
    coupon_id = IntegerParam("filter[coupon_id]", "Only redemptions of this coupon.")
    customer_id = IntegerParam(
        "filter[customer_id]", "Only redemptions of this customer. 0 means guests."
    )
    email = TextParam(
        "filter[email]", "Only redemptions with this e-mail address, in any letter case."
    )
    reference = TextParam("filter[reference]", "Only redemptions with this reference.")
    order_id = IntegerParam("filter[order_id]", "Only redemptions of this order.")
    status = RedemptionStatusParam(
        "filter[status]",
        "Only redemptions in these statuses, separated by commas.",
    )


class RedemptionOrder(LimitQuery, RedemptionFilter):
    """Filter and order of redemptions."""

    orderby = ChoiceParam(
        "filter[orderby]",
        "Sort key. `date` is the creation time.",
        "date", "id", "expires_at",
        default="date",
    )  # fmt: skip


class RedemptionCountQuery(CountQuery, RedemptionOrder):
    """Query of a count of redemptions."""


class RedemptionListQuery(PageQuery, RedemptionOrder, ReadQuery):
    """Query of a list of redemptions."""
