"""The rules for reading redemptions (redemptions 4 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from sqlalchemy import (
    ColumnElement,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch, fetch
from app.db.records import WANTED, Columns, NamedColumns, Row, select_where
from app.db.search import email_key
from app.db.session import now
from app.db.sql.index_hints import has_constant
from app.errors import ShopError
from app.models import DELETED_COUPONS, REDEMPTIONS
from app.models.redemption import (
    IS_CONFIRMED,
    IS_EXPIRED_RESERVATION,
    IS_LIVE_RESERVATION,
    IS_RESERVED,
    RedemptionStatus,
)
from app.services.common.erased import USE_COLUMNS, belongs_to, is_erased
from app.services.common.filtering import (
    Find,
    ListQuery,
    Matching,
    between,
    require_known_status,
)
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page
from app.services.common.row_counts import RowCountFilter
from app.services.redemptions.stored import is_of_order

_HAS_ID = REDEMPTIONS.c.id == bindparam(WANTED)

# A reservation counts as released from the second in which it expires.
COLUMNS: NamedColumns = {
    **USE_COLUMNS,
    "status": case(
        (IS_EXPIRED_RESERVATION, literal(RedemptionStatus.RELEASED.value)),
        else_=REDEMPTIONS.c.status,
    ),
    "updated_at": case(
        (IS_EXPIRED_RESERVATION, REDEMPTIONS.c.expires_at), else_=REDEMPTIONS.c.updated_at
    ),
}
_COUNTED = RowCountFilter("redemptions", REDEMPTIONS.c.created_at, changed=REDEMPTIONS.c.updated_at)
_REQUEST = timedelta(minutes=1)
"""Longer than a request takes. Reservations expire during it."""
_IS_AS_STORED = not_(func.coalesce(IS_EXPIRED_RESERVATION, false()))
SORT_KEYS: NamedColumns = {
    "date": REDEMPTIONS.c.created_at,
    "id": REDEMPTIONS.c.id,
    "expires_at": REDEMPTIONS.c.expires_at,
}
_HAS_STATUS: Mapping[str, ColumnElement[bool]] = {
    RedemptionStatus.RESERVED: IS_LIVE_RESERVATION,
    RedemptionStatus.CONFIRMED: IS_CONFIRMED,
    RedemptionStatus.RELEASED: or_(
        has_constant(REDEMPTIONS.c.status, RedemptionStatus.RELEASED), IS_EXPIRED_RESERVATION
    ),
}


@dataclass(frozen=True, kw_only=True)
class RedemptionQuery(ListQuery):
    """What a list of redemptions may ask (redemptions 6)."""

    status: Sequence[str] | None = None
    code: str | None = None
    coupon_id: int | None = None
    campaign: int | None = None
    order_id: int | None = None
    customer_id: int | None = None
    reference: str | None = None
    email: str | None = None


def list_redemptions(actor: Principal, query: RedemptionQuery, columns: Columns) -> Page:
    """Return a page of the redemptions that match, in the order of the query."""
    return fetch_page(
        columns,
        _matching(query),
        query,
        key=SORT_KEYS[query.orderby],
        may_read=actor.can(Capability.READ_PRIVATE_SHOP_ORDERS),
    )


def count_redemptions(actor: Principal, query: RedemptionQuery) -> int:
    """Return the number of redemptions that match.

    Raises:
        InvalidParams: a status in the filter is unknown.
        ShopError: the capability is missing.
    """
    matching = _matching(query)
    actor.require("shop_api_user_cannot_read_redemptions_count")
    return count(matching).number


def get_redemption(actor: Principal, redemption_id: int, columns: Columns) -> Row:
    """Return the redemption with this ID, or raise ShopError if it or the capability is missing."""
    found = select_where(tuple(columns), REDEMPTIONS.c.id, _HAS_ID)
    rows: Sequence[Row] = fetch(found, {WANTED: redemption_id})
    if not rows:
        raise ShopError("shop_api_invalid_redemption_id")
    actor.require("shop_api_user_cannot_read_redemption")
    return rows[0]


def _matching(query: RedemptionQuery) -> Find:
    """Return the redemptions that match a ``RedemptionQuery``."""
    conditions = conditions_of(query)
    if query.updated_at_min is None and query.updated_at_max is None:
        found = _found(conditions)
        return partial(_with_few, found) if _is_at_end(query, "created_at", found) else found
    return partial(_changed, query, conditions)


def _changed(
    query: RedemptionQuery, conditions: Sequence[ColumnElement[bool]], fetch: Fetch
) -> Matching:
    """Return the redemptions that match a query with a period of changes, and its conditions.

    The stored times alone are compared if no reservation expires that is in the period by one of
    its times only. To compare each of a million with both takes three times as long.
    """
    updated_at, expires_at = REDEMPTIONS.c.updated_at, REDEMPTIONS.c.expires_at
    stored, expired = (_updated(column, query) for column in (updated_at, expires_at))
    differs = and_(*stored) != and_(*expired)
    expiring = select(expires_at).where(IS_RESERVED, expires_at <= now() + _REQUEST, differs)
    # Sorted, so that PostgreSQL reads the index of reservations whatever its statistics say.
    first = expiring.order_by(expires_at, REDEMPTIONS.c.id).limit(1).scalar_subquery()
    if fetch(select(first))[0][0] is not None:
        return _found(conditions)
    matching = _found(conditions_of(query, as_stored=True))
    return _with_few(matching, fetch) if _is_at_end(query, "updated_at", matching) else matching


def _is_at_end(query: RedemptionQuery, name: str, matching: Matching) -> bool:
    """Return whether a query has no filter but a period, whose redemptions are at the list's end.

    Args:
        name: the beginning of the names of the bounds. The index of their times has the ID and the
            expiry, too.
    """
    first, last = getattr(query, f"{name}_min"), getattr(query, f"{name}_max")
    if query.orderby == "date" or len(matching.conditions) > len({first, last} - {None}):
        return False
    return (last if query.order == "desc" else first) is not None


def _with_few(matching: Matching, fetch: Fetch) -> Matching:
    """Return matches that are found first, and then sorted, if they are up to half of all."""
    return replace(matching, few=int(fetch(_COUNTED.number)[0][0]) // 2)


def _found(conditions: Sequence[ColumnElement[bool]]) -> Matching:
    return Matching(REDEMPTIONS.c.id, conditions, counted=_COUNTED, others=false())


def conditions_of(query: RedemptionQuery, *, as_stored: bool = False) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``RedemptionQuery``.

    Args:
        as_stored: whether to compare the stored times of changes, also of expired reservations.
    """
    conditions = between({"created_at": REDEMPTIONS.c.created_at}, query)
    if as_stored:
        conditions += _updated(REDEMPTIONS.c.updated_at, query)
    elif query.updated_at_min is not None or query.updated_at_max is not None:
        # Each of the two conditions has an index.
        is_stored = and_(_IS_AS_STORED, *_updated(REDEMPTIONS.c.updated_at, query))
        is_expired = and_(IS_EXPIRED_RESERVATION, *_updated(REDEMPTIONS.c.expires_at, query))
        conditions.append(or_(is_stored, is_expired))
    if query.code is not None:
        conditions.append(REDEMPTIONS.c.code == query.code)
    if query.reference is not None:
        conditions.append(REDEMPTIONS.c.reference == query.reference)
    if query.email is not None:
        conditions.append(REDEMPTIONS.c.email_normalized == email_key(query.email.strip()))
        conditions.append(func.coalesce(~is_erased(REDEMPTIONS.c.customer_id), true()))
    # Larger IDs identify no record.
    if query.coupon_id is not None:
        coupon_id = min(query.coupon_id, INT64_MAX)
        conditions.append(REDEMPTIONS.c.coupon_id == coupon_id)
        conditions.append(~exists().where(DELETED_COUPONS.c.id == coupon_id))
    if query.campaign is not None:
        conditions.append(REDEMPTIONS.c.campaign_id == min(query.campaign, INT64_MAX))
    if query.order_id is not None:
        conditions.append(is_of_order(min(query.order_id, INT64_MAX)))
    if (customer_id := query.customer_id) is not None:
        conditions.append(
            belongs_to(REDEMPTIONS.c.customer_id, min(customer_id, INT64_MAX))
            if customer_id
            else REDEMPTIONS.c.customer_id.is_(None)
        )
    require_known_status(query.status, _HAS_STATUS)
    if query.status is not None:
        conditions.append(or_(*(_HAS_STATUS[status] for status in query.status)))
    return conditions


def _updated(column: ColumnElement[object], query: RedemptionQuery) -> list[ColumnElement[bool]]:
    return between({"updated_at": column}, query)
