"""Exact counting of the uses of limited coupons (redemptions 4 and 6).

Each use takes a slot with one conditional UPDATE of the coupon's row, which contains all counters
of the condition. If another transaction holds the row, the database waits and then checks the
condition again, on PostgreSQL also at READ COMMITTED. Uses by one customer are counted in other
rows, so the coupon is locked first. All transactions lock the coupon before its redemptions, except
that orders change the counts of coupons without limits at the end (``notify_with_coupons``).

``coupons.reserved_count`` counts the reservations with ``holds_slot``. When there is no free slot,
the expiry of reservations is stored, so no scheduled job is required. No condition of a slot
depends on the clock, because the clocks of machines differ: a reservation that another machine
still regards as live cannot be confirmed after its slot was given away (redemptions, last
paragraph). Coupons without limits do not count reservations, and their reservations do not wait for
each other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    String,
    and_,
    bindparam,
    case,
    cast,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch
from app.db.records import row_dicts, with_columns
from app.errors import ShopError
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import (
    IS_EXPIRED_RESERVATION,
    IS_RESERVED,
    RedemptionRow,
    RedemptionStatus,
)
from app.pricing.evaluation import REASONS, Reason, limit_reasons
from app.services.coupons.customers import Customer
from app.services.coupons.queries import PUBLISHED
from app.services.coupons.refusals import CouponRefused
from app.services.coupons.terms import (
    IS_BELOW_LIMIT,
    STORED_USES_BY_CUSTOMER,
    FoundCoupon,
    coupon_by_id,
    number_of_redemptions,
)
from app.services.redemptions.counts import change_counts

NOT_FOUND = Reason("not_found", REASONS["not_found"])

_THIS = COUPONS.c.id == bindparam("this")
_HAS_SLOT = or_(COUPONS.c.usage_limit == 0, IS_BELOW_LIMIT)
_HAS_SLOT_FOR_CUSTOMER = or_(
    COUPONS.c.usage_limit_per_user == 0,
    COUPONS.c.usage_limit_per_user > STORED_USES_BY_CUSTOMER,
)
_IS_UNLIMITED = and_(COUPONS.c.usage_limit == 0, COUPONS.c.usage_limit_per_user == 0)
# The foreign key of a new redemption takes the same lock, and an update that sets a limit waits for
# it. The key of the dict is whether the coupon must be published.
_HOLD_UNLIMITED = {
    published: select(COUPONS)
    .where(_THIS, _IS_UNLIMITED, *([PUBLISHED] if published else []))
    .with_for_update(read=True, key_share=True)
    for published in (True, False)
}
_LOCK = select(COUPONS.c.id).where(_THIS).with_for_update(key_share=True)
_RECOUNT = (
    update(COUPONS)
    .where(_THIS)
    .values(reserved_count=number_of_redemptions(IS_RESERVED, REDEMPTIONS.c.holds_slot))
)
BATCH = 100
"""Reservations whose expiry is stored at a time."""
_EXPIRED = (
    select(REDEMPTIONS)
    .where(REDEMPTIONS.c.coupon_id == bindparam("this"), IS_EXPIRED_RESERVATION)
    .order_by(REDEMPTIONS.c.expires_at, REDEMPTIONS.c.id)
    .limit(BATCH)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that a use has taken.

    Attributes:
        coupon: the coupon by its column names, with this use if it is counted.
        is_counted: ``holds_slot`` of the redemption.
        uncounted: what the caller adds to ``usage_count``: 1 if a coupon without limits is used.
        expired: reservations whose expiry was stored, which the caller reports.
    """

    coupon: Mapping[str, Any]
    is_counted: bool
    uncounted: int = 0
    expired: Sequence[RedemptionRow] = ()


def _taking(column: ColumnElement[int], *conditions: ColumnElement[bool]) -> ReturningUpdate[Any]:
    # An update can have set the largest integer, if only the uses by a customer are limited.
    more = case((column < INT64_MAX, column + 1), else_=column)
    taking = update(COUPONS).where(_THIS, *conditions).values({column: more})
    return taking.returning(*COUPONS.c)


