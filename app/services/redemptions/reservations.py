"""The rules for reserving a use of a coupon through the API (redemptions 4 and 6)."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import cast

from flask import current_app
from sqlalchemy import bindparam
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change
from app.conversions.currencies import in_smallest_amounts
from app.db.bulk_inserts import insert_unless_stored
from app.db.errors import TryAgain
from app.db.read_pool import Fetch, fetch
from app.db.records import Record
from app.db.session import now, run_in_transaction, savepoint
from app.errors import InvalidParams, ShopError
from app.models import REDEMPTIONS
from app.models.redemption import RedemptionRow, RedemptionStatus, is_live
from app.pricing.evaluation import Reason, redemption_reasons
from app.services.campaigns.locks import Held, hold_known
from app.services.common.bulk import Data
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.common.locks import hold_accounts
from app.services.coupons.customers import (
    Customer,
    cart_of,
    email_columns,
    find_customer,
    require_customer_access,
)
from app.services.coupons.expiry import expiry_zone
from app.services.coupons.refusals import (
    NOT_FOUND,
    CartSummary,
    counting_refusals,
    not_applicable,
    refused_for,
)
from app.services.coupons.terms import FoundCoupon, coupons_by_code, coupons_by_id
from app.services.events.hooks import notify
from app.services.redemptions.campaign_numbers import change_numbers, counted_amount
from app.services.redemptions.campaigns import CampaignUse, require_stored_expiry
from app.services.redemptions.changes import REDEEMED, RELEASED, shown_use
from app.services.redemptions.counts import change_counts
from app.services.redemptions.locks import lock_coupon
from app.services.redemptions.slots import CouponSlot, fetch_in, take_slot
from app.services.redemptions.stored import CODE, store_expiry, update_redemption

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
    customer = find_customer(
        fetch, data["customer_id"], data["email"], param="redemption.customer_id"
    )
    # These reads do not begin a transaction. Taking the slot checks again what can change in the
    # meantime.
    code = data["code"]
    coupon = coupons_by_code(fetch, [code], customer).get(code)
    reasons: Sequence[Reason] = (NOT_FOUND,)
    if coupon:
        cart = cart_of(fetch, customer, [coupon.terms])
        cents = int(counted_amount(_whole(data["amount"])).scaleb(2))
        reasons = redemption_reasons(coupon.terms, cart, now(), cents, expiry_zone())
    if coupon is None or reasons:
        existing = _existing(fetch, coupon, data)
        if existing and is_live(existing):
            return existing, False, []
        raise not_applicable(code, reasons, CODE)
    campaign = coupon.terms.campaign
    customer_id = data["customer_id"]
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
    is_stored = redemption["status"] == RedemptionStatus.RELEASED
    if not is_stored:
        require_stored_expiry(redemption)
    expired = store_expiry(session, [] if is_stored else [redemption])
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
    timestamp = now()
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
