"""The rules for reserving, confirming and releasing uses through the API (redemptions 4 and 6)."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import cast

from flask import current_app
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change
from app.config.current import expiry_zone
from app.conversions.currencies import in_smallest_amounts
from app.conversions.numbers import INT64_MAX
from app.db.bulk_inserts import insert_unless_stored
from app.db.errors import TryAgain
from app.db.read_pool import Fetch, fetch
from app.db.records import Record
from app.db.session import now, run_in_transaction, savepoint
from app.errors import InvalidParams, ShopError
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import RedemptionRow, RedemptionStatus, as_shown, has_expired, is_live
from app.pricing.evaluation import Reason, redemption_reasons
from app.services.campaigns.locks import Held, hold_campaigns, hold_known
from app.services.common.bulk import Data
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.common.locks import hold_accounts
from app.services.coupons.customers import (
    Customer,
    cart_of,
    counted_customer,
    email_columns,
    find_customer,
    require_customer_access,
)
from app.services.coupons.refusals import (
    NOT_FOUND,
    CartSummary,
    CouponRefused,
    counting_refusals,
    refused_for,
)
from app.services.coupons.terms import FoundCoupon, coupon_by_id, coupons_by_id, find_coupons
from app.services.events.hooks import notify
from app.services.redemptions.campaign_numbers import (
    change_numbers,
    counted_amount,
    give_back_to_campaign,
)
from app.services.redemptions.campaigns import CampaignUse
from app.services.redemptions.changes import (
    REDEEMED,
    RELEASED,
    expiries,
    notify_with_coupons,
    shown_use,
    use_change,
)
from app.services.redemptions.counts import change_counts, lock_coupon
from app.services.redemptions.expiry import expire_all
from app.services.redemptions.slots import CouponSlot, fetch_in, take_slot
from app.services.redemptions.stored import CODE, give_back, store_expiry, update_redemption

_HAS_ID = SELECT_USES.where(REDEMPTIONS.c.id == bindparam("redemption_id"))
_LOCK = _HAS_ID.with_for_update()
_OF_REFERENCE = SELECT_USES.where(
    REDEMPTIONS.c.reference == bindparam("reference"), REDEMPTIONS.c.order_id.is_(None)
)
_OF_COUPON = _OF_REFERENCE.where(REDEMPTIONS.c.coupon_id == bindparam("coupon_id"))
_LOCK_OF_COUPON = _OF_COUPON.with_for_update()
# For a coupon that was deleted or is in the trash.
_OF_CODE = _OF_REFERENCE.where(REDEMPTIONS.c.code == bindparam("code")).order_by(
    REDEMPTIONS.c.id.desc()
)
_INSERT = insert_unless_stored(REDEMPTIONS, REDEMPTIONS.c.id)


@counting_refusals()
def reserve_use(actor: Principal, data: Data) -> tuple[RedemptionRow, bool]:
    """Reserve a use of a coupon for a reference.

    Args:
        data: a loaded ``RedemptionCreate``.

    Returns:
        The redemption by its column names, and whether it is new. The same code and reference
        again return the same redemption.

    Raises:
        ShopError: the capability is missing, the key may not name customers, or the coupon is not
            applicable; with the reasons.
    """
    actor.require("shop_api_user_cannot_create_redemption")
    if not data.get("code"):
        raise ShopError("shop_api_missing_coupon_code")
    require_customer_access(actor, data["customer_id"])

    def work(session: Session) -> tuple[RedemptionRow, bool]:
        with refused_for(lambda: CartSummary(data["customer_id"], data["email"])):
            redemption, created, changes = _reserve(session, data)
        notify(session, actor, changes)
        return redemption, created

    return run_in_transaction(work)


def _reserve(session: Session, data: Data) -> tuple[RedemptionRow, bool, list[Change]]:
    """Return the redemption, whether it is new, and the changes of its coupon."""
    # These reads do not begin a transaction. Taking the slot checks again what can change in the
    # meantime.
    code, customer_id = data["code"], data["customer_id"]
    customer, found = find_coupons(
        fetch, [code], customer_id, data["email"], param="redemption.customer_id"
    )
    coupon = found.get(code)
    reasons: Sequence[Reason] = (NOT_FOUND,)
    if coupon:
        cart = cart_of(fetch, customer, [coupon.terms])
        cents = int(counted_amount(_whole(data["amount"])).scaleb(2))
        reasons = redemption_reasons(coupon.terms, cart, now(), cents, expiry_zone())
    if coupon is None or reasons:
        existing = _existing(fetch, coupon, data)
        if existing and is_live(existing):
            return existing, False, []
        raise CouponRefused(code, reasons, CODE)
    campaign = coupon.terms.campaign
    if customer_id and customer_id not in hold_accounts(session, [customer_id]):
        raise TryAgain  # the account was deleted since it was read
    held = hold_known(session, {campaign.id: campaign.is_limited} if campaign else {})
    _require_amount(held, data)
    try:
        # The numbers of the campaign must not change if the coupon is rejected.
        with savepoint(session) if campaign and campaign.is_limited else nullcontext():
            slot, redemption = _insert(session, held, coupon, customer, data)
    except ShopError:
        # The code and reference can have the last slot, since another request took it.
        existing = _existing(fetch_in(session), coupon, data)
        if existing and is_live(existing):
            return existing, False, []
        raise
    if redemption is not None:
        return redemption, True, _changes(slot, redemption)
    if held:
        amount = counted_amount(_whole(data["amount"]))
        change_numbers(session, held, coupon.campaign_id, -1, -amount)
    return _reserve_again(session, held, slot, customer, data)


def _require_amount(held: Held, data: Mapping[str, object]) -> None:
    """Raise InvalidParams without an amount, if the campaign has a budget (campaigns 7)."""
    if data["amount"] is None and any(campaign["budget"] for campaign in held.values()):
        raise InvalidParams(
            {"redemption.amount": "is required, because the campaign has a budget."}
        )


def _changes(slot: CouponSlot, redemption: RedemptionRow | None = None) -> list[Change]:
    """Return the changes of a coupon: the expiries that were stored, and a new reservation."""
    uses = [(RELEASED, expired) for expired in slot.expired]
    if redemption is not None:
        uses.append((REDEEMED, redemption))
    return [Change(event, None, slot.coupon, redemption=shown_use(use)) for event, use in uses]


def _insert(
    session: Session,
    held: Held,
    coupon: FoundCoupon,
    customer: Customer,
    data: Mapping[str, object],
) -> tuple[CouponSlot, RedemptionRow | None]:
    """Take a slot and insert a redemption: None if the code and reference have one."""
    connection = session.connection()
    given = _new(customer, data)
    if held:
        use = CampaignUse(held=held, code=coupon.code, param=CODE, amount=given["amount"])
        use.take(session, coupon.campaign_id, customer)
    slot = take_slot(session, coupon, customer, confirmed=False, param=CODE)
    columns = given | {
        "coupon_id": coupon.id,
        "holds_slot": slot.is_counted,
        "campaign_id": coupon.campaign_id,
    }
    new_id = connection.execute(_INSERT(session), columns).scalar()
    return slot, cast("RedemptionRow", columns | {"id": new_id}) if new_id is not None else None


def _reserve_again(
    session: Session, held: Held, slot: CouponSlot, customer: Customer, data: Mapping[str, object]
) -> tuple[RedemptionRow, bool, list[Change]]:
    """Return the redemption that a code and a reference have, with a use (redemptions 6).

    After its release or expiry, a use is reserved again under the same ID.
    """
    coupon_id, changes = slot.coupon["id"], _changes(slot)
    change_counts(session, coupon_id, [(0, -int(slot.is_counted))])
    lock_coupon(session, coupon_id)
    this = {"reference": data["reference"], "coupon_id": coupon_id}
    (redemption,) = stored_uses(session.execute(_LOCK_OF_COUPON, this))
    if is_live(redemption):
        return redemption, False, changes
    expired = _store_own_expiry(session, redemption)
    coupon = coupons_by_id(fetch_in(session), [coupon_id], customer)[coupon_id]
    given = _given(customer, data)
    use = CampaignUse(held=held, code=coupon.code, param=CODE, amount=given["amount"])
    use.take(session, coupon.campaign_id, customer)
    slot = take_slot(session, coupon, customer, confirmed=False, param=CODE)
    slot = replace(slot, expired=[*expired, *slot.expired])
    again = update_redemption(
        session,
        redemption,
        **given,
        holds_slot=slot.is_counted,
        campaign_id=coupon.campaign_id,
    )
    return again, False, changes + _changes(slot, again)


def _new(customer: Customer, data: Mapping[str, object]) -> Record:
    """Return the columns of a new reservation, without those of its slot."""
    given = _given(customer, data)
    return {
        **given,
        "code": data["code"],
        "reference": data["reference"],
        "order_id": None,
        "created_at": given["updated_at"],
    }


def _given(customer: Customer, data: Data) -> Record:
    """Return the columns of a new reservation that a request determines."""
    timestamp = data.get("created_at") or now()
    return {
        "customer_id": customer.customer_id,
        **email_columns(customer.email),
        "amount": _whole(data["amount"]),
        "status": RedemptionStatus.RESERVED,
        "updated_at": timestamp,
        "confirmed_at": None,
        "expires_at": timestamp + timedelta(seconds=data["expires_in"]),
    }


def _whole(amount: Decimal | None) -> Decimal | None:
    """Return a discount, rounded to the smallest amount of the currency of the shop."""
    if amount is None:
        return None
    cents = int(amount.scaleb(2))
    currency = current_app.config["SHOP_CURRENCY"]
    return Decimal(in_smallest_amounts(cents, currency)).scaleb(-2)


def _existing(
    fetch: Fetch, coupon: FoundCoupon | None, data: Mapping[str, object]
) -> RedemptionRow | None:
    """Return the redemption of a code and a reference, or None."""
    reference = {"reference": data["reference"]}
    if coupon is None:
        rows = fetch(_OF_CODE, reference | {"code": data["code"]})
    else:
        rows = fetch(_OF_COUPON, reference | {"coupon_id": coupon.id})
    return next(iter(stored_uses(rows)), None)


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
    expired = _store_own_expiry(session, redemption)
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


def _store_own_expiry(session: Session, redemption: RedemptionRow) -> list[RedemptionRow]:
    """Store that an expired reservation has ended, before its use is taken again.

    Raises:
        TryAgain: it counts for a campaign, which stores the expiry first.
    """
    if redemption["status"] == RedemptionStatus.RELEASED:
        return []
    if redemption["campaign_id"] is not None:
        raise TryAgain(partial(expire_all, REDEMPTIONS.c.id == redemption["id"]))
    return store_expiry(session, [redemption])