class _Check(StrEnum):
    """Condition of a slot in addition to ``usage_limit``."""

    NOTHING = "nothing"  # the limit per user is not checked without an ID and an e-mail
    NO_LIMIT_PER_USER = "no_limit_per_user"
    USES_BY_CUSTOMER = "uses_by_customer"


_CONDITIONS: Mapping[_Check, Sequence[ColumnElement[bool]]] = {
    _Check.NOTHING: (),
    _Check.NO_LIMIT_PER_USER: (COUPONS.c.usage_limit_per_user == 0,),
    _Check.USES_BY_CUSTOMER: (_HAS_SLOT_FOR_CUSTOMER,),
}
# Keys: whether the coupon must be published, whether the use is confirmed immediately, the check.
_TAKE = {
    (published, confirmed, check): _taking(
        COUPONS.c.usage_count if confirmed else COUPONS.c.reserved_count,
        *([PUBLISHED] if published else []),
        _HAS_SLOT,
        *_CONDITIONS[check],
    )
    for published in (True, False)
    for confirmed in (True, False)
    for check in _Check
}
RESERVE_BY_CODE = (
    update(COUPONS)
    .where(
        COUPONS.c.code == bindparam("wanted"),
        PUBLISHED,
        COUPONS.c.usage_limit > 0,
        COUPONS.c.usage_limit_per_user == 0,
        or_(COUPONS.c.expiry_date.is_(None), COUPONS.c.expiry_date > bindparam("today")),
        cast(COUPONS.c.customer_emails, String) == "[]",
        IS_BELOW_LIMIT,
    )
    .values(reserved_count=COUPONS.c.reserved_count + 1)
    .returning(*COUPONS.c)
)
"""Takes a slot for a reservation by anybody: of a published coupon with a limit of all uses only.

All conditions of a reservation are checked (redemptions 6).
"""


def fetch_in(session: Session) -> Fetch:
    """Return a function that runs selects in the transaction of a session."""

    def fetch(statement: Any, parameters: Any = None) -> Any:
        # Core's execute takes two thirds of the time of the session's.
        return session.connection().execute(statement, dict(parameters or {})).all()

    return fetch


def not_applicable(code: str, reasons: Iterable[Reason], param: str) -> ShopError:
    """Return the error for a coupon that is not applicable, with all reasons."""
    first, *others = reasons
    listed = [{"code": each.code, "message": each.message} for each in (first, *others)]
    reason = " ".join(each["message"] for each in listed)
    return CouponRefused(code, listed, first.amount, param=param, reason=reason)


def lock_coupon(session: Session, coupon_id: int) -> bool:
    """Lock a coupon until the commit. Return whether it exists."""
    return session.scalar(_LOCK, {"this": coupon_id}) is not None


def hold_unlimited(session: Session, coupon_id: int) -> bool:
    """Return whether a coupon has no limits. If so, no update sets one before the commit."""
    return _row(session, _HOLD_UNLIMITED[False], {"this": coupon_id}) is not None


