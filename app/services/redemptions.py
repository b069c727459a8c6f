"""The rules for confirming and releasing redemptions through the API (redemptions 4 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models.redemption import RedemptionStatus
from app.models.tables import REDEMPTIONS
from app.numbers import INT64_MAX
from app.services.coupon_customers import find_customer
from app.services.coupon_lookup import coupon_by_id
from app.services.redemption_changes import REDEEMED, RELEASED, notify_with_coupons, use_change
from app.services.redemption_counts import change_counts
from app.services.redemption_rows import (
    CODE,
    Record,
    expiry_events,
    give_back,
    update_redemption,
)
from app.services.redemption_slots import (
    fetch_in,
    give_up_expired,
    lock_coupon,
    take_slot,
)
from app.services.redemption_status import as_shown, has_expired, is_live

_HAS_ID = select(REDEMPTIONS).where(REDEMPTIONS.c.id == bindparam("redemption_id"))
_LOCK = _HAS_ID.with_for_update()


def confirm_redemption(actor: Principal, redemption_id: int) -> Record:
    """Confirm a reserved use and return the redemption by its column names.

    An expired reservation is confirmed if the coupon has a slot (redemptions 6).

    Raises:
        ShopError: the redemption does not exist, the capability is missing, it belongs to an order,
            it was released, or no slot is available; with the reasons.
    """

    def work(session: Session) -> Record:
        redemption = _locked(session, actor, redemption_id)
        if redemption["status"] == RedemptionStatus.CONFIRMED:
            return redemption
        if redemption["status"] == RedemptionStatus.RELEASED and not has_expired(redemption):
            raise ShopError("shop_api_invalid_redemption_status", reason="it has been released.")
        if is_live(redemption):
            held = int(redemption["holds_slot"])
            change_counts(session, redemption["coupon_id"], usage=1, reserved=-held)
            events = [REDEEMED]
        else:
            events = [*expiry_events(redemption), REDEEMED]
            _take_slot_again(session, redemption)
        status = {"status": RedemptionStatus.CONFIRMED, "expires_at": None}
        confirmed = update_redemption(session, redemption, **status)
        _report(session, actor, confirmed, *events)
        return confirmed

    return run_in_transaction(work)


def release_redemption(actor: Principal, redemption_id: int) -> Record:
    """Release a reserved or confirmed use and return the redemption by its column names.

    Raises:
        ShopError: the redemption does not exist, the capability is missing, or it belongs to an
            order.
    """

    def work(session: Session) -> Record:
        redemption = _locked(session, actor, redemption_id)
        timestamp = now()
        if not is_live(redemption, timestamp):
            return as_shown(redemption)
        give_back(session, redemption)
        status = {"status": RedemptionStatus.RELEASED, "updated_at": timestamp}
        released = update_redemption(session, redemption, **status)
        _report(session, actor, released, RELEASED)
        return released

    return run_in_transaction(work)


def _report(
    session: Session, actor: Principal, redemption: Mapping[str, Any], *events: str
) -> None:
    """Write events of the coupon of a redemption."""
    changes = [change for event in events for change in use_change(event, redemption["coupon_id"])]
    notify_with_coupons(session, actor, changes)


def _locked(session: Session, actor: Principal, redemption_id: int) -> Record:
    """Lock a redemption that the API may change, and return it."""
    this = {"redemption_id": redemption_id}
    found = session.execute(_HAS_ID, this).first() if redemption_id <= INT64_MAX else None
    if found is None:
        raise ShopError("shop_api_invalid_redemption_id")
    actor.require("shop_api_user_cannot_edit_redemption", Capability.EDIT_SHOP_ORDERS)
    if found.order_id is not None:
        raise ShopError(
            "shop_api_invalid_redemption_status",
            reason="it belongs to an order. Update the order instead.",
        )
    if found.coupon_id is not None:
        lock_coupon(session, found.coupon_id)  # all transactions lock the coupon first
    return dict(session.execute(_LOCK, this).mappings().one())


def _take_slot_again(session: Session, redemption: Record) -> None:
    """Take a slot for an expired reservation. Only the limits are checked."""
    if redemption["coupon_id"] is None:
        return  # a deleted coupon has no limit
    give_up_expired(session, redemption["coupon_id"])
    fetch_here = fetch_in(session)
    customer = find_customer(
        fetch_here, redemption["customer_id"] or 0, redemption["email"], param="redemption"
    )
    coupon = coupon_by_id(fetch_here, redemption["coupon_id"], customer)
    if coupon is not None:
        slot = take_slot(session, coupon, customer, confirmed=True, published=False, param=CODE)
        change_counts(session, coupon.id, usage=slot.uncounted)
