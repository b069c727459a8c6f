"""The trash of coupons and orders: restore a record, and empty the trash (orders 4).

``queries.py`` of each noun lists its trash, and ``writes.py`` moves records to it.
"""

from datetime import timedelta
from decimal import Decimal

from sqlalchemy import and_, delete, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import TRASH, Change
from app.db.records import Record, row_dicts
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import COUPONS, ORDERS
from app.models.coupon import CouponRow, CouponStatus
from app.services.common.bulk import Precondition
from app.services.coupons.queries import PUBLISHED, TRASHED
from app.services.coupons.refusals import counting_refusals
from app.services.coupons.writes import edited_now, require_own
from app.services.events.bulk import notify_deleted
from app.services.events.hooks import notify
from app.services.orders.columns import with_total_tax
from app.services.orders.coupons import plan_coupons
from app.services.orders.items import items_of
from app.services.orders.locks import clear_parents, lock_coupons, lock_orders
from app.services.orders.queries import IS_TRASHED
from app.services.orders.refunds import stored_refunds
from app.services.redemptions.changes import notify_with_coupons


def restore_coupon(
    actor: Principal, coupon_id: int, precondition: Precondition | None = None
) -> Record:
    """Publish a coupon that is in the trash; return it by its column names.

    Raises:
        ShopError: the coupon is not in the trash, the capability is missing, the precondition
            fails, or a published coupon has the code.
    """

    def work(session: Session) -> Record:
        found = select(COUPONS).where(COUPONS.c.id == coupon_id, TRASHED).with_for_update()
        coupons: list[CouponRow] = row_dicts(session.execute(found))
        if not coupons:
            message = "No coupon in the trash has this ID."
            raise ShopError("shop_api_invalid_coupon_id", message=message)
        (coupon,) = coupons
        require_own(actor, coupon["author_id"], "shop_api_user_cannot_edit_coupon")
        if precondition:
            precondition(coupon)
        same_code = select(COUPONS.c.id).where(COUPONS.c.code == coupon["code"], PUBLISHED)
        if session.execute(same_code).first():
            raise ShopError("shop_api_coupon_code_already_exists")
        restored = {"status": CouponStatus.PUBLISHED, "trashed_at": None, **edited_now()}
        session.execute(update(COUPONS).where(COUPONS.c.id == coupon_id).values(restored))
        after = {**coupon, **restored}
        notify(session, actor, [Change("coupon.restored", coupon, after)])
        return after

    return run_in_transaction(work)


@counting_refusals()
def restore_order(
    actor: Principal, order_id: int, precondition: Precondition | None = None
) -> Record:
    """Restore an order with its former status and return it by its column names (orders 4).

    Raises:
        ShopError: the order is not in the trash, the capability is missing, the precondition
            fails, or a use of a coupon cannot be taken again.
    """

    def work(session: Session) -> Record:
        order = lock_orders(session, [order_id]).get(order_id)
        if order is None or order["status"] != TRASH:
            message = "No order in the trash has this ID."
            raise ShopError("shop_api_invalid_order_id", message=message)
        actor.require("shop_api_user_cannot_edit_order")
        if precondition:
            precondition(with_total_tax(order))
        restored = {
            "status": order["status_before_trash"],
            "status_before_trash": None,
            "trashed_at": None,
            "updated_at": now(),
        }
        after = {**order, **restored}
        held = lock_coupons(session, [order])
        uses: list[Change] = []
        items = items_of(order)
        if plan := plan_coupons(session, order, after, items, recompute=False, held=held):
            uses = plan.write(session, order_id)
        session.execute(update(ORDERS).where(ORDERS.c.id == order_id).values(restored))
        changes = [Change("order.restored", order, after), *uses]
        notify_with_coupons(session, actor, changes)
        return with_total_tax(after)

    return run_in_transaction(work)


def empty_coupons(actor: Principal, older_than_days: int) -> int:
    """Permanently delete coupons that have been in the trash for a number of days (orders 4).

    Args:
        older_than_days: minimum age in days, from the time when a coupon was moved to the trash.

    Returns:
        The number of deleted coupons.

    Raises:
        ShopError: a capability is missing.
    """
    require_own(actor, None, "shop_api_user_cannot_delete_coupon")
    before = now() - timedelta(days=older_than_days)

    def work(session: Session) -> int:
        old = delete(COUPONS).where(TRASHED, COUPONS.c.trashed_at <= before)
        deleted = session.scalars(old.returning(COUPONS.c.id)).all()
        notify_deleted(session, actor, "coupon", deleted)
        return len(deleted)

    return run_in_transaction(work)


def empty_orders(actor: Principal, older_than_days: int) -> int:
    """Permanently delete orders that have been in the trash for a number of days (orders 4).

    Returns:
        The number of deleted orders.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_delete_order")

    def work(session: Session) -> int:
        until = now() - timedelta(days=older_than_days)
        old = and_(IS_TRASHED, ORDERS.c.trashed_at <= until)
        refunded = select(ORDERS.c.id).where(old, ORDERS.c.total_refunded > Decimal(0))
        locked = session.scalars(refunded.order_by(ORDERS.c.id).with_for_update()).all()
        refunds = [refund["id"] for refund in stored_refunds(session, locked)]
        deleted = session.scalars(delete(ORDERS).where(old).returning(ORDERS.c.id)).all()
        clear_parents(session, deleted)
        notify_deleted(session, actor, "order_refund", refunds)
        notify_deleted(session, actor, "order", deleted)
        return len(deleted)

    return run_in_transaction(work)