def take_slot(
    session: Session,
    coupon: FoundCoupon,
    customer: Customer,
    *,
    confirmed: bool,
    published: bool = True,
    own_order_id: int = 0,
    param: str,
) -> Slot:
    """Take a slot of a coupon within its limits.

    Args:
        coupon: the coupon as it was read. Its limits are checked again.
        confirmed: whether the use is confirmed immediately, or reserved.
        published: whether to reject a coupon in the trash.
        own_order_id: ID of an order whose uses do not count against the customer.
        param: location of the code in the error.

    Raises:
        ShopError: a limit is reached, with the reasons.
    """
    this = {"this": coupon.id}
    by_customer = this | {"own_order_id": own_order_id, **customer.parameters}
    if not coupon.is_limited:
        if held := _row(session, _HOLD_UNLIMITED[published], this):
            return Slot(held, is_counted=False, uncounted=int(confirmed))
    elif customer.is_known and coupon.terms.usage_limit_per_user:
        lock_coupon(session, coupon.id)  # so that the count of the customer's uses cannot change
        taking = _TAKE[published, confirmed, _Check.USES_BY_CUSTOMER]
        if taken := _row(session, taking, by_customer):
            return Slot(taken, is_counted=not confirmed)
    else:
        check = _Check.NO_LIMIT_PER_USER if customer.is_known else _Check.NOTHING
        if taken := _row(session, _TAKE[published, confirmed, check], this):
            return Slot(taken, is_counted=not confirmed)
    check = _Check.USES_BY_CUSTOMER if customer.is_known else _Check.NOTHING
    taking = _TAKE[published, confirmed, check]
    still = partial(coupon_by_id, fetch_in(session), coupon.id, customer, own_order_id)
    taken, expired = _take_after_expiry(
        session, coupon.code, still, taking, by_customer, published=published, param=param
    )
    return Slot(taken, is_counted=not confirmed, expired=expired)


def _take_after_expiry(
    session: Session,
    code: str,
    still: Callable[[], FoundCoupon | None],
    taking: Executable,
    parameters: dict[str, Any],
    *,
    published: bool,
    param: str,
) -> tuple[Mapping[str, Any], list[RedemptionRow]]:
    """Take a slot that was not free, because only expired reservations have it."""
    lock_coupon(session, parameters["this"])
    expired: list[RedemptionRow] = []
    is_recounted = False
    while True:
        coupon = still()
        if coupon is None or (published and not coupon.is_published):
            raise not_applicable(code, [NOT_FOUND], param)
        if reasons := list(limit_reasons(coupon.terms)):
            raise not_applicable(code, reasons, param)
        some = _expire_some(session, coupon.id)
        expired += some
        if taken := _row(session, taking, parameters):
            return taken, expired
        if not some:
            # Only SQL by hand can change the number of reservations. Do not try for ever.
            if is_recounted:
                raise RuntimeError(f"coupon {coupon.id} has a slot that cannot be taken")
            session.execute(_RECOUNT, {"this": coupon.id})
            is_recounted = True


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
    terms = replace(coupon.terms, usage_limit=None)
    if reasons := list(limit_reasons(terms)):
        raise not_applicable(coupon.code, reasons, param)
    expired: list[RedemptionRow] = []
    while some := _expire_some(session, coupon_id):
        expired += some
    return expired


def _expire_some(session: Session, coupon_id: int) -> list[RedemptionRow]:
    """Store the expiry of the oldest expired reservations of a locked coupon."""
    return store_expiry(session, row_dicts(session.execute(_EXPIRED, {"this": coupon_id})))


def store_expiry(session: Session, expired: Sequence[RedemptionRow]) -> list[RedemptionRow]:
    """Store that reservations have expired, and free their slots.

    From the commit, the reservations are released for all processes, whatever their clocks say.

    Args:
        expired: reservations that have expired. They and their coupons are locked.

    Returns:
        The redemptions as stored. The caller reports them.
    """
    if not expired:
        return []
    released = {"status": RedemptionStatus.RELEASED, "holds_slot": False}
    session.execute(
        update(REDEMPTIONS)
        .where(REDEMPTIONS.c.id.in_([row["id"] for row in expired]))
        .values(**released, updated_at=REDEMPTIONS.c.expires_at)
    )
    slots = Counter(row["coupon_id"] for row in expired if row["holds_slot"])
    for coupon_id, number in slots.items():
        change_counts(session, coupon_id, reserved=-number)
    return [with_columns(row, released | {"updated_at": row["expires_at"]}) for row in expired]


def _row(
    session: Session, statement: Executable, parameters: dict[str, Any]
) -> Mapping[str, Any] | None:
    row = session.connection().execute(statement, parameters).mappings().first()
    return dict(row) if row else None
