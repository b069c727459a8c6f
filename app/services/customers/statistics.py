"""Computed columns of customers: role, avatar and order statistics.

The statement that reads the customers adds up the sums of their orders, which triggers keep
(``OrderSum``), so the statistics are exact at all times and need no statement of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flask import current_app
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Subquery,
    bindparam,
    case,
    func,
    literal,
    select,
)

from app.catalog import current_catalog
from app.db.records import NamedColumns
from app.db.sql.functions import is_one_of, json_text, json_tuple
from app.db.sql.types import Id, Money, TextList
from app.models import ORDER_SUMS, ORDERS, USER_ROLES, USERS
from app.models.address import BILLING_PARTS, SHIPPING_PARTS

_known: BindParameter[Iterable[object]] = bindparam(
    "known", callable_=lambda: current_catalog().order_statuses, type_=TextList
)
_paid: BindParameter[Iterable[object]] = bindparam(
    "paid", callable_=lambda: current_app.config["SHOP_PAID_STATUSES"], type_=TextList
)
_avatars: Any = bindparam("avatars", callable_=lambda: current_app.config["SHOP_GRAVATAR"])


_is_known = is_one_of(ORDER_SUMS.c.status, _known)
_is_paid = is_one_of(ORDER_SUMS.c.status, _paid)

# Each sum over the orders of a customer: its column, type, and condition of the status.
_SUMMED: Mapping[str, tuple[ColumnElement[object], object, ColumnElement[bool]]] = {
    "orders_count": (ORDER_SUMS.c.orders, Id, _is_known),
    "total_spent": (ORDER_SUMS.c.total, Money, _is_paid),
}


def _of_orders() -> ColumnElement[object]:
    """Return the order statistics of a row's customer, from its sums by status.

    The most recent order is the order with the highest ID (spec 2.2). It is looked up for each
    status.
    """
    last_of_status = (
        select(func.max(ORDERS.c.id))
        .where(
            ORDERS.c.customer_id == ORDER_SUMS.c.customer_id, ORDERS.c.status == ORDER_SUMS.c.status
        )
        .scalar_subquery()
    )
    theirs = select(
        *(
            func.coalesce(func.sum(case((which, column)), type_=kind), 0, type_=kind).label(name)
            for name, (column, kind, which) in _SUMMED.items()
        ),
        func.max(case((_is_known, last_of_status))).label("last_order_id"),
    ).where(ORDER_SUMS.c.customer_id == USERS.c.id)
    sums = theirs.correlate(USERS).subquery()
    last = ORDERS.alias("last_order")
    date = select(last.c.created_at).where(last.c.id == sums.c.last_order_id).scalar_subquery()
    return select(json_tuple({**sums.c, "last_order_date": date})).scalar_subquery()


def total_of(name: str, customer_id: ColumnElement[int]) -> ColumnElement[object]:
    """Return a single statistic of a row's customer; 0 without such orders.

    Args:
        name: ``orders_count`` or ``total_spent``.
        customer_id: the column of the row with the ID.
    """
    column, kind, which = _SUMMED[name]
    theirs = select(func.coalesce(func.sum(column, type_=kind), literal(0)))
    theirs = theirs.where(ORDER_SUMS.c.customer_id == customer_id, which)
    return theirs.correlate_except(ORDER_SUMS).scalar_subquery()


def _by_customer(
    column: ColumnElement[object], kind: object, which: ColumnElement[bool]
) -> Subquery:
    """Return a select of the IDs and sums of all customers with such orders, in one pass."""
    sums = select(ORDER_SUMS.c.customer_id, func.sum(column, type_=kind).label("value"))
    return sums.where(which).group_by(ORDER_SUMS.c.customer_id).subquery()


def _address(prefix: str, parts: Sequence[str]) -> ColumnElement[object]:
    return json_text({part: USERS.c[f"{prefix}{part}"] for part in parts})


_FIRST_ROLE = (
    select(USER_ROLES.c.role)
    .where(USER_ROLES.c.user_id == USERS.c.id)
    .order_by(USER_ROLES.c.position)
    .limit(1)
    .correlate(USERS)
    .scalar_subquery()
)
_COMPUTED: NamedColumns = {
    "role": func.coalesce(_FIRST_ROLE, ""),
    "role_or_customer": func.coalesce(_FIRST_ROLE, "customer"),
    "statistics": _of_orders(),
    "avatar_url": case((_avatars, USERS.c.email)),
}
COMPUTED = list(_COMPUTED)
COLUMNS: NamedColumns = {
    **USERS.c,
    **_COMPUTED,
    "billing_address": _address("billing_", BILLING_PARTS),
    "shipping_address": _address("shipping_", SHIPPING_PARTS),
}
TOTALS = {name: total_of(name, USERS.c.id) for name in _SUMMED}
SUMS = {name: _by_customer(*summed) for name, summed in _SUMMED.items()}
