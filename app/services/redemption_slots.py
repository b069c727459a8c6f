"""Slots of limited coupons: taken, given back and moved exactly (redemptions 4 and 6).

A slot is taken by one conditional UPDATE of the coupon's row, whose condition and counters are all
in this row: the database repeats the condition for whoever waited for the row, on PostgreSQL at
READ COMMITTED, too. What is counted in other rows (uses by one customer) is counted while the row
is held. Everybody locks the coupon first and its redemptions after it.

``coupons.reserved_count`` includes the reservations with ``holds_slot``. Those that have expired
are subtracted when somebody finds no slot, so no job has to run. A coupon without limits does not
count reservations, and its reservations do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Update,
    and_,
    bindparam,
    case,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.db.read_pool import Fetch
from app.errors import ShopError
from app.evaluation import REASONS, Reason, limit_reasons
from app.models.redemption import RedemptionStatus
from app.services.coupon_terms import (
    COUPONS,
    IS_LIVE_RESERVATION,
    NOW,
    PUBLISHED,
    REDEMPTIONS,
    USES_BY_CUSTOMER,
    Customer,
    FoundCoupon,
    coupon_by_id,
    number_of_redemptions,
)

NOT_FOUND = Reason("not_found", REASONS["not_found"])

_THIS = COUPONS.c.id == bindparam("this")
# Reserved while the coupon had no limit.
_UNCOUNTED = number_of_redemptions(IS_LIVE_RESERVATION, ~REDEMPTIONS.c.holds_slot)
_HAS_SLOT = or_(
    COUPONS.c.usage_limit == 0,
    COUPONS.c.usage_count + COUPONS.c.reserved_count + _UNCOUNTED < COUPONS.c.usage_limit,
)
_HAS_SLOT_FOR_CUSTOMER = or_(
    COUPONS.c.usage_limit_per_user == 0, COUPONS.c.usage_limit_per_user > USES_BY_CUSTOMER
)
_IS_UNLIMITED = and_(COUPONS.c.usage_limit == 0, COUPONS.c.usage_limit_per_user == 0)
# The foreign key of a new redemption takes the same lock. An update that sets a limit waits for it.
# By whether the coupon must be published.
_HOLD_UNLIMITED = {
    published: select(COUPONS.c.id)
    .where(_THIS, _IS_UNLIMITED, *([PUBLISHED] if published else []))
    .with_for_update(read=True, key_share=True)
    for published in (True, False)
}
_LOCK = select(COUPONS.c.id).where(_THIS).with_for_update(key_share=True)
_EXPIRED = and_(
    REDEMPTIONS.c.coupon_id == bindparam("this"),
    REDEMPTIONS.c.status == RedemptionStatus.RESERVED,
    REDEMPTIONS.c.holds_slot,
    REDEMPTIONS.c.expires_at <= NOW,
)
_GIVE_UP_EXPIRED = update(REDEMPTIONS).where(_EXPIRED).values(holds_slot=False)


def _taking(column: ColumnElement[int], *conditions: ColumnElement[bool]) -> Update:
    return update(COUPONS).where(_THIS, *conditions).values({column: column + 1})


class _Check(StrEnum):
    """What is checked in addition to ``usage_limit`` when a slot is taken."""

    NOTHING = "nothing"  # without an ID and an e-mail, the limit per user is not checked
    NO_LIMIT_PER_USER = "no_limit_per_user"
    USES_BY_CUSTOMER = "uses_by_customer"


_CONDITIONS: Mapping[_Check, Sequence[ColumnElement[bool]]] = {
    _Check.NOTHING: (),
    _Check.NO_LIMIT_PER_USER: (COUPONS.c.usage_limit_per_user == 0,),
    _Check.USES_BY_CUSTOMER: (_HAS_SLOT_FOR_CUSTOMER,),
}
# By whether the coupon must be published, whether the use is confirmed at once, and the check.
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
_CHANGE = update(COUPONS).where(_THIS).values(
    # A count that an update has set lower never falls below 0 (redemptions 6).
    usage_count=case(
        (COUPONS.c.usage_count + bindparam("usage") < 0, 0),
        else_=COUPONS.c.usage_count + bindparam("usage"),
    ),
    reserved_count=COUPONS.c.reserved_count + bindparam("reserved"),
)  # fmt: skip


def fetch_in(session: Session) -> Fetch:
    """Return what runs selects in the transaction of a session."""

    def fetch(statement: Any, parameters: Any = None) -> Any:
        return session.execute(statement, dict(parameters or {})).all()

    return fetch


def not_applicable(code: str, reasons: Iterable[Reason], param: str) -> ShopError:
    """Return the error of a coupon that cannot be used, with all reasons."""
    listed = [{"code": reason.code, "message": reason.message} for reason in reasons]
    reason = " ".join(each["message"] for each in listed)
    return ShopError(
        "shop_api_coupon_not_applicable", param=param, coupon=code, reason=reason, reasons=listed
    )


def lock_coupon(session: Session, coupon_id: int) -> bool:
    """Hold a coupon until the commit; return whether it exists."""
    return session.scalar(_LOCK, {"this": coupon_id}) is not None


def take_slot(
    session: Session,
    coupon: FoundCoupon,
    customer: Customer,
    *,
    confirmed: bool,
    published: bool = True,
    own_order_id: int = 0,
    param: str,
) -> bool:
    """Take one use of a coupon, within its limits.

    Args:
        coupon: as it was read; its limits are looked at again.
        confirmed: whether the use is confirmed at once, or reserved.
        published: whether a coupon in the trash is refused.
        own_order_id: an order whose uses do not count against the customer.
        param: location of the code in the error.

    Returns:
        ``holds_slot`` of the redemption.

    Raises:
        ShopError: a limit is reached; with the reasons.
    """
    this = {"this": coupon.id}
    by_customer = this | {"own_order_id": own_order_id, **customer.parameters}
    if not confirmed and not coupon.is_limited:
        if session.scalar(_HOLD_UNLIMITED[published], this):
            return False
    elif customer.is_known and coupon.terms.usage_limit_per_user:
        lock_coupon(session, coupon.id)  # what is counted next is counted while the row is held
        taking = _TAKE[published, confirmed, _Check.USES_BY_CUSTOMER]
        if _changed(session, taking, by_customer):
            return not confirmed
    else:
        check = _Check.NO_LIMIT_PER_USER if customer.is_known else _Check.NOTHING
        if _changed(session, _TAKE[published, confirmed, check], this):
            return not confirmed
    # No slot, as far as can be seen without the lock. With it, everything is exact.
    lock_coupon(session, coupon.id)
    check = _Check.USES_BY_CUSTOMER if customer.is_known else _Check.NOTHING
    while True:
        give_up_expired(session, coupon.id)
        if _changed(session, _TAKE[published, confirmed, check], by_customer):
            return not confirmed
        now_found = coupon_by_id(fetch_in(session), coupon.id, customer, own_order_id)
        if now_found is None or (published and not now_found.is_published):
            raise not_applicable(coupon.code, [NOT_FOUND], param)
        if reasons := list(limit_reasons(now_found.terms)):
            raise not_applicable(coupon.code, reasons, param)
        # A reservation expired between these statements: its slot is free.


def require_use_left(
    session: Session, coupon_id: int | None, customer: Customer, own_order_id: int, param: str
) -> None:
    """Refuse a customer who has used up a coupon, for an order that changes its customer.

    Raises:
        ShopError: the limit per user is reached by other uses than the order's own.
    """
    if coupon_id is None or not customer.is_known or not lock_coupon(session, coupon_id):
        return
    coupon = coupon_by_id(fetch_in(session), coupon_id, customer, own_order_id)
    if coupon is not None:
        terms = replace(coupon.terms, usage_limit=None)
        if reasons := list(limit_reasons(terms)):
            raise not_applicable(coupon.code, reasons, param)


def change_counts(
    session: Session, coupon_id: int | None, *, usage: int = 0, reserved: int = 0
) -> None:
    """Add to the confirmed and the reserved uses of a coupon, if it still exists."""
    if coupon_id is not None and (usage or reserved):
        session.execute(_CHANGE, {"this": coupon_id, "usage": usage, "reserved": reserved})


def give_up_expired(session: Session, coupon_id: int) -> None:
    """Free the slots of the expired reservations of a coupon that is held."""
    result = session.execute(_GIVE_UP_EXPIRED, {"this": coupon_id})
    change_counts(session, coupon_id, reserved=-cast("CursorResult[Any]", result).rowcount)


def _changed(session: Session, statement: Update, parameters: dict[str, Any]) -> bool:
    return cast("CursorResult[Any]", session.execute(statement, parameters)).rowcount == 1
