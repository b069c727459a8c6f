"""The rules for reading coupons (spec 4.1, 5; decisions 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import sub
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
)

from app.auth.principals import Capability, Principal
from app.catalog import current_catalog
from app.config.current import expiry_zone
from app.conversions.expiry import latest_expired
from app.conversions.numbers import INT64_MAX
from app.conversions.text import coupon_code
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, Record, Row, fetch_by_ids, select_where
from app.db.search import Search, contains, narrowed
from app.db.session import now
from app.db.sql.functions import is_one_of
from app.db.sql.index_hints import frequent, has_constant
from app.db.sql.types import TextList
from app.errors import InvalidParams, Sentence, ShopError
from app.models import COUPONS
from app.models.coupon import CouponStatus
from app.services.common import metadata, plans
from app.services.common.filtering import ListQuery, Matching, between
from app.services.common.pagination import Page, Total
from app.services.common.plans import count, fetch_page
from app.services.common.row_counts import RowCountFilter

# Literals: SQLite uses a partial index only for the same text.
PUBLISHED = has_constant(COUPONS.c.status, CouponStatus.PUBLISHED)
TRASHED = has_constant(COUPONS.c.status, CouponStatus.TRASH)
_HAS_ID = and_(COUPONS.c.id == bindparam(WANTED), PUBLISHED)
_HAS_CODE = and_(COUPONS.c.code == bindparam(WANTED), PUBLISHED)
HAS_ONE_OF_CODES = and_(
    is_one_of(COUPONS.c.code, bindparam("codes", type_=TextList)), frequent(PUBLISHED)
)
"""Condition: a published coupon has one of the codes of the parameter ``codes``."""

IS_USED_UP = and_(
    COUPONS.c.usage_limit > literal_column("0"),
    COUPONS.c.usage_count >= COUPONS.c.usage_limit - COUPONS.c.reserved_count,
)
"""Condition: all uses of a coupon are taken or reserved. It is that of a partial index."""

NOT_ACTIVE = ("expired", "paused", "scheduled", "used_up")
"""States of coupons that are not active, in their order of precedence (campaigns 2)."""

_NEWEST_FIRST = (COUPONS.c.created_at.desc(), COUPONS.c.id.desc())
COUNTED = RowCountFilter(
    "coupons",
    COUPONS.c.created_at,
    PUBLISHED,
    (CouponStatus.PUBLISHED,),
    changed=COUPONS.c.updated_at,
)
SORT_KEYS: Mapping[str, Column[Any]] = {
    "date": COUPONS.c.created_at,
    "modified": COUPONS.c.updated_at,
    "id": COUPONS.c.id,
    "code": COUPONS.c.code,
    "amount": COUPONS.c.amount,
    "usage_count": COUPONS.c.usage_count,
    "uses": COUPONS.c.usage_count,
    "expiry_date": COUPONS.c.expiry_date,
}


@dataclass(frozen=True, kw_only=True)
class CouponQuery(ListQuery):
    """What a list of coupons may ask (decisions 4)."""

    q: str | None = None
    type: str | None = None
    code: str | None = None
    state: str | None = None
    in_: Sequence[int] | None = None
    not_in: Sequence[int] | None = None
    batch: int | None = None
    campaign: int | None = None


def list_coupons(
    actor: Principal, query: CouponQuery, columns: Columns, *, trashed: bool = False
) -> Page:
    """Return a page of the published coupons that match, by default newest first.

    The page is empty without the capability to read coupons (spec 4.1).

    Args:
        query: a ``CouponQuery``.
        trashed: whether to list the coupons in the trash instead.

    Raises:
        InvalidParams: the type in the filter is unknown.
    """
    require_known_filter(query)
    return fetch_page(
        columns,
        _in_trash(query) if trashed else _matching(query),
        query,
        key=SORT_KEYS[query.orderby],
        may_read=actor.can(Capability.READ_PRIVATE_SHOP_COUPONS),
    )


def first_coupons(
    actor: Principal, query: CouponQuery, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the first coupons that a search finds, the one with this code first.

    Args:
        query: a ``CouponQuery`` with ``q``.
    """
    if not actor.can(Capability.READ_PRIVATE_SHOP_COUPONS):
        return []
    is_exact, key = COUPONS.c.code == coupon_code(query.q or ""), SORT_KEYS["date"]
    exact = is_exact & PUBLISHED
    return plans.first_matches(columns, _matching(query), limit, key=key, exact=exact)


