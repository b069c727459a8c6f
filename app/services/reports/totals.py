"""Totals that reports of other dialects show: best sellers, and numbers of records (wc-v3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select

from app.auth.principals import Principal
from app.models import COUPONS, ORDER_PRODUCTS, ORDERS, USER_ROLES, USERS
from app.services.reports.period import Period, require_reports
from app.services.reports.scope import reading, within

STAFF = ("administrator", "shop_manager")
MOST_SELLERS = 12


def top_sellers(
    actor: Principal, period: Period, statuses: Sequence[str]
) -> list[tuple[int, str, int]]:
    """Return product ID, name and units of the best sellers of a period, most units first.

    The name is that of a line of the latest order.
    """
    require_reports(actor)
    units = func.sum(ORDER_PRODUCTS.c.quantity)
    found = (
        select(ORDER_PRODUCTS.c.product_id, units, func.max(ORDER_PRODUCTS.c.order_id))
        .join(ORDERS, ORDERS.c.id == ORDER_PRODUCTS.c.order_id)
        .where(
            ORDERS.c.status.in_(statuses),
            *within(ORDERS.c.created_at, period.since, period.until),
        )
        .group_by(ORDER_PRODUCTS.c.product_id)
        .order_by(units.desc(), ORDER_PRODUCTS.c.product_id)
        .limit(MOST_SELLERS)
    )
    with reading() as fetch:
        rows = fetch(found)
        of_orders = select(ORDERS.c.id, ORDERS.c.line_items)
        lines = {
            row[0]: row[1] for row in fetch(of_orders.where(ORDERS.c.id.in_(r[2] for r in rows)))
        }
    return [
        (product, _name_of(product, lines.get(order_id, ())), int(number))
        for product, number, order_id in rows
    ]


def _name_of(product_id: int, lines: Sequence[Any]) -> str:
    names = (line["name"] for line in lines if line["product_id"] == product_id)
    return next(names, "")


def orders_by_status(actor: Principal) -> dict[str, int]:
    """Return the number of orders in each status."""
    return _numbers(actor, ORDERS.c.status)


def coupons_by_type(actor: Principal) -> dict[str, int]:
    """Return the number of coupons of each type, also of those in the trash."""
    return _numbers(actor, COUPONS.c.type)


def _numbers(actor: Principal, column: ColumnElement[str]) -> dict[str, int]:
    require_reports(actor)
    with reading() as fetch:
        rows = fetch(select(column, func.count()).group_by(column))
    return {row[0]: row[1] for row in rows}


def paying_customers(actor: Principal) -> tuple[int, int]:
    """Return how many accounts have a completed order, and how many have none, without staff."""
    require_reports(actor)
    is_staff = exists().where(USER_ROLES.c.user_id == USERS.c.id, USER_ROLES.c.role.in_(STAFF))
    has_paid = exists().where(
        ORDERS.c.customer_id == USERS.c.id, ORDERS.c.completed_at.is_not(None)
    )
    everyone = select(func.count()).select_from(USERS).where(~is_staff)
    with reading() as fetch:
        paying = fetch(everyone.where(has_paid))[0][0]
        return paying, fetch(everyone)[0][0] - paying
