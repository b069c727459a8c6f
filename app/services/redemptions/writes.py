"""The rules for confirming and releasing redemptions through the API (redemptions 4 and 6)."""

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change
from app.conversions.numbers import INT64_MAX
from app.db.records import row_dicts
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import REDEMPTIONS
from app.models.redemption import RedemptionRow, RedemptionStatus, as_shown, has_expired, is_live
from app.services.coupons.customers import counted_customer, find_customer
from app.services.coupons.refusals import counting_refusals
from app.services.coupons.terms import coupon_by_id
from app.services.redemptions.changes import (
    REDEEMED,
    RELEASED,
    expiries,
    notify_with_coupons,
    use_change,
)
from app.services.redemptions.counts import change_counts
from app.services.redemptions.slots import fetch_in, lock_coupon, store_expiry, take_slot
from app.services.redemptions.stored import CODE, give_back, update_redemption

_HAS_ID = select(REDEMPTIONS).where(REDEMPTIONS.c.id == bindparam("redemption_id"))
_LOCK = _HAS_ID.with_for_update()


@counting_refusals()
def confirm_redemption(actor: Principal, redemption_id: int) -> RedemptionRow:
    """Confirm a reserved use and return the redemption by its column names.

    An expired reservation is confirmed if the coupon has a slot (redemptions 6).

    Raises:
        ShopError: the redemption does not exist, the capability is missing, it belongs to an order,
            it was released, or no slot is available; with the reasons.
    """

    def work(session: Session) -> RedemptionRow:
        redemption = _locked(session, actor, redemption_id)
        if redemption["status"] == RedemptionStatus.CONFIRMED:
            return redemption
        if redemption["status"] == RedemptionStatus.RELEASED and not has_expired(redemption):
            raise ShopError("shop_api_invalid_redemption_status", reason="it has been released.")
        changes: list[Change] = []
        if is_live(redemption):
            held = int(redemption["holds_slot"])
            change_counts(session, redemption["coupon_id"], [(1, -held)])
        else:
            changes = expiries(_take_slot_again(session, redemption))
        status = {"status": RedemptionStatus.CONFIRMED, "expires_at": None}
        confirmed = update_redemption(session, redemption, **status)
        notify_with_coupons(session, actor, [*changes, *use_change(REDEEMED, confirmed)])
        return confirmed

    return run_in_transaction(work)


def release_redemption(actor: Principal, redemption_id: int) -> RedemptionRow:
    """Release a reserved or confirmed use and return the redemption by its column names.

    Raises:
        ShopError: the redemption does not exist, the capability is missing, or it belongs to an
            order.
    """

    def work(session: Session) -> RedemptionRow:
        redemption = _locked(session, actor, redemption_id)
        timestamp = now()
        if not is_live(redemption, timestamp):
            return as_shown(redemption)
        give_back(session, redemption)
        status = {"status": RedemptionStatus.RELEASED, "updated_at": timestamp}
        released = update_redemption(session, redemption, **status)
        notify_with_coupons(session, actor, use_change(RELEASED, released))
        return released

    return run_in_transaction(work)


def _locked(session: Session, actor: Principal, redemption_id: int) -> RedemptionRow:
    """Lock a redemption that the API may change, and return it."""
    this = {"redemption_id": redemption_id}
    found = session.execute(_HAS_ID, this).first() if redemption_id <= INT64_MAX else None
    if found is None:
        raise ShopError("shop_api_invalid_redemption_id")
    actor.require("shop_api_user_cannot_edit_redemption")
    if found.order_id is not None:
        raise ShopError(
            "shop_api_invalid_redemption_status",
            reason="it belongs to an order. Update the order instead.",
        )
    if found.coupon_id is not None:
        lock_coupon(session, found.coupon_id)  # all transactions lock the coupon first
    locked: list[RedemptionRow] = row_dicts(session.execute(_LOCK, this))
    return locked[0]


def _take_slot_again(session: Session, redemption: RedemptionRow) -> list[RedemptionRow]:
    """Take a slot for an expired reservation; return those whose expiry was stored."""
    is_stored = redemption["status"] == RedemptionStatus.RELEASED
    expired = store_expiry(session, [] if is_stored else [redemption])
    if redemption["coupon_id"] is None:
        return expired  # a deleted coupon has no limit
    fetch_here = fetch_in(session)
    customer = find_customer(
        fetch_here, redemption["customer_id"] or 0, redemption["email"], param="redemption"
    )
    customer = counted_customer(customer, redemption)
    coupon = coupon_by_id(fetch_here, redemption["coupon_id"], customer)
    if coupon is not None:
        slot = take_slot(
            session, coupon, customer, confirmed=True, published=False, active=False, param=CODE
        )
        change_counts(session, coupon.id, [(slot.uncounted, 0)])
        expired += slot.expired
    return expired
