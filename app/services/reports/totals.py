"""Numbers of records that reports of other dialects show (wc-v3)."""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists, func, select

from app.auth.principals import Principal
from app.models import COUPONS, ORDERS, USER_ROLES, USERS
from app.services.reports.period import require_reports
from app.services.reports.scope import reading

STAFF = ("administrator", "shop_manager")


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
