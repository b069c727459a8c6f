"""Figures of orders that a previous release wrote during an upgrade (records 5)."""

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from app.models import ORDERS
from app.services.orders.items import items_of
from app.services.orders.sums import cents

_SET_FIGURES = (
    update(ORDERS)
    .where(ORDERS.c.id == bindparam("order_id"))
    .values(
        items=bindparam("new_items"),
        fees=bindparam("new_fees"),
        discount_tax=bindparam("new_discount_tax"),
    )
)


def complete_figures(session: Session, limit: int) -> int:
    """Compute ``items``, ``fees`` and ``discount_tax`` of orders that lack them.

    Args:
        limit: the most orders to complete. Orders that another transaction writes are left out.

    Returns:
        The number of orders.
    """
    incomplete = (
        select(ORDERS)
        .where(ORDERS.c["items"].is_(None))
        .order_by(ORDERS.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    found = []
    for order in session.execute(incomplete).mappings().all():
        columns = items_of(dict(order)).columns_with_sums(cents(order["shipping_tax"]))
        figures = {f"new_{name}": columns[name] for name in ("items", "fees", "discount_tax")}
        found.append(figures | {"order_id": order["id"]})
    if found:
        session.execute(_SET_FIGURES, found)
    return len(found)
