"""What a customer is made of beside its own row: role, avatar and the statistics of its orders.

Statistics are read from the orders themselves, in the statement that reads the customers. They
are exact at all times, whoever writes orders, and a page needs no statement of its own for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flask import current_app
from sqlalchemy import ColumnElement, Subquery, Table, and_, bindparam, case, func, literal, select

from app.columns import Money, Words, is_one_of
from app.models import Order, User, UserRole
from app.plugins import registry

TABLE = cast("Table", User.__table__)
ROLES = cast("Table", UserRole.__table__)
ORDERS = cast("Table", Order.__table__)


_known: Any = bindparam("known", callable_=lambda: registry().order_statuses, type_=Words)
_paid: Any = bindparam(
    "paid", callable_=lambda: current_app.config["SHOP_PAID_STATUSES"], type_=Words
)
_avatars: Any = bindparam("avatars", callable_=lambda: current_app.config["SHOP_AVATARS"])


# What is summed over the orders of a customer, and in which statuses; without any order it is 0.
_SUMMED: Mapping[str, tuple[ColumnElement[Any], Any]] = {
    "orders_count": (func.count(), _known),
    "total_spent": (func.coalesce(func.sum(ORDERS.c.total), literal(0), type_=Money), _paid),
}


def _of_orders(value: ColumnElement[Any], statuses: Any) -> ColumnElement[Any]:
    """Return a value drawn from the orders of the customer that a row is about."""
    # One look into the index, not one for each status.
    counted = is_one_of(ORDERS.c.status, statuses)
    theirs = select(value).where(ORDERS.c.customer_id == TABLE.c.id, counted)
    return theirs.correlate(TABLE).scalar_subquery()


def _by_customer(value: ColumnElement[Any], statuses: Any) -> Subquery:
    """Return the same for all customers with such orders, in one pass: their ids and the value."""
    bought = and_(ORDERS.c.customer_id.is_not(None), is_one_of(ORDERS.c.status, statuses))
    sums = select(ORDERS.c.customer_id, value.label("value")).where(bought)
    return sums.group_by(ORDERS.c.customer_id).subquery()


def _last_order_id() -> ColumnElement[Any]:
    """Return the id of the most recent order: the highest one in a known status (spec 2.2)."""
    return _of_orders(func.max(ORDERS.c.id), _known)


def _last_order_date() -> ColumnElement[Any]:
    """Return when that order was created."""
    last = ORDERS.alias("last_order")
    return select(last.c.created_at).where(last.c.id == _last_order_id()).scalar_subquery()


COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **TABLE.c,
    "role": func.coalesce(
        select(ROLES.c.role)
        .where(ROLES.c.user_id == TABLE.c.id)
        .order_by(ROLES.c.position)
        .limit(1)
        .correlate(TABLE)
        .scalar_subquery(),
        "",
    ),
    "last_order_id": _last_order_id(),
    "last_order_date": _last_order_date(),
    **{name: _of_orders(*summed) for name, summed in _SUMMED.items()},
    "avatar_url": case((_avatars, TABLE.c.email)),
}
COMPUTED = [name for name in COLUMNS if name not in TABLE.c]
SUMS = {name: _by_customer(*summed) for name, summed in _SUMMED.items()}
