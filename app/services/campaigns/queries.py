"""The rules for reading campaigns (campaigns 2)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    type_coerce,
)

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.conversions.text import searchable
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, NamedColumns, Record, Row, select_where
from app.db.search import first_line_has_part, has_part
from app.db.sql.functions import json_tuple, money_sum
from app.db.sql.types import Money
from app.errors import ShopError
from app.models import CAMPAIGNS, REDEMPTIONS
from app.models.campaign import IS_LIMITED
from app.models.redemption import IS_EXPIRED_RESERVATION, IS_LIVE, NOW
from app.services.common.filtering import ListQuery, Matching, between
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page

_HAS_ID = CAMPAIGNS.c.id == bindparam(WANTED)

_NOTHING = literal_column("0", Money())
NUMBER = func.count()
AMOUNT = func.coalesce(
    money_sum(case((REDEMPTIONS.c.amount > _NOTHING, REDEMPTIONS.c.amount), else_=_NOTHING)),
    literal(Decimal(0), Money()),
    type_=Money(),
)
"""Number and amount of uses. A negative recorded amount counts as 0 (campaigns 7)."""


def of_uses(value: ColumnElement[Any], *conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    """Return a sum over the uses of the campaign that a statement is about."""
    theirs: Select[object] = select(value).where(
        REDEMPTIONS.c.campaign_id == CAMPAIGNS.c.id, *conditions
    )
    return theirs.correlate(CAMPAIGNS).scalar_subquery()


# Of a campaign with a limit or a budget, both are stored, with reservations that have expired.
_LEFT = CAMPAIGNS.c.stored_uses - of_uses(NUMBER, IS_EXPIRED_RESERVATION)
_DISCOUNT_LEFT = type_coerce(
    CAMPAIGNS.c.stored_discount - of_uses(AMOUNT, IS_EXPIRED_RESERVATION), Money()
)
_IS_USED_UP = or_(
    (CAMPAIGNS.c.usage_limit > 0) & (CAMPAIGNS.c.usage_limit <= _LEFT),
    (CAMPAIGNS.c.budget > Decimal(0)) & (CAMPAIGNS.c.budget <= _DISCOUNT_LEFT),
)
STATE: ColumnElement[str] = case(
    (CAMPAIGNS.c.ends_at <= NOW, "ended"),
    (~CAMPAIGNS.c.active, "paused"),
    (CAMPAIGNS.c.starts_at > NOW, "scheduled"),
    (_IS_USED_UP, "used_up"),
    else_="active",
)
"""The first state that holds."""


def _figures(uses: ColumnElement[Any], discount: ColumnElement[Any]) -> ColumnElement[Any]:
    return json_tuple({"uses": uses, "discount": discount})


COLUMNS: NamedColumns = {
    **CAMPAIGNS.c,
    "state": STATE,
    # Of a campaign without a limit and a budget 0, because nothing compares them.
    "live_uses": case((IS_LIMITED, _LEFT), else_=literal(0)),
    "live_discount": type_coerce(
        case((IS_LIMITED, _DISCOUNT_LEFT), else_=literal(Decimal(0), Money())), Money()
    ),
    # In one column, so that all uses of a campaign without a limit are read once.
    "figures": case(
        (IS_LIMITED, _figures(_LEFT, _DISCOUNT_LEFT)),
        else_=of_uses(_figures(NUMBER, AMOUNT), IS_LIVE),
    ),
}


@dataclass(frozen=True, kw_only=True)
class CampaignQuery(ListQuery):
    """What a list of campaigns may ask (campaigns 2)."""

    state: str | None = None
    q: str | None = None
    tag: str | None = None


def list_campaigns(actor: Principal, query: CampaignQuery, columns: Columns) -> Page:
    """Return a page of the campaigns that match, newest first.

    The page is empty without the capability.
    """
    return fetch_page(
        columns,
        Matching(CAMPAIGNS.c.id, conditions_of(query)),
        query,
        key=CAMPAIGNS.c.created_at,
        may_read=actor.can(Capability.READ_PRIVATE_SHOP_COUPONS),
    )


def first_campaigns(
    actor: Principal, query: CampaignQuery, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the newest campaigns that match."""
    if not actor.can(Capability.READ_PRIVATE_SHOP_COUPONS):
        return []
    matches, newest = and_(*conditions_of(query)), CAMPAIGNS.c.id.desc()
    return fetch(select_where(tuple(columns), CAMPAIGNS.c.id, matches, newest).limit(limit))


def count_campaigns(actor: Principal, query: CampaignQuery) -> int:
    """Return the number of campaigns that match, or raise ShopError without the capability."""
    actor.require("shop_api_user_cannot_read_campaigns_count")
    return count(Matching(CAMPAIGNS.c.id, conditions_of(query))).number


def get_campaign(actor: Principal, campaign_id: int, columns: Columns) -> Row:
    """Return the campaign with this ID, or raise ShopError if it or the capability is missing."""
    found = select_where(tuple(columns), CAMPAIGNS.c.id, _HAS_ID)
    rows: Sequence[Row] = fetch(found, {WANTED: min(campaign_id, INT64_MAX)})
    if not rows:
        raise ShopError("shop_api_invalid_campaign_id")
    actor.require("shop_api_user_cannot_read_campaign")
    return rows[0]


def counts_by_state(actor: Principal, query: CampaignQuery) -> dict[str, int]:
    """Return the number of campaigns in each state that occurs.

    Args:
        query: a ``CampaignQuery``.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_campaigns_count")
    states = select(STATE.label("state")).where(*conditions_of(query)).subquery()
    return dict(fetch(select(states.c.state, NUMBER).group_by(states.c.state)))


def offered_names(actor: Principal, limit: int) -> dict[int, str]:
    """Return the names of campaigns by their ID, none without the capability.

    Those that have ended come last, and of both kinds the newest come first.
    """
    if not actor.can(Capability.READ_PRIVATE_SHOP_COUPONS):
        return {}
    order = case((CAMPAIGNS.c.ends_at <= NOW, 1), else_=0), CAMPAIGNS.c.id.desc()
    return dict(fetch(select(CAMPAIGNS.c.id, CAMPAIGNS.c.name).order_by(*order).limit(limit)))


def states_of(ids: Collection[int]) -> dict[int, Record]:
    """Return ``id``, ``name`` and ``state`` of campaigns by their ID."""
    if not ids:
        return {}
    columns = (CAMPAIGNS.c.id, CAMPAIGNS.c.name, STATE.label("state"))
    rows = fetch(select(*columns).where(CAMPAIGNS.c.id.in_(ids)))
    return {row.id: row._asdict() for row in rows}


def conditions_of(query: CampaignQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``CampaignQuery``."""
    conditions = between({"created_at": CAMPAIGNS.c.created_at}, query)
    if query.state is not None:
        conditions.append(COLUMNS["state"] == query.state)
    if query.q is not None:
        conditions.append(first_line_has_part(CAMPAIGNS.c.search_text, searchable(query.q)))
    if query.tag is not None:
        conditions.append(has_part(CAMPAIGNS.c.search_text, f"\n{query.tag}\n"))
    return conditions


def figures_of(ids: Sequence[int]) -> Select[object]:
    """Return a select of the ID, ``state`` and ``figures`` of campaigns."""
    names = ("state", "figures")
    columns = (COLUMNS[name].label(name) for name in names)
    return select(CAMPAIGNS.c.id, *columns).where(CAMPAIGNS.c.id.in_(ids))
