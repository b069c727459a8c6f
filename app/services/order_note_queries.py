"""Reading the notes of orders (orders 7 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, select

from app.auth.principals import Capability, Principal
from app.catalog import TRASH
from app.db.read_pool import fetch
from app.db.records import Columns, Row, as_printed
from app.errors import ShopError
from app.models.tables import ORDER_NOTES, ORDERS


def list_notes(actor: Principal, order_id: int, columns: Columns) -> list[Row]:
    """Return the notes of an order, oldest first.

    Args:
        columns: what to select, of the columns of a note.

    Raises:
        ShopError: the order does not exist, or the capability is missing.
    """
    rows = _fetch(actor, order_id, columns, ORDER_NOTES.c.order_id == ORDERS.c.id)
    return [row for row in rows if row[-1] is not None]


def get_note(actor: Principal, order_id: int, note_id: int, columns: Columns) -> Row:
    """Return one note of an order.

    Raises:
        ShopError: the order or the note does not exist, the note belongs to another order, or the
            capability is missing.
    """
    of_order = and_(ORDER_NOTES.c.order_id == ORDERS.c.id, ORDER_NOTES.c.id == note_id)
    return _fetch(actor, order_id, columns, of_order, missing="shop_api_invalid_order_note_id")[0]


def _fetch(
    actor: Principal,
    order_id: int,
    columns: Columns,
    of_order: ColumnElement[bool],
    missing: str | None = None,
) -> Sequence[Row]:
    """Return the selected columns and ID of each note, or one row of nulls without notes.

    The outer join returns no row if the order does not exist, so one statement is enough.
    """
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), ORDER_NOTES.c.id)
        .select_from(ORDERS.outerjoin(ORDER_NOTES, of_order))
        .where(ORDERS.c.id == order_id, ORDERS.c.status != TRASH)
        .order_by(ORDER_NOTES.c.id)
    )
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    if missing and rows[0][-1] is None:
        raise ShopError(missing)
    actor.require("shop_api_user_cannot_read_order_notes", Capability.READ_PRIVATE_SHOP_ORDERS)
    return rows