def count_coupons(actor: Principal, query: CouponQuery) -> Total:
    """Return the number of published coupons that match.

    Raises:
        InvalidParams: the type in the filter is unknown.
        ShopError: the capability is missing.
    """
    require_known_filter(query)
    actor.require("shop_api_user_cannot_read_coupons_count")
    return count(_matching(query))


def get_coupon(actor: Principal, coupon_id: int, columns: Columns) -> Row:
    """Return the published coupon with this ID.

    Raises:
        ShopError: no published coupon has the ID, or the capability is missing.
    """
    found = select_where((*columns, COUPONS.c.revision), COUPONS.c.id, _HAS_ID)
    return _readable(actor, found, coupon_id, "shop_api_invalid_coupon_id")


def get_coupon_by_code(actor: Principal, code: str, columns: Columns) -> Row:
    """Return the newest published coupon with this code (spec 4.1).

    Raises:
        ShopError: no published coupon has the code, or the capability is missing.
    """
    found = select_where((*columns, COUPONS.c.revision), COUPONS.c.id, _HAS_CODE, *_NEWEST_FIRST)
    return _readable(actor, found, coupon_code(code), "shop_api_invalid_coupon_code")


def _readable(actor: Principal, found: Select[Any], wanted: object, missing_code: str) -> Row:
    rows: Sequence[Row] = fetch(found, {WANTED: wanted})
    if not rows:
        raise ShopError(missing_code)
    actor.require("shop_api_user_cannot_read_coupon")
    return rows[0]


def require_known_filter(query: CouponQuery) -> None:
    """Raise InvalidParams if the coupon type in a filter is unknown."""
    if query.type and query.type not in current_catalog().coupon_types:
        raise InvalidParams({"filter[type]": Sentence("must be one of {0}.", known_types())})


def known_types() -> str:
    """Return the coupon types of this shop as a list for messages."""
    return ", ".join(current_catalog().coupon_types)


