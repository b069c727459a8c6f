"""Reads of the notes and refunds of an order."""

from collections.abc import Sequence

from sqlalchemy import Table, and_, select, true

from app.catalog import TRASH
from app.db.read_pool import fetch
from app.db.records import Columns, Row, as_printed
from app.errors import ShopError
from app.models import ORDERS


def fetch_children(
    table: Table, order_id: int, columns: Columns, child_id: int | None = None
) -> Sequence[Row]:
    """Return the selected columns and the ID of each note or refund of an order, oldest first.

    The outer join returns a row of nulls for an order without any, so one statement is enough.

    Args:
        table: the table of the notes or refunds.
        child_id: only the note or refund with this ID.

    Raises:
        ShopError: the order does not exist or is in the trash.
    """
    is_wanted = true() if child_id is None else table.c.id == child_id
    rows = fetch(
        select(*map(as_printed, columns), table.c.id)
        .select_from(ORDERS.outerjoin(table, and_(table.c.order_id == ORDERS.c.id, is_wanted)))
        .where(ORDERS.c.id == order_id, ORDERS.c.status != TRASH)
        .order_by(table.c.id)
    )
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    return [row for row in rows if row[-1] is not None]
