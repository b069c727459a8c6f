"""Claiming orders of guests for the account whose address they have (people 6)."""

from collections.abc import Collection, Sequence

from sqlalchemy import Select, and_, bindparam, func, select, union, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change
from app.conversions.emails import comparable_email
from app.conversions.numbers import INT64_MAX
from app.db.records import Record
from app.db.session import now, reading_session, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.errors import ShopError
from app.models import ORDERS, REDEMPTIONS, USERS
from app.models.order import OrderRow
from app.services.campaigns.locks import hold_campaigns
from app.services.common.persons import guest_conditions
from app.services.common.roles import capabilities_by_user
from app.services.customers.queries import require_positive
from app.services.events.changes import changes_of
from app.services.events.hooks import notify
from app.services.orders.locks import lock_orders
from app.services.persons.lookup import find_person
from app.services.persons.merging import CANNOT_EDIT, READS
from app.services.redemptions.slots import fetch_in

MOST_ORDERS = 1_000
"""Orders that one request claims at most."""

_ACCOUNT = select(USERS.c.id).where(USERS.c.id == bindparam("customer_id"))
_CLAIM = (
    update(ORDERS)
    .where(is_one_of(ORDERS.c.id, bindparam("claimed", type_=IdList)))
    .values(customer_id=bindparam("owner"), updated_at=bindparam("claimed_at"))
)
_IS_USE = and_(
    is_one_of(REDEMPTIONS.c.reference, bindparam("references", type_=TextList)),
    REDEMPTIONS.c.order_id.is_not(None),
    REDEMPTIONS.c.customer_id.is_(None),
)
_CAMPAIGNS = select(REDEMPTIONS.c.campaign_id).where(_IS_USE).distinct()
_CLAIM_USES = update(REDEMPTIONS).where(_IS_USE).values(customer_id=bindparam("owner"))


def preview_claim(actor: Principal, customer_id: int) -> Record:
    """Return the orders of guests that an account can claim.

    Returns:
        ``orders``, their number, and ``order_ids``, those of the next request.

    Raises:
        ShopError: the account does not exist, or a capability is missing.
    """
    require_positive(customer_id)
    with reading_session() as session:
        _require_account(session, customer_id)
        if not actor.can(*READS):
            raise ShopError(CANNOT_EDIT)
        found = _claimable(_emails(session, customer_id))
        if found is None:
            return {"orders": 0, "order_ids": []}
        number = session.scalar(select(func.count()).select_from(found.subquery()))
        return {"orders": number, "order_ids": list(session.scalars(_oldest(found)))}


def claim_orders(
    actor: Principal, customer_id: int, order_ids: Sequence[int] | None = None
) -> Record:
    """Assign orders of guests to the account whose address they have, with their uses of coupons.

    The orders, then the account are locked. Limits are not checked, because the uses counted for
    the address before.

    Args:
        order_ids: the orders; None for all, the oldest first, up to MOST_ORDERS.

    Returns:
        ``orders``, the number of claimed orders, and ``complete``: whether none is left.

    Raises:
        ShopError: the account does not exist, a capability is missing, or an order is not one of a
            guest with an address of the account.
    """
    require_positive(customer_id)

    def work(session: Session) -> Record:
        _require_account(session, customer_id)
        actor.require(CANNOT_EDIT, Capability.EDIT_SHOP_ORDERS)
        found = _claimable(_emails(session, customer_id))
        ids = order_ids
        if ids is None:
            ids = [] if found is None else session.scalars(_oldest(found)).all()
        stored = lock_orders(session, [each for each in ids if 0 < each <= INT64_MAX])
        _require_account(session, customer_id, locked=True)
        held = capabilities_by_user(session, [customer_id]).get(customer_id, frozenset())
        actor.require(CANNOT_EDIT, Capability.EDIT_SHOP_ORDERS, *held)
        emails = _emails(session, customer_id)
        claimed = _claimable_in(stored.values(), emails)
        if order_ids is not None:
            _require_all(order_ids, {each["id"] for each in claimed})
        if claimed:
            _claim(session, actor, customer_id, claimed)
        left = _claimable(emails)
        is_complete = left is None or session.execute(left.limit(1)).first() is None
        return {"orders": len(claimed), "complete": is_complete}

    return run_in_transaction(work)


def _require_account(session: Session, customer_id: int, *, locked: bool = False) -> None:
    found = _ACCOUNT.with_for_update() if locked else _ACCOUNT
    if session.scalar(found, {"customer_id": min(customer_id, INT64_MAX)}) is None:
        raise ShopError("shop_api_invalid_customer")


def _emails(session: Session, customer_id: int) -> tuple[str, ...]:
    """Return the addresses of an account, not its billing e-mail."""
    return find_person(fetch_in(session), {"customer_id": customer_id}).emails


def _claimable(emails: Collection[str]) -> Select[int] | None:
    """Return a select of the orders of guests with one of the addresses; None without one."""
    found = [select(ORDERS.c.id).where(each) for each in guest_conditions(emails)]
    return select(union(*found).subquery().c.id) if found else None


def _oldest(found: Select[int]) -> Select[int]:
    return found.order_by(found.selected_columns.id).limit(MOST_ORDERS)


def _claimable_in(orders: Collection[OrderRow], emails: Collection[str]) -> list[OrderRow]:
    """Return those of some orders that belong to guests with one of the addresses."""
    guests = [each for each in orders if each["customer_id"] is None]
    found = {each["billing_email"] for each in guests}
    theirs = {email for email in found if comparable_email(email) in emails}
    return [each for each in guests if each["billing_email"] in theirs]


def _require_all(order_ids: Sequence[int], claimable: Collection[int]) -> None:
    for position, order_id in enumerate(order_ids):
        if order_id not in claimable:
            param = f"claim.order_ids[{position}]"
            raise ShopError("shop_api_invalid_order_id", param=param).with_status(400)


def _claim(
    session: Session, actor: Principal, customer_id: int, orders: Sequence[OrderRow]
) -> None:
    """Write the claim of locked orders and their uses, with an event of each."""
    ids = [order["id"] for order in orders]
    uses = {"references": [f"order-{order_id}" for order_id in ids]}
    if campaigns := set(session.scalars(_CAMPAIGNS, uses)) - {None}:
        hold_campaigns(session, campaigns)  # their limits per customer compare the account
    owner: Record = {"owner": customer_id}
    claimed = {"customer_id": customer_id, "updated_at": now()}
    session.execute(_CLAIM, {**owner, "claimed": ids, "claimed_at": claimed["updated_at"]})
    session.execute(_CLAIM_USES, {**owner, **uses})
    same = changes_of(Change("order.updated", orders[0], {**orders[0], **claimed}), None)
    notify(
        session,
        actor,
        [Change("order.updated", each, {**each, **claimed}, changes=same) for each in orders],
    )
