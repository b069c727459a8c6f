"""The trash of orders: list, restore and empty it (orders 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change
from app.db.records import Columns
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import ORDERS
from app.services.common.filtering import Matching
from app.services.common.pagination import Page
from app.services.coupons.refusals import counting_refusals
from app.services.events.bulk import notify_deleted
from app.services.orders.columns import Record, with_total_tax
from app.services.orders.coupons import plan_coupons
from app.services.orders.items import items_of
from app.services.orders.locks import clear_parents, lock_coupons, lock_orders
from app.services.orders.queries import COLUMNS, IS_TRASHED, conditions_of, fetch_orders, search_of
from app.services.orders.refunds import stored_refunds
from app.services.redemptions.changes import notify_with_coupons

TRASH_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **COLUMNS,
    # The status before the trash, which a restored order gets again.
    "status": ORDERS.c.status_before_trash,
}


def list_trash(actor: Principal, query: Mapping[str, Any], columns: Columns) -> Page:
    """Return a page of the orders in the trash that match, filtered and sorted like the list.

    Args:
        query: a loaded ``OrderListQuery``; its status is the one before the trash.
        columns: what to select, of TRASH_COLUMNS.

    Raises:
        InvalidParams: a status in the filter is unknown.
    """
    conditions = [IS_TRASHED, *conditions_of(query)]
    if (statuses := query["status"]) is not None:
        conditions.append(ORDERS.c.status_before_trash.in_(statuses))
    search, compared = search_of(query)
    matching = Matching(ORDERS.c.id, [*conditions, *compared], search=search)
    may_read = actor.can(Capability.READ_PRIVATE_SHOP_ORDERS)
    return fetch_orders(matching, query, columns, may_read=may_read)


@counting_refusals()
def restore(actor: Principal, order_id: int) -> Record:
    """Restore an order with its former status and return it by its column names (orders 4).

    Raises:
        ShopError: the order is not in the trash, the capability is missing, or a use of a coupon
            cannot be taken again.
    """

    def work(session: Session) -> Record:
        order = lock_orders(session, [order_id]).get(order_id)
        if order is None or order["status"] != TRASH:
            message = "No order in the trash has this ID."
            raise ShopError("shop_api_invalid_order_id").with_message(message)
        actor.require("shop_api_user_cannot_edit_order", Capability.EDIT_SHOP_ORDERS)
        restored = {
            "status": order["status_before_trash"],
            "status_before_trash": None,
            "trashed_at": None,
            "updated_at": now(),
        }
        after = {**order, **restored}
        lock_coupons(session, [order])
        uses: list[Change] = []
        if plan := plan_coupons(session, order, after, items_of(order), recompute=False):
            uses = plan.write(session, order_id)
        session.execute(update(ORDERS).where(ORDERS.c.id == order_id).values(restored))
        changes = [Change("order.restored", order, after), *uses]
        notify_with_coupons(session, actor, changes)
        return with_total_tax(after)

    return run_in_transaction(work)


def empty_trash(actor: Principal, older_than_days: int) -> int:
    """Permanently delete orders that have been in the trash for a number of days (orders 4).

    Returns:
        The number of deleted orders.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_delete_order", Capability.DELETE_SHOP_ORDERS)

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
