"""The rules for writing orders: create, update, delete (orders 1 to 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models.tables import ORDERS
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.change_notifications import write_items
from app.services.order_records import Record, with_total_tax
from app.services.order_redemptions import release_uses, with_held_uses
from app.services.order_rows import lock_coupons, lock_orders
from app.services.order_writes import OrderWrites
from app.services.redemption_changes import notify_with_coupons


def save_orders(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and update orders, in their order, in one transaction (orders 1, spec 4.3).

    Returns:
        For each item the order by its column names, or the error that prevented the write.
    """

    def work(session: Session) -> list[WriteResult]:
        def write(some: Sequence[BulkItem]) -> list[WriteResult]:
            return OrderWrites(session, actor, some).results()

        return write_items(session, "order", items, write)

    return run_in_transaction(work)


def create_order(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create one order; return it by its column names."""
    return single_result(save_orders(actor, [BulkItem(None, data)]))


def update_order(
    actor: Principal,
    order_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Change the supplied fields of one order; return it by its column names."""
    return single_result(save_orders(actor, [BulkItem(order_id, data, precondition)]))


def delete_order(
    actor: Principal,
    order_id: int,
    *,
    force: bool,
    trashed_too: bool = False,
    precondition: Precondition | None = None,
) -> None:
    """Move an order to the trash, or delete it permanently (orders 1 and 4).

    Args:
        force: whether to delete it permanently.
        trashed_too: whether ``force`` also deletes an order that is in the trash.

    Raises:
        ShopError: the order does not exist, the capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        order = lock_orders(session, [order_id]).get(order_id)
        if order is None or (order["status"] == TRASH and not (force and trashed_too)):
            raise ShopError("shop_api_invalid_order_id")
        actor.require("shop_api_user_cannot_delete_order", Capability.DELETE_SHOP_ORDERS)
        if precondition:
            precondition(with_total_tax(order))
        after: Record | None = None
        timestamp = now()
        lock_coupons(session, [order])
        uses, released = release_uses(session, order_id, timestamp)
        if force:
            session.execute(delete(ORDERS).where(ORDERS.c.id == order_id))
        else:
            trashed = {
                "status": TRASH,
                "status_before_trash": order["status"],
                "trashed_at": timestamp,
                "updated_at": timestamp,
                "item_details": with_held_uses(order, released),
            }
            session.execute(update(ORDERS).where(ORDERS.c.id == order_id).values(trashed))
            after = order | trashed
        changes = [Change("order.deleted", order, after), *uses]
        notify_with_coupons(session, actor, changes)

    run_in_transaction(work)
