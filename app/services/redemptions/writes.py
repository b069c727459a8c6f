"""The rules for confirming and releasing redemptions through the API (redemptions 4 and 6)."""

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change
from app.conversions.numbers import INT64_MAX
from app.db.errors import TryAgain
from app.db.records import Record
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import RedemptionRow, RedemptionStatus, as_shown, has_expired, is_live
from app.services.campaigns.locks import Held, hold_campaigns
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.coupons.customers import counted_customer, find_customer
from app.services.coupons.refusals import counting_refusals
from app.services.coupons.terms import coupon_by_id
from app.services.redemptions.campaign_numbers import give_back_to_campaign
from app.services.redemptions.campaigns import CampaignUse, require_stored_expiry
from app.services.redemptions.changes import (
    REDEEMED,
    RELEASED,
    expiries,
    notify_with_coupons,
    use_change,
)
from app.services.redemptions.counts import change_counts
from app.services.redemptions.locks import lock_coupon
from app.services.redemptions.slots import fetch_in, take_slot
from app.services.redemptions.stored import CODE, give_back, store_expiry, update_redemption

_HAS_ID = SELECT_USES.where(REDEMPTIONS.c.id == bindparam("redemption_id"))
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
        redemption, held = _locked(session, actor, redemption_id)
        if redemption["status"] == RedemptionStatus.CONFIRMED:
            return redemption
        if redemption["status"] == RedemptionStatus.RELEASED and not has_expired(redemption):
            raise ShopError("shop_api_invalid_redemption_status", reason="it has been released.")
        changes: list[Change] = []
        status: Record = {"status": RedemptionStatus.CONFIRMED, "expires_at": None}
        if is_live(redemption):
            slots = int(redemption["holds_slot"])
            change_counts(session, redemption["coupon_id"], [(1, -slots)])
        else:
            expired, status["campaign_id"] = _take_slot_again(session, held, redemption)
            changes = expiries(expired)
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
        redemption, held = _locked(session, actor, redemption_id)
        timestamp = now()
        if not is_live(redemption, timestamp):
            return as_shown(redemption)
        give_back_to_campaign(session, held, redemption)
        give_back(session, redemption)
        status = {"status": RedemptionStatus.RELEASED, "updated_at": timestamp}
        released = update_redemption(session, redemption, **status)
        notify_with_coupons(session, actor, use_change(RELEASED, released))
        return released

    return run_in_transaction(work)


def _locked(session: Session, actor: Principal, redemption_id: int) -> tuple[RedemptionRow, Held]:
    """Lock a redemption that the API may change, and the campaigns that the change concerns."""
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
    of_coupon = select(COUPONS.c.campaign_id).where(COUPONS.c.id == found.coupon_id)
    wanted = {found.campaign_id, *session.scalars(of_coupon)} - {None}
    held = hold_campaigns(session, wanted) if wanted else {}
    if found.coupon_id is not None:
        lock_coupon(session, found.coupon_id)  # all transactions lock the coupon first
    locked: list[RedemptionRow] = stored_uses(session.execute(_LOCK, this))
    if locked[0]["campaign_id"] != found.campaign_id:
        raise TryAgain
    return locked[0], held


def _take_slot_again(
    session: Session, held: Held, redemption: RedemptionRow
) -> tuple[list[RedemptionRow], int | None]:
    """Take a slot for an expired reservation, also of its campaign.

    Returns:
        The reservations whose expiry was stored, and the campaign for which the use counts now.
    """
    is_stored = redemption["status"] == RedemptionStatus.RELEASED
    if not is_stored:
        require_stored_expiry(redemption)
    expired = store_expiry(session, [] if is_stored else [redemption])
    fetch_here = fetch_in(session)
    customer = find_customer(
        fetch_here, redemption["customer_id"] or 0, redemption["email"], param="redemption"
    )
    customer = counted_customer(customer, redemption)
    coupon_id = redemption["coupon_id"]
    coupon = None if coupon_id is None else coupon_by_id(fetch_here, coupon_id, customer)
    # A deleted coupon has no limit, but its use stays in its campaign.
    campaign_id = coupon.campaign_id if coupon else redemption["campaign_id"]
    use = CampaignUse(
        held=held,
        code=redemption["code"],
        param=CODE,
        amount=redemption["amount"],
        active=False,
        own_id=redemption["id"],
        terms=coupon.terms if coupon else None,
    )
    use.take(session, campaign_id, customer)
    if coupon is not None:
        slot = take_slot(
            session, coupon, customer, confirmed=True, published=False, active=False, param=CODE
        )
        change_counts(session, coupon.id, [(slot.uncounted, 0)])
        expired += slot.expired
    return expired, campaign_id
