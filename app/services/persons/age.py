"""Erasure of orders of guests because of their age (people 5)."""

from datetime import timedelta

from flask import current_app
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.session import now, run_in_transaction
from app.models import ORDERS, REDEMPTIONS
from app.services.common.bulk import Record
from app.services.customers.erasure import erase_redemptions, erase_reports
from app.services.events.hooks import notify
from app.services.persons.imported import mark_erased
from app.services.persons.orders import erase_orders

BATCH = 200
"""Maximum number of orders that a transaction erases, so that other writers do not wait long."""

MAX_BATCHES = 10
"""Maximum number of batches in a sweep, which is up to 2,000 orders a minute."""


def erase_old_guest_orders() -> int:
    """Erase the orders of guests that are older than ``SHOP_GUEST_ORDERS_DAYS``; return how many.

    Newer orders of the same address remain, and their uses of coupons still count together.
    """
    erased = 0
    for _ in range(MAX_BATCHES if current_app.config["SHOP_GUEST_ORDERS_DAYS"] else 0):
        number = run_in_transaction(_erase_batch)
        erased += number
        if number < BATCH:
            break
    return erased


def _erase_batch(session: Session) -> int:
    days = current_app.config["SHOP_GUEST_ORDERS_DAYS"]
    oldest = (
        select(ORDERS)
        .where(
            ORDERS.c.customer_id.is_(None),
            ORDERS.c.erased_at.is_(None),
            ORDERS.c.status.in_(current_app.config["SHOP_ERASABLE_STATUSES"]),
            ORDERS.c.updated_at < now() - timedelta(days=days),
        )
        .order_by(ORDERS.c.updated_at, ORDERS.c.id)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    orders: list[Record] = [dict(row) for row in session.execute(oldest).mappings()]
    ids = [order["id"] for order in orders]
    if ids:
        uses = [REDEMPTIONS.c.order_id.in_(ids)]
        mark_erased(session, (), ids, uses)
        erase_redemptions(session, uses, "")
        erase_reports(session, ids)
        notify(session, None, erase_orders(session, orders))
    return len(ids)
