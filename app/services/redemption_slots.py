"""Exact counting of the uses of limited coupons (redemptions 4 and 6).

Each use takes a slot with one conditional UPDATE of the coupon's row, which contains all counters
of the condition. If another transaction holds the row, the database waits and then checks the
condition again, on PostgreSQL also at READ COMMITTED. Uses by one customer are counted in other
rows, so the coupon is locked first. All transactions lock the coupon before its redemptions, except
that orders change the counts of coupons without limits at the end (``notify_with_coupons``).

``coupons.reserved_count`` counts the reservations with ``holds_slot``. Expired reservations are
subtracted when there is no free slot, so no scheduled job is required. Coupons without limits do
not count reservations, and their reservations do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Executable,
    and_,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from app.db.read_pool import Fetch
from app.errors import ShopError
from app.evaluation import REASONS, Reason, limit_reasons
from app.models.tables import COUPONS, REDEMPTIONS
from app.numbers import INT64_MAX
from app.services.coupon_customers import Customer
from app.services.coupon_lookup import (
    IS_BELOW_LIMIT,
    USES_BY_CUSTOMER,
    FoundCoupon,
    coupon_by_id,
)
from app.services.coupon_queries import PUBLISHED
from app.services.redemption_counts import change_counts
from app.services.redemption_status import IS_EXPIRED_RESERVATION

NOT_FOUND = Reason("not_found", REASONS["not_found"])

_THIS = COUPONS.c.id == bindparam("this")
_HAS_SLOT = or_(COUPONS.c.usage_limit == 0, IS_BELOW_LIMIT)
_HAS_SLOT_FOR_CUSTOMER = or_(
    COUPONS.c.usage_limit_per_user == 0, COUPONS.c.usage_limit_per_user > USES_BY_CUSTOMER
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
_EXPIRED = and_(
    REDEMPTIONS.c.coupon_id == bindparam("this"), IS_EXPIRED_RESERVATION, REDEMPTIONS.c.holds_slot
)
_GIVE_UP_EXPIRED = update(REDEMPTIONS).where(_EXPIRED).values(holds_slot=False)


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that a use has taken.

    Attributes:
        coupon: the coupon by its column names, with this use if it is counted.
        is_counted: ``holds_slot`` of the redemption.
        uncounted: what the caller adds to ``usage_count``: 1 if a coupon without limits is used.
    """

    coupon: Mapping[str, Any]
    is_counted: bool
    uncounted: int = 0


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
RESERVE = _TAKE[True, False, _Check.NO_LIMIT_PER_USER]
"""Takes a slot for a reservation of a published coupon without a limit per user."""


def fetch_in(session: Session) -> Fetch:
    """Return a function that runs selects in the transaction of a session."""

    def fetch(statement: Any, parameters: Any = None) -> Any:
        return session.execute(statement, dict(parameters or {})).all()

    return fetch


def not_applicable(code: str, reasons: Iterable[Reason], param: str) -> ShopError:
    """Return the error for a coupon that is not applicable, with all reasons."""
    listed = [{"code": reason.code, "message": reason.message} for reason in reasons]
    reason = " ".join(each["message"] for each in listed)
    return ShopError(
        "shop_api_coupon_not_applicable", param=param, coupon=code, reason=reason, reasons=listed
    )


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
    # No slot was free. Lock the coupon, free the slots of expired reservations and try again.
    lock_coupon(session, coupon.id)
    check = _Check.USES_BY_CUSTOMER if customer.is_known else _Check.NOTHING
    while True:
        give_up_expired(session, coupon.id)
        if taken := _row(session, _TAKE[published, confirmed, check], by_customer):
            return Slot(taken, is_counted=not confirmed)
        now_found = coupon_by_id(fetch_in(session), coupon.id, customer, own_order_id)
        if now_found is None or (published and not now_found.is_published):
            raise not_applicable(coupon.code, [NOT_FOUND], param)
        if reasons := list(limit_reasons(now_found.terms)):
            raise not_applicable(coupon.code, reasons, param)
        # A reservation expired between these statements, so a slot is free.


def require_use_left(
    session: Session, coupon_id: int | None, customer: Customer, own_order_id: int, param: str
) -> None:
    """Reject a new customer of an order who has used up a coupon of the order.

    Raises:
        ShopError: uses other than those of the order reach the limit per user.
    """
    if coupon_id is None or not customer.is_known or not lock_coupon(session, coupon_id):
        return
    coupon = coupon_by_id(fetch_in(session), coupon_id, customer, own_order_id)
    if coupon is not None:
        terms = replace(coupon.terms, usage_limit=None)
        if reasons := list(limit_reasons(terms)):
            raise not_applicable(coupon.code, reasons, param)


def give_up_expired(session: Session, coupon_id: int) -> None:
    """Free the slots of expired reservations of a locked coupon."""
    result = session.execute(_GIVE_UP_EXPIRED, {"this": coupon_id})
    change_counts(session, coupon_id, reserved=-cast("CursorResult[Any]", result).rowcount)


def _row(
    session: Session, statement: Executable, parameters: dict[str, Any]
) -> Mapping[str, Any] | None:
    # Core's execute takes two thirds of the time of the session's.
    row = session.connection().execute(statement, parameters).mappings().first()
    return dict(row) if row else None
