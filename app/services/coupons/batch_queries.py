"""The rules for reading batches of generated coupons (migration 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, literal_column, select

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, NamedColumns, Record, Row, select_where
from app.db.sql.index_hints import has_constant
from app.errors import ShopError
from app.models import COUPON_BATCHES, COUPONS, REDEMPTIONS
from app.models.coupon import CouponStatus
from app.models.redemption import IS_LIVE_RESERVATION
from app.services.common.filtering import ListQuery, Matching, between
from app.services.common.pagination import Page
from app.services.common.plans import fetch_page
from app.services.coupons.queries import PUBLISHED

_HAS_ID = COUPON_BATCHES.c.id == bindparam(WANTED)

# A literal: SQLite uses a partial index only for the same text.
_ZERO: ColumnElement[int] = literal_column("0")
# Looked up for each coupon of a batch. SQLite would read all open reservations of the shop to
# collect the IDs of their coupons, which takes ten times as long for a batch of 10,000.
_IS_RESERVED = exists().where(REDEMPTIONS.c.coupon_id == COUPONS.c.id, IS_LIVE_RESERVATION)
IS_UNUSED = and_(COUPONS.c.usage_count == 0, ~_IS_RESERVED)
"""A coupon without a confirmed use and without a reservation."""

_TRASHED = has_constant(COUPONS.c.status, CouponStatus.TRASH)


def _number(*conditions: ColumnElement[bool]) -> ColumnElement[int]:
    """Return the number of coupons of a batch that meet the conditions."""
    return (
        select(func.count())
        .where(COUPONS.c.batch_id == COUPON_BATCHES.c.id, *conditions)
        .correlate(COUPON_BATCHES)
        .scalar_subquery()
    )


_USED = _number(PUBLISHED, COUPONS.c.usage_count > _ZERO)
_RESERVED = _number(PUBLISHED, COUPONS.c.usage_count == 0, _IS_RESERVED)
COLUMNS: NamedColumns = {
    **COUPON_BATCHES.c,
    "unused": _number(PUBLISHED) - _USED - _RESERVED,
    "reserved": _RESERVED,
    "used": _USED,
    "trashed": _number(_TRASHED),
}


@dataclass(frozen=True, kw_only=True)
class BatchQuery(ListQuery):
    """What a list of batches may ask."""

    campaign: int | None = None


def list_batches(actor: Principal, query: BatchQuery, columns: Columns) -> Page:
    """Return a page of the batches, newest first unless ``query`` says otherwise.

    The page is empty without the capability to read coupons (decisions 13).
    """
    return fetch_page(
        columns,
        Matching(COUPON_BATCHES.c.id, conditions_of(query)),
        query,
        key=COUPON_BATCHES.c.created_at,
        may_read=actor.can(Capability.READ_PRIVATE_SHOP_COUPONS),
    )


def conditions_of(query: BatchQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``BatchQuery``."""
    conditions = between({"created_at": COUPON_BATCHES.c.created_at}, query)
    if query.campaign is not None:
        conditions.append(COUPON_BATCHES.c.campaign_id == min(query.campaign, INT64_MAX))
    return conditions


def get_batch(actor: Principal, batch_id: int, columns: Columns) -> Row:
    """Return the batch with this ID, or raise ShopError if it or the capability is missing."""
    found = select_where(tuple(columns), COUPON_BATCHES.c.id, _HAS_ID)
    rows: Sequence[Row] = fetch(found, {WANTED: batch_id})
    if not rows:
        raise ShopError("shop_api_invalid_coupon_batch_id")
    actor.require("shop_api_user_cannot_read_coupons")
    return rows[0]


CODE_COLUMNS = (COUPONS.c.code, COUPONS.c.usage_count, COUPONS.c.usage_limit, COUPONS.c.expiry_date)
"""Columns of the codes of a batch."""


def codes_of(actor: Principal, batch_id: int, *, unused: bool = False) -> list[Record]:
    """Return the published coupons of a batch with code, uses and limit, in the order of their IDs.

    Args:
        unused: whether to return only those without a use and a reservation.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_coupons")
    conditions = [COUPONS.c.batch_id == batch_id, PUBLISHED, *([IS_UNUSED] if unused else [])]
    rows = fetch(select(*CODE_COLUMNS).where(*conditions).order_by(COUPONS.c.id))
    return [row._asdict() for row in rows]
