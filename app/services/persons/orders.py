"""Erasure of personal data of orders, on request and by age, which keeps the sale (people 5)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from flask import current_app
from sqlalchemy import ColumnElement, Table, bindparam, delete, insert, or_, select, update
from sqlalchemy.orm import Session

from app.catalog import Change
from app.db.erased_rows import note_erasure
from app.db.records import Record, row_dicts
from app.db.session import now, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import (
    DOWNLOADS,
    IMPORTED_RECORDS,
    ITEM_METADATA,
    ORDER_METADATA,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    REFUND_METADATA,
)
from app.models.imported_record import ERASED, USES
from app.models.order import OrderRow
from app.models.personal_data import POSTCODE_LENGTH, Remains, emptied
from app.services.customers.erasure import erase_redemptions, erase_reports
from app.services.events.hooks import notify
from app.services.orders.columns import derived_columns
from app.services.orders.items import META_IDS

NOTE = "Personal data erased."

_IDS = bindparam("ids", type_=IdList)
_REFUNDS = select(ORDER_REFUNDS.c.id).where(is_one_of(ORDER_REFUNDS.c.order_id, _IDS))


def erased_order(order: Mapping[str, Any]) -> Record:
    """Return the columns of an order that an erasure writes."""
    timestamp = now()
    changes: Record = {
        **dict.fromkeys(emptied("orders", Remains.EMPTY), ""),
        **{
            name: order[name].strip()[:POSTCODE_LENGTH]
            for name in emptied("orders", Remains.BEGINNING)
        },
        "line_items": [{**item, "meta": []} for item in order["line_items"]],
        "item_details": _without_meta(order["item_details"]),
        "customer_id": None,
        "erased_at": timestamp,
        "updated_at": timestamp,
        "revision": order["revision"] + 1,
    }
    return changes | derived_columns({**order, **changes})


def _without_meta(details: Mapping[str, Mapping[str, object]] | None) -> Record | None:
    if details is None:
        return None
    return {
        item: {name: value for name, value in each.items() if name != META_IDS}
        for item, each in details.items()
    }


def erase_orders(session: Session, orders: Sequence[OrderRow]) -> list[Change]:
    """Remove the personal data of orders that the transaction has locked.

    Returns:
        Their changes. They have no values before the erasure.
    """
    ids = {"ids": [order["id"] for order in orders]}
    written = [(order["id"], erased_order(order)) for order in orders]
    if not written:
        return []
    names = written[0][1]
    statement = (
        update(ORDERS)
        .where(ORDERS.c.id == bindparam("this"))
        .values({name: bindparam(f"new_{name}", type_=ORDERS.c[name].type) for name in names})
    )
    rows = [
        {"this": order_id, **{f"new_{name}": value for name, value in changes.items()}}
        for order_id, changes in written
    ]
    session.connection().execute(statement, rows)
    for table in (ORDER_NOTES, DOWNLOADS):
        session.execute(delete(table).where(is_one_of(table.c.order_id, _IDS)), ids)
    refunds = dict.fromkeys(emptied("order_refunds", Remains.EMPTY), "")
    session.execute(
        update(ORDER_REFUNDS)
        .where(is_one_of(ORDER_REFUNDS.c.order_id, _IDS))
        .values(refunds | {"updated_at": now(), "revision": ORDER_REFUNDS.c.revision + 1}),
        ids,
    )
    _erase_metadata(session, ids)
    notes = [
        {"order_id": order_id, "created_at": now(), "note": NOTE, "customer_note": False}
        for order_id, _ in written
    ]
    session.execute(insert(ORDER_NOTES), notes)
    after = [{**order, **changes} for order, (_, changes) in zip(orders, written, strict=True)]
    return [Change("order.updated", each, each) for each in after]


def _erase_metadata(session: Session, ids: Mapping[str, object]) -> None:
    kept = current_app.config["SHOP_ERASURE_KEEPS_METADATA"]
    found: Sequence[tuple[Table, ColumnElement[bool]]] = (
        (ORDER_METADATA, is_one_of(ORDER_METADATA.c.order_id, _IDS)),
        (ITEM_METADATA, is_one_of(ITEM_METADATA.c.order_id, _IDS)),
        (REFUND_METADATA, REFUND_METADATA.c.refund_id.in_(_REFUNDS)),
    )
    for table, of_these in found:
        session.execute(delete(table).where(of_these, table.c.key.not_in(kept)), ids)


def mark_erased(
    session: Session,
    customer_ids: Collection[int],
    orders: Collection[int],
    uses: Sequence[ColumnElement[bool]],
) -> None:
    """Mark imported accounts, orders and uses of coupons as erased, and note the erasure.

    Args:
        uses: conditions of the redemptions. Call this before they change.
    """
    note_erasure(session)
    kind, target = IMPORTED_RECORDS.c.kind, IMPORTED_RECORDS.c.target_id
    redemptions = select(REDEMPTIONS.c.id).where(or_(*uses))
    for is_erased in (
        (kind == "customer") & target.in_(customer_ids),
        (kind == "order") & target.in_(orders),
        kind.in_(USES) & target.in_(redemptions),
    ):
        session.execute(update(IMPORTED_RECORDS).where(is_erased).values(fingerprint=ERASED))


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
    orders: list[OrderRow] = row_dicts(session.execute(oldest))
    ids = [order["id"] for order in orders]
    if ids:
        uses = [REDEMPTIONS.c.order_id.in_(ids)]
        mark_erased(session, (), ids, uses)
        erase_redemptions(session, uses, "")
        erase_reports(session, ids)
        notify(session, None, erase_orders(session, orders))
    return len(ids)