def conditions_of(query: CouponQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``CouponQuery`` without its type and its search."""
    conditions = [*between(COUPONS.c, query), *state_of(query)]
    if query.in_ is not None:
        conditions.append(COUPONS.c.id.in_(query.in_))
    if query.not_in is not None:
        conditions.append(COUPONS.c.id.not_in(query.not_in))
    if query.code is not None:
        conditions.append(COUPONS.c.code == query.code)
    if query.campaign is not None:
        conditions.append(COUPONS.c.campaign_id == min(query.campaign, INT64_MAX))
    if query.batch is not None:
        conditions.append(
            COUPONS.c.batch_id == min(query.batch, INT64_MAX)
        )  # no batch has a larger ID
    return conditions


def state_of(query: CouponQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``CouponQuery`` on the state.

    A coupon has exactly one state, the first that holds.
    """
    if query.state is None:
        return []
    time = now()
    is_expired = COUPONS.c.expiry_date <= latest_expired(time, expiry_zone())
    is_scheduled = COUPONS.c.starts_at > time
    is_started = or_(COUPONS.c.starts_at.is_(None), ~is_scheduled)
    states = {
        "expired": (is_expired, or_(COUPONS.c.expiry_date.is_(None), ~is_expired)),
        "paused": (~COUPONS.c.active, COUPONS.c.active),
        "scheduled": (is_scheduled, is_started),
        "used_up": (IS_USED_UP, ~IS_USED_UP),
    }
    conditions: list[ColumnElement[bool]] = []
    for name, (has_state, has_not) in states.items():
        if name == query.state:
            return [*conditions, has_state]
        conditions.append(has_not)
    return conditions


def _matching(query: CouponQuery) -> Matching:
    """Return the published coupons that match a ``CouponQuery``."""
    search, conditions = filters_of(query)
    only_active = query.state == "active" and len(conditions) == len(state_of(query))
    number = _number_of_active() if only_active and search is None else None
    return Matching(COUPONS.c.id, conditions, PUBLISHED, COUNTED, search, TRASHED, number)


def _number_of_active() -> ColumnElement[int]:
    """Return the number of active coupons: all but those in another state.

    Indexes contain only the latter. To compare each of a million coupons takes three times as long.
    """
    others = (
        select(func.count()).where(PUBLISHED, *state_of(CouponQuery(state=state))).scalar_subquery()
        for state in NOT_ACTIVE
    )
    return reduce(sub, others, COUNTED.of_weeks(None, None))


def _in_trash(query: CouponQuery) -> Matching:
    """Return the coupons in the trash that match a ``CouponQuery``."""
    search, conditions = filters_of(query)
    return Matching(COUPONS.c.id, conditions, TRASHED, search=search)


def filters_of(query: CouponQuery) -> tuple[Search | None, list[ColumnElement[bool]]]:
    """Return the search and the conditions of a ``CouponQuery``."""
    conditions, q = conditions_of(query), query.q
    if query.type is not None:
        conditions.append(COUPONS.c.type == query.type)
    search = None if q is None else contains(COUPONS.c.search_text, q, COUPONS.c.id)
    found = metadata.search_of(metadata.COUPON, COUPONS.c.id, query.metadata)
    return narrowed(search, found), conditions


def ids_after(
    actor: Principal, query: CouponQuery, after: int, limit: int, *, trashed: bool = False
) -> list[int]:
    """Return the IDs of the coupons that match a ``CouponQuery`` and follow an ID.

    Raises:
        InvalidParams: the type in the filter is unknown.
        ShopError: the capability is missing.
    """
    require_known_filter(query)
    actor.require("shop_api_user_cannot_read_coupons")
    return plans.ids_after(_in_trash(query) if trashed else _matching(query), after, limit)


def counts_by_state(actor: Principal, query: CouponQuery) -> dict[str, int]:
    """Return the numbers of coupons in each state but ``active``, and of the ``trash``, at once.

    Args:
        query: a ``CouponQuery`` without a search. Its state is ignored.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_coupons")
    states = {
        name: select(func.count()).where(PUBLISHED, *filters_of(replace(query, state=name))[1])
        for name in NOT_ACTIVE
    }
    in_trash = filters_of(replace(query, state=None))[1]
    states["trash"] = select(func.count()).where(TRASHED, *in_trash)
    counts = (
        each.select_from(COUPONS).scalar_subquery().label(name) for name, each in states.items()
    )
    return fetch(select(*counts))[0]._asdict()


def coupons_with_ids(actor: Principal, ids: Sequence[int], columns: Columns) -> list[Row]:
    """Return the coupons with these IDs, also those in the trash, in the order of the IDs.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_coupons")
    return fetch_by_ids(fetch, columns, COUPONS.c.id, ids)


def states_of(ids: Sequence[int]) -> dict[int, Record]:
    """Return what else determines the state of coupons, by their ID.

    Returns:
        The number of ``reserved`` uses, ``active``, ``starts_at`` and ``campaign_id``. Of coupons
        that do not exist, those of a new coupon.
    """
    names = ("reserved_count", "active", "starts_at", "campaign_id")
    columns = (COUPONS.c[name] for name in ("id", *names))
    rows = fetch(select(*columns).where(COUPONS.c.id.in_(ids)))
    new = {"reserved": 0, "active": True, "starts_at": None, "campaign_id": None}
    states = dict.fromkeys(ids, new)
    found = {row[0]: dict(zip(states[row[0]], row[1:], strict=True)) for row in rows}
    return states | found


def ids_of_codes(codes: Sequence[str]) -> dict[str, int]:
    """Return the IDs of the published coupons that have one of some normalized codes, by code."""
    if not codes:
        return {}
    wanted = select(COUPONS.c.code, COUPONS.c.id).where(HAS_ONE_OF_CODES)
    return {row.code: row.id for row in fetch(wanted, {"codes": list(codes)})}
