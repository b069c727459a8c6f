"""Reads of the notes and refunds of an order, and of their events."""

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, or_, select, true

from app.catalog import TRASH
from app.db.read_pool import RowStream, every_row, fetch
from app.db.records import Columns, Row, as_printed
from app.errors import ShopError
from app.models import EVENTS, ORDER_NOTES, ORDERS


def list_children(table: Table, order_id: int, columns: Columns) -> Sequence[Row] | RowStream:
    """Return the selected columns and the ID of each note or refund of an order, oldest first.

    Args:
        table: the table of the notes or refunds.

    Raises:
        ShopError: the order does not exist or is in the trash.
    """
    rows = every_row(_of_order(table, order_id, columns, true()))
    return rows if isinstance(rows, RowStream) else _existing(rows)


def fetch_child(table: Table, order_id: int, columns: Columns, child_id: int) -> Sequence[Row]:
    """Return the same of the note or refund with an ID, which the order may not have.

    Raises:
        ShopError: the order does not exist or is in the trash.
    """
    return _existing(fetch(_of_order(table, order_id, columns, table.c.id == child_id)))


def events_of_children(order_id: int, requests: Collection[str], columns: Columns) -> Sequence[Row]:
    """Return the selected columns and the ID of events of the notes and refunds of an order.

    They are oldest first. Those of refunds are found by the requests that also changed the order.
    """
    notes = select(ORDER_NOTES.c.id).where(ORDER_NOTES.c.order_id == order_id)
    event = EVENTS.c
    of_notes = and_(event.resource == "order_note", event.resource_id.in_(notes))
    of_refunds = and_(event.resource == "order_refund", event.request_id.in_(requests))
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), event.id).where(
            event.id.is_not(None), or_(of_notes, of_refunds)
        )
    )
    return sorted(rows, key=itemgetter(-1))


def _of_order(
    table: Table, order_id: int, columns: Columns, is_wanted: ColumnElement[bool]
) -> Select[Any]:
    """Return a select with a row of nulls for an order without any, so that one is enough."""
    return (
        select(*map(as_printed, columns), table.c.id)
        .select_from(ORDERS.outerjoin(table, and_(table.c.order_id == ORDERS.c.id, is_wanted)))
        .where(ORDERS.c.id == order_id, ORDERS.c.status != TRASH)
        .order_by(table.c.id)
    )


def _existing(rows: Sequence[Row]) -> Sequence[Row]:
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    return [row for row in rows if row[-1] is not None]
