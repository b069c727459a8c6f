"""The reports of sales, and of orders by status (reports 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, func, select

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.db.read_pool import Fetch, on_postgresql
from app.db.records import Record, row_dicts
from app.db.sql.functions import is_indexed, person
from app.models import ORDER_REFUNDS, ORDERS, REDEMPTIONS, USER_ROLES, USERS
from app.services.reports.figures import (
    CUSTOMERS,
    ONE,
    FigureRows,
    by_group,
    by_span,
    figures_of,
    in_cents,
    shown,
    with_figures,
    with_intervals,
)
from app.services.reports.period import Period
from app.services.reports.scope import (
    Scope,
    reading,
    scope_of,
    within,
)

ORDER_SUMS: dict[str, ColumnElement[Any]] = {
    "orders": ONE,
    "items": ORDERS.c["items"],
    "total": in_cents(ORDERS.c.total),
    "discount": in_cents(ORDERS.c.total_discount),
    "shipping": in_cents(ORDERS.c.total_shipping),
    "cart_tax": in_cents(ORDERS.c.cart_tax),
    "shipping_tax": in_cents(ORDERS.c.shipping_tax),
    "fees": in_cents(ORDERS.c.fees),
}
STATUS_SUMS = {name: ORDER_SUMS[name] for name in ("orders", "total")}
REFUND_SUMS = {"refunds": ONE, "refunded": in_cents(ORDER_REFUNDS.c.amount)}


def sales_report(actor: Principal, period: Period, currency: str, names: Sequence[str]) -> Record:
    """Return some figures of the sales of a period as the API shows them."""
    with reading(actor) as fetch:
        scope = scope_of(fetch, currency)
        found = read_sales(fetch, scope, period, names)
        currencies = other_currencies(fetch, scope, period)
    return {
        "currency": currency,
        "currencies": currencies,
        "interval": period.interval,
        "time_zone": period.zone.key,
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        **found,
    }


def read_sales(
    fetch: Fetch,
    scope: Scope,
    period: Period,
    names: Sequence[str],
    role: str = "",
) -> dict[str, Any]:
    """Return ``totals`` and ``intervals`` of figures. With a role, only its new accounts count."""
    spans = period.spans()
    rows = select().where(scope.counts_refund())
    refunds = FigureRows(rows, ORDER_REFUNDS.c.created_at, REFUND_SUMS)
    others = refunds, uses_of(scope, {"uses": ONE})
    parts = with_figures([*_with_customers(scope), _accounts(role), *others], names)
    return with_intervals(parts, spans, by_span(fetch, parts, spans), names)


def orders_of(scope: Scope) -> FigureRows:
    """Return the figures of orders."""
    rows = select().select_from(ORDERS).where(scope.counts())
    return FigureRows(rows, ORDERS.c.created_at, ORDER_SUMS)


def _with_customers(scope: Scope) -> Iterator[FigureRows]:
    """Yield the figures of orders, and lists of their customers."""
    orders = orders_of(scope)
    account, email = ORDERS.c.customer_id, ORDERS.c.billing_email
    customer = account if on_postgresql() else person(account, scope.guest())
    yield orders._replace(figures=orders.figures | {CUSTOMERS: customer})
    if on_postgresql():  # whose entries of an index are too small for some addresses
        for condition in (is_indexed(email), ~is_indexed(email)):
            rows = orders.rows.where(account.is_(None), condition)
            yield orders._replace(rows=rows, figures={CUSTOMERS: scope.guest()})


def refunds_of(scope: Scope) -> FigureRows:
    """Return the figures of refunds."""
    joined = ORDER_REFUNDS.join(ORDERS, ORDERS.c.id == ORDER_REFUNDS.c.order_id)
    rows = select().select_from(joined).where(scope.counts())
    return FigureRows(rows, ORDER_REFUNDS.c.created_at, REFUND_SUMS)


def uses_of(scope: Scope, figures: dict[str, ColumnElement[Any]]) -> FigureRows:
    """Return figures of the uses of coupons."""
    rows = select().select_from(REDEMPTIONS).where(scope.counts_use())
    return FigureRows(rows, REDEMPTIONS.c.confirmed_at, figures)


def _accounts(role: str) -> FigureRows:
    """Return the number of new accounts, or of those with a role."""
    new = {"new_customers": ONE}
    if not role:
        return FigureRows(select().select_from(USERS), USERS.c.created_at, new)
    rows = select().select_from(USER_ROLES).where(USER_ROLES.c.role == role)
    return FigureRows(rows, USER_ROLES.c.registered_at, new)


def other_currencies(fetch: Fetch, scope: Scope, period: Period) -> list[str]:
    """Return the other currencies of orders that count in a period, without reading its orders."""

    def after(last: object) -> ColumnElement[object]:
        return select(func.min(ORDERS.c.currency)).where(ORDERS.c.currency > last).scalar_subquery()

    first = select(after("").label("name")).cte("currencies", recursive=True)
    each = first.union_all(select(after(first.c.name)).where(first.c.name.is_not(None)))
    name: Any = each.c.name
    rows, time, _ = orders_of(replace(scope, currency=name))
    occurs = rows.add_columns(ONE).where(*within(time, period)).correlate(each).exists()
    found = fetch(select(name).where(name != scope.currency, occurs).order_by(name))
    return [row[0] for row in found]


def order_reports(actor: Principal, period: Period, currency: str) -> list[dict[str, object]]:
    """Return the number and total of the orders of a period in each known status."""
    labels = current_catalog().order_statuses
    with reading(actor) as fetch:
        orders = orders_of(scope_of(fetch, currency, tuple(labels)))._replace(figures=STATUS_SUMS)
        groups = by_group([orders], {"status": ORDERS.c.status}, period)
        rows = row_dicts(fetch(select(*groups.c)))
    found = {row.pop("status"): figures_of(row) for row in rows}
    nothing = dict.fromkeys(STATUS_SUMS, 0)
    return [
        {"status": status, "label": label} | shown(found.get(status, nothing), STATUS_SUMS)
        for status, label in labels.items()
    ]
