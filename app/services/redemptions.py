"""The rules for redemptions through the API: reserve, confirm and release a use (redemptions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.db.read_pool import Fetch, fetch
from app.db.search import comparable
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.evaluation import redemption_reasons
from app.models.redemption import RedemptionStatus
from app.numbers import INT64_MAX
from app.services.coupon_terms import REDEMPTIONS as TABLE
from app.services.coupon_terms import (
    Customer,
    FoundCoupon,
    coupon_by_id,
    coupons_by_code,
    find_customer,
)
from app.services.redemption_slots import (
    NOT_FOUND,
    change_counts,
    fetch_in,
    give_up_expired,
    lock_coupon,
    not_applicable,
    take_slot,
)

Record = dict[str, Any]

CODE = "redemption.code"

_OF_REFERENCE = select(TABLE).where(
    TABLE.c.reference == bindparam("reference"), TABLE.c.order_id.is_(None)
)
_OF_COUPON = _OF_REFERENCE.where(TABLE.c.coupon_id == bindparam("coupon_id"))
# The coupon is gone or in the trash.
_OF_CODE = _OF_REFERENCE.where(TABLE.c.code == bindparam("code")).order_by(TABLE.c.id.desc())
_HAS_ID = select(TABLE).where(TABLE.c.id == bindparam("redemption_id"))
_LOCK = _HAS_ID.with_for_update()
_INSERT = insert(TABLE).returning(TABLE.c.id)


def reserve_use(actor: Principal, data: Mapping[str, Any]) -> tuple[Record, bool]:
    """Reserve a use of a coupon for a reference.

    Args:
        data: a loaded ``RedemptionInput``.

    Returns:
        The redemption by its column names, and whether it is new. The same code and reference
        again return the same redemption.

    Raises:
        ShopError: the coupon is not applicable; with the reasons.
    """
    actor.require("shop_api_user_cannot_create_redemption", Capability.EDIT_SHOP_ORDERS)
    if not data.get("code"):
        raise ShopError("shop_api_missing_coupon_code")
    return run_in_transaction(lambda session: _reserve(session, data))


def confirm_redemption(actor: Principal, redemption_id: int) -> Record:
    """Confirm a reserved use; return the redemption by its column names.

    One that has expired is confirmed while its coupon has a slot (redemptions 6).
    """

    def work(session: Session) -> Record:
        redemption = _locked(session, actor, redemption_id)
        if redemption["status"] == RedemptionStatus.CONFIRMED:
            return redemption
        if redemption["status"] == RedemptionStatus.RELEASED:
            raise ShopError("shop_api_invalid_redemption_status", reason="it has been released.")
        if is_live(redemption):
            held = int(redemption["holds_slot"])
            change_counts(session, redemption["coupon_id"], usage=1, reserved=-held)
        else:
            _take_slot_again(session, redemption)
        return _changed(session, redemption, status=RedemptionStatus.CONFIRMED, expires_at=None)

    return run_in_transaction(work)


def release_redemption(actor: Principal, redemption_id: int) -> Record:
    """Release a reserved or confirmed use; return the redemption by its column names."""

    def work(session: Session) -> Record:
        redemption = _locked(session, actor, redemption_id)
        if not is_live(redemption):
            return as_shown(redemption)
        give_back(session, redemption)
        return _changed(session, redemption, status=RedemptionStatus.RELEASED)

    return run_in_transaction(work)


def is_live(redemption: Mapping[str, Any]) -> bool:
    """Return whether a redemption is reserved or confirmed, and has not expired."""
    expires_at = redemption["expires_at"]
    return redemption["status"] == RedemptionStatus.CONFIRMED or (
        redemption["status"] == RedemptionStatus.RESERVED
        and (expires_at is None or expires_at > now())
    )


def as_shown(redemption: Record) -> Record:
    """Return a redemption with its live status (redemptions 4)."""
    if redemption["status"] == RedemptionStatus.RESERVED and not is_live(redemption):
        expired = {"status": RedemptionStatus.RELEASED, "updated_at": redemption["expires_at"]}
        return redemption | expired
    return redemption


def give_back(session: Session, redemption: Mapping[str, Any]) -> None:
    """Subtract a live use from the counts of its coupon."""
    confirmed = redemption["status"] == RedemptionStatus.CONFIRMED
    change_counts(
        session,
        redemption["coupon_id"],
        usage=-int(confirmed),
        reserved=-int(redemption["holds_slot"]),
    )


def _reserve(session: Session, data: Mapping[str, Any]) -> tuple[Record, bool]:
    # Read before the transaction begins: most rejections need none. Whatever changes until the
    # slot is taken, the taking itself looks at again.
    customer = find_customer(
        fetch, data["customer_id"], data["email"], param="redemption.customer_id"
    )
    code = data["code"]
    coupon = coupons_by_code(fetch, [code], customer).get(code)
    existing = _existing(fetch, coupon, data)
    if existing and is_live(existing):
        return existing, False
    if coupon is None:
        raise not_applicable(code, [NOT_FOUND], CODE)
    if reasons := redemption_reasons(coupon.terms, customer.emails, now()):
        raise not_applicable(code, reasons, CODE)
    if existing:
        return _reserve_again(session, existing, coupon, customer, data), False
    try:
        holds_slot = take_slot(session, coupon, customer, confirmed=False, param=CODE)
    except ShopError:
        # Perhaps another request with this code and reference has just taken the last slot.
        existing = _existing(fetch_in(session), coupon, data)
        if existing and is_live(existing):
            return existing, False
        raise
    moment = now()
    redemption = {
        **_given(customer, data),
        "coupon_id": coupon.id,
        "code": coupon.code,
        "reference": data["reference"],
        "order_id": None,
        "holds_slot": holds_slot,
        "created_at": moment,
    }
    redemption["id"] = session.execute(_INSERT, redemption).scalar_one()
    return redemption, True


def _reserve_again(
    session: Session,
    existing: Record,
    coupon: FoundCoupon,
    customer: Customer,
    data: Mapping[str, Any],
) -> Record:
    """Reserve a use again after its release or expiry, under the same ID (redemptions 6)."""
    lock_coupon(session, coupon.id)
    found = session.execute(_LOCK, {"redemption_id": existing["id"]}).mappings().one()
    redemption = dict(found)
    if is_live(redemption):
        return redemption
    give_up_expired(session, coupon.id)
    holds_slot = take_slot(session, coupon, customer, confirmed=False, param=CODE)
    return _changed(session, redemption, **_given(customer, data), holds_slot=holds_slot)


def _given(customer: Customer, data: Mapping[str, Any]) -> Record:
    """Return the columns of a new reservation that a request determines."""
    moment = now()
    return {
        "customer_id": customer.customer_id,
        "email": customer.email,
        "email_normalized": comparable(customer.email),
        "amount": data["amount"],
        "status": RedemptionStatus.RESERVED,
        "updated_at": moment,
        "expires_at": moment + timedelta(seconds=data["expires_in"]),
    }


def _existing(fetch: Fetch, coupon: FoundCoupon | None, data: Mapping[str, Any]) -> Record | None:
    """Return the redemption that the API has made for a code and a reference, if there is one."""
    reference = {"reference": data["reference"]}
    if coupon is None:
        rows = fetch(_OF_CODE, reference | {"code": data["code"]})
    else:
        rows = fetch(_OF_COUPON, reference | {"coupon_id": coupon.id})
    return dict(rows[0]._mapping) if rows else None


def _locked(session: Session, actor: Principal, redemption_id: int) -> Record:
    """Return a redemption that may be changed through the API, held until the commit."""
    this = {"redemption_id": redemption_id}
    found = session.execute(_HAS_ID, this).first() if redemption_id <= INT64_MAX else None
    if found is None:
        raise ShopError("shop_api_invalid_redemption_id")
    actor.require("shop_api_user_cannot_edit_redemption", Capability.EDIT_SHOP_ORDERS)
    if found.order_id is not None:
        raise ShopError("shop_api_invalid_redemption_status", reason="its order controls it.")
    if found.coupon_id is not None:
        lock_coupon(session, found.coupon_id)  # the coupon first, as everywhere
    return dict(session.execute(_LOCK, this).mappings().one())


def _take_slot_again(session: Session, redemption: Record) -> None:
    """Take a slot for an expired use that is confirmed; only the limits are checked."""
    if redemption["coupon_id"] is None:
        return  # a removed coupon has no limit any more
    give_up_expired(session, redemption["coupon_id"])
    fetch_here = fetch_in(session)
    customer = find_customer(
        fetch_here, redemption["customer_id"] or 0, redemption["email"], param="redemption"
    )
    coupon = coupon_by_id(fetch_here, redemption["coupon_id"], customer)
    if coupon is not None:
        take_slot(session, coupon, customer, confirmed=True, published=False, param=CODE)


def _changed(session: Session, redemption: Record, **columns: Any) -> Record:
    """Write columns of a redemption and return it."""
    changes = {"holds_slot": False, "updated_at": now(), **columns}
    session.execute(update(TABLE).where(TABLE.c.id == redemption["id"]).values(changes))
    return redemption | changes
