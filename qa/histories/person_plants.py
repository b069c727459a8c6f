"""Planted defects of merging, claiming and erasing customers (people 5 and 6)."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import false, select, update

from app.blueprints import customer_merges
from app.db.read_pool import fetch
from app.models import COUPONS, ORDERS, REDEMPTIONS
from app.services.customers import erasure
from app.services.persons import claims, merging

BEFORE = 1.0  # seconds; between a read and the lock after it. A busy machine does little in less


def merge_leaves_uses(_: Any) -> None:
    """A merge does not move the uses of the removed account."""
    merging._MOVE_REDEMPTIONS = merging._MOVE_REDEMPTIONS.where(false())


def merge_forgets_address(_: Any) -> None:
    """Uses by guests with the address of a removed account do not count for the kept one."""
    merging._remember = lambda *_: None


def merge_before_lock(_: Any) -> None:
    """A merge moves the orders that the removed account had before it was locked."""
    merge, move = merging.merge_customers, merging._merge
    known: dict[int, Any] = {}

    def merge_customers(actor: Any, customer_id: int, removed_id: int, *rest: Any) -> Any:
        theirs = select(ORDERS.c.id).where(ORDERS.c.customer_id == removed_id)
        known[removed_id] = [row.id for row in fetch(theirs)]
        time.sleep(BEFORE)
        return merge(actor, customer_id, removed_id, *rest)

    def move_known(session: Any, actor: Any, kept: Any, removed: Any, _: Any) -> Any:
        return move(session, actor, kept, removed, known[removed["id"]])

    customer_merges.merge_customers, merging._merge = merge_customers, move_known


def claim_leaves_uses(_: Any) -> None:
    """A claim does not assign the uses of the orders."""
    claims._CLAIM_USES = claims._CLAIM_USES.where(false())


def claim_counts_twice(_: Any) -> None:
    """A claim counts the confirmed uses of the orders again."""
    original = claims._claim

    def claim(session: Any, actor: Any, customer_id: int, orders: Any) -> None:
        original(session, actor, customer_id, orders)
        used = select(REDEMPTIONS.c.coupon_id).where(
            REDEMPTIONS.c.order_id.in_([each["id"] for each in orders]),
            REDEMPTIONS.c.status == "confirmed",
        )
        more = {"usage_count": COUPONS.c.usage_count + 1}
        session.execute(update(COUPONS).where(COUPONS.c.id.in_(used)).values(more))

    claims._claim = claim


def erasure_forgets_uses(_: Any) -> None:
    """An erasure leaves no hash of the address, so that its uses count for nobody."""
    erasure.erased_email = lambda _: ""


ALL = (
    merge_leaves_uses,
    merge_forgets_address,
    merge_before_lock,
    claim_leaves_uses,
    claim_counts_twice,
    erasure_forgets_uses,
)
