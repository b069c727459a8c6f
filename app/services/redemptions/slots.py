"""Exact counting of the uses of limited coupons (redemptions 4 and 6).

Each use takes a slot with one conditional UPDATE, which locks the coupon, and inserts or updates a
redemption. Uses by one customer are counted in other rows, so the coupon is locked before it. All
transactions lock the coupon before its redemptions, except that orders change the counts of coupons
without limits at the end (``notify_with_coupons``).

``coupons.reserved_count`` counts the reservations with ``holds_slot``. When there is no free slot,
the expiry of reservations is stored, so no scheduled job is required. No condition of a slot
depends on the clock, because the clocks of machines differ: a reservation that another machine
still regards as live cannot be confirmed after its slot was given away (redemptions, last
paragraph). Coupons without limits do not count reservations, and their reservations do not wait for
each other. An update that sets a ``usage_limit`` counts them (``count_reservations``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    and_,
    bindparam,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from app.db.errors import TryAgain
from app.db.read_pool import Fetch, fetching
from app.db.records import Record
from app.db.session import now
from app.models import COUPONS, REDEMPTIONS
from app.models.coupon import CouponRow
from app.models.redemption import (
    IS_EXPIRED_RESERVATION,
    RedemptionRow,
)
from app.pricing.evaluation import limit_reasons, pause_reasons
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.coupons.customers import Customer
from app.services.coupons.refusals import NOT_FOUND, CouponRefused
from app.services.coupons.terms import (
    IS_BELOW_LIMIT,
    IS_CURRENT,
    STORED_USES_BY_CUSTOMER,
    FoundCoupon,
    count_reservations,
    coupon_by_id,
)
from app.services.redemptions.counts import (
    HOLD_UNLIMITED,
    IS_FOUND,
    THIS,
    TIMES,
    lock_coupon,
    row_of,
)
from app.services.redemptions.expiry import expire_all
from app.services.redemptions.stored import store_expiry

_HAS_SLOT = or_(COUPONS.c.usage_limit == 0, IS_BELOW_LIMIT)
_HAS_SLOT_FOR_CUSTOMER = or_(
    COUPONS.c.usage_limit_per_user == 0,
    and_(COUPONS.c.usage_limit_per_user > STORED_USES_BY_CUSTOMER, IS_CURRENT),
)
BATCH = 100
"""Reservations whose expiry is stored at a time."""
_EXPIRED = (
    SELECT_USES.where(REDEMPTIONS.c.coupon_id == bindparam("this"), IS_EXPIRED_RESERVATION)
    .order_by(REDEMPTIONS.c.expires_at, REDEMPTIONS.c.id)
    .limit(BATCH)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class CouponSlot:
    """A slot that a use has taken.

    Attributes:
        coupon: the coupon by its column names, with this use if it is counted.
        is_counted: ``holds_slot`` of the redemption.
        uncounted: what the caller adds to ``usage_count``: 1 if a coupon without limits is used.
        expired: reservations whose expiry was stored, which the caller reports.
    """

    coupon: CouponRow
    is_counted: bool
    uncounted: int = 0
    expired: Sequence[RedemptionRow] = ()


def _taking(*conditions: ColumnElement[bool]) -> ReturningUpdate[Any]:
    """Return the statement that takes a slot of a locked coupon.

    Args:
        conditions: in addition to those of the coupon's status.
    """
    more: dict[Any, Any] = {
        column: COUPONS.c[column] + bindparam(f"more_{column}", type_=Integer)
        for column in ("usage_count", "reserved_count")
    }
    taking = update(COUPONS).where(THIS, IS_FOUND, *conditions)
    return taking.values({**more, **TIMES}).returning(*COUPONS.c)


# Without an ID and an e-mail, no uses are those of the customer.
_TAKE = _taking(_HAS_SLOT, _HAS_SLOT_FOR_CUSTOMER)
# It locks the coupon itself, for one statement less than with a lock before it.
_TAKE_OF_ALL_USES = _taking(_HAS_SLOT, COUPONS.c.usage_limit_per_user == 0)


def fetch_in(session: Session) -> Fetch:
    """Return a function that runs selects in the transaction of a session."""
    return fetching(session.connection())


def take_slot(
    session: Session,
    coupon: FoundCoupon,
    customer: Customer,
    *,
    confirmed: bool,
    published: bool = True,
    active: bool = True,
    own_order_id: int = 0,
    param: str,
) -> CouponSlot:
    """Take a slot of a coupon within its limits.

    Args:
        coupon: the coupon as it was read. Its limits are checked again.
        confirmed: whether the use is confirmed immediately, or reserved.
        published: whether to reject a coupon in the trash.
        active: whether to reject a paused coupon.
        own_order_id: ID of an order whose uses do not count against the customer.
        param: location of the code in the error.

    Raises:
        ShopError: a limit is reached, or the coupon is paused; with the reasons.
    """
    this = {"this": coupon.id, "also_in_trash": not published, "also_paused": not active}
    use: Record = {
        **this,
        "more_usage_count": int(confirmed),
        "more_reserved_count": int(not confirmed),
        "used_at": now() if confirmed else None,
    }
    if not coupon.is_limited and (taken := row_of(session, HOLD_UNLIMITED, this)):
        slot = CouponSlot(taken, is_counted=False, uncounted=int(confirmed))
    elif not coupon.terms.usage_limit_per_user and (
        taken := row_of(session, _TAKE_OF_ALL_USES, use)
    ):
        slot = CouponSlot(taken, is_counted=not confirmed)
    else:
        use |= {"own_order_id": own_order_id, **customer.parameters}
        taken, expired = _take_locked(session, coupon, customer, use, param)
        slot = CouponSlot(taken, is_counted=not confirmed, expired=expired)
    if slot.coupon["campaign_id"] != coupon.campaign_id:  # it has changed since it was read
        raise TryAgain
    return slot


def _take_locked(
    session: Session,
    coupon: FoundCoupon,
    customer: Customer,
    parameters: Record,
    param: str,
) -> tuple[CouponRow, list[RedemptionRow]]:
    """Lock a coupon and take a slot of it, also one that only expired reservations have.

    Returns:
        The coupon with this use, and the reservations whose expiry was stored.
    """
    lock_coupon(session, coupon.id)  # so that the count of the customer's uses cannot change
    expired: list[RedemptionRow] = []
    is_recounted = False
    while not (taken := row_of(session, _TAKE, parameters)):
        found = coupon_by_id(fetch_in(session), coupon.id, customer, parameters["own_order_id"])
        if found is None or not (found.is_published or parameters["also_in_trash"]):
            raise CouponRefused(coupon.code, [NOT_FOUND], param)
        terms = replace(found.terms, campaign=None)  # it was checked before the coupon
        pauses = () if parameters["also_paused"] else pause_reasons(terms)
        if reasons := [*limit_reasons(terms), *pauses]:
            raise CouponRefused(coupon.code, reasons, param)
        if some := _expire_some(session, coupon.id):
            expired += some
            continue
        _require_current(session, customer)
        if is_recounted:
            raise RuntimeError(f"coupon {coupon.id} has a slot that cannot be taken")
        # Only SQL by hand can have changed the number of reservations.
        count_reservations(session, [coupon.id])
        is_recounted = True
    return taken, expired


def _require_current(session: Session, customer: Customer) -> None:
    """Raise TryAgain if an account of the customer has changed since it was read (IS_CURRENT)."""
    if not session.scalar(select(IS_CURRENT), customer.parameters):
        raise TryAgain


def require_use_left(
    session: Session, coupon_id: int | None, customer: Customer, own_order_id: int, param: str
) -> list[RedemptionRow]:
    """Reject a new customer of an order who has used up a coupon of the order.

    Returns:
        Reservations whose expiry was stored, which the caller reports.

    Raises:
        ShopError: uses other than those of the order reach the limit per user.
    """
    if coupon_id is None or not customer.is_known or not lock_coupon(session, coupon_id):
        return []
    coupon = coupon_by_id(fetch_in(session), coupon_id, customer, own_order_id)
    if coupon is None or not coupon.terms.usage_limit_per_user:
        return []
    _require_current(session, customer)
    terms = replace(coupon.terms, usage_limit=None, campaign=None)
    if reasons := list(limit_reasons(terms)):
        raise CouponRefused(coupon.code, reasons, param)
    expired: list[RedemptionRow] = []
    while some := _expire_some(session, coupon_id):
        expired += some
    return expired


def _expire_some(session: Session, coupon_id: int) -> list[RedemptionRow]:
    """Store the expiry of the oldest expired reservations of a locked coupon.

    Raises:
        TryAgain: some count for a campaign, which must be locked before the coupon.
    """
    expired = stored_uses(session.execute(_EXPIRED, {"this": coupon_id}))
    if any(each["campaign_id"] is not None for each in expired):
        raise TryAgain(partial(expire_all, REDEMPTIONS.c.coupon_id == coupon_id))
    return store_expiry(session, expired)
