"""Erasure of the personal data of orders, which keeps the sale (people 5)."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import current_app
from sqlalchemy import Table, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from app.catalog import Change
from app.db.session import now
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import (
    DOWNLOADS,
    ITEM_METADATA,
    ORDER_METADATA,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REFUND_METADATA,
)
from app.models.personal_data import POSTCODE_LENGTH, Remains, emptied
from app.services.common.bulk import Record
from app.services.orders.columns import derived_columns
from app.services.orders.items import META_IDS

NOTE = "Personal data erased."

_IDS = bindparam("ids", type_=IdList)
_REFUNDS = select(ORDER_REFUNDS.c.id).where(is_one_of(ORDER_REFUNDS.c.order_id, _IDS))


def erased_order(order: Record) -> Record:
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


def erase_orders(session: Session, orders: Sequence[Record]) -> list[Change]:
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
    found: Sequence[tuple[Table, Any]] = (
        (ORDER_METADATA, is_one_of(ORDER_METADATA.c.order_id, _IDS)),
        (ITEM_METADATA, is_one_of(ITEM_METADATA.c.order_id, _IDS)),
        (REFUND_METADATA, REFUND_METADATA.c.refund_id.in_(_REFUNDS)),
    )
    for table, of_these in found:
        session.execute(delete(table).where(of_these, table.c.key.not_in(kept)), ids)
