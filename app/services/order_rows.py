"""Rows of orders in a write transaction: locks and IDs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app.services.coupon_customers import ACCOUNTS, USERS
from app.services.order_queries import TABLE
from app.services.order_records import Record


def lock_orders(session: Session, ids: Iterable[int]) -> dict[int, Record]:
    """Lock orders until the commit and return them by ID. Includes orders in the trash."""
    statement = (
        select(TABLE)
        .where(TABLE.c.id.in_(list(ids)))
        .order_by(TABLE.c.id)  # the same order in all transactions
        .with_for_update()
    )
    return {row["id"]: dict(row) for row in session.execute(statement).mappings()}


def hold_accounts(session: Session, ids: Iterable[int]) -> dict[int, Any]:
    """Lock accounts against deletion until the commit and return rows of ACCOUNTS by ID."""
    accounts = ACCOUNTS.where(USERS.c.id.in_(list(ids))).order_by(USERS.c.id)
    held = session.execute(accounts.with_for_update(read=True, key_share=True))
    return {row.id: row for row in held}


def new_ids(session: Session, number: int) -> Sequence[int]:
    """Return IDs for new orders, ascending.

    The order number and the references of redemptions contain the ID before the order is written.
    """
    if session.get_bind().dialect.name == "sqlite":  # one transaction writes at a time
        last = session.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = 'orders'")) or 0
        return range(last + 1, last + 1 + number)
    sequence = func.nextval(func.pg_get_serial_sequence("orders", "id"))
    return sorted(session.scalars(select(sequence).select_from(func.generate_series(1, number))))
