"""The reports of sales, and of orders by status (reports 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Select, case, func, literal, select

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.db.read_pool import Fetch
from app.db.sql.functions import is_indexed
from app.models import ORDER_REFUNDS, ORDERS, REDEMPTIONS, USER_ROLES, USERS
from app.services.reports.figures import (
    ONE,
    SALES_FIGURES,
    Part,
    by_group,
    by_span,
    figures_of,
    in_cents,
    read_sums,
    shown,
    with_intervals,
)
from app.services.reports.period import Period
from app.services.reports.scope import (
    ORDERS_INDEX,
    Scope,
    on_postgresql,
    read_by,
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


def sales_report(actor: Principal, period: Period, currency: str) -> dict[str, Any]:
    """Return the sales of a period as the API shows them."""
    with reading(actor) as fetch:
        scope = scope_of(fetch, currency)
        found = read_sales(fetch, scope, period)
        currencies = _other_currencies(fetch, scope, period) if scope.others else []
    return {
        "currency": currency,
        "currencies": currencies,
        "interval": period.interval,
        "time_zone": period.zone.key,
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        **found,
    }


def read_sales(fetch: Fetch, scope: Scope, period: Period, role: str = "") -> dict[str, Any]:
    """Return ``totals`` and ``intervals`` of sales. With a role, only its new accounts count."""
    uses = uses_of(scope, {"uses": ONE})
    parts = [*_with_customers(orders_of(scope)), refunds_of(scope), _accounts(role), uses]
    spans = period.spans()
    return with_intervals(parts, spans, by_span(fetch, parts, spans), SALES_FIGURES)


def orders_of(scope: Scope) -> Part:
    """Return the figures of orders."""
    rows = read_by(select().select_from(ORDERS).where(scope.counts()), ORDERS, ORDERS_INDEX)
    return Part(rows, ORDERS.c.created_at, ORDER_SUMS)


def _with_customers(orders: Part) -> Iterator[Part]:
    """Yield the figures of orders, and lists of their customers."""
    account, email = ORDERS.c.customer_id, ORDERS.c.billing_email
    people: dict[str, ColumnElement[Any]] = {"accounts": account}
    if not on_postgresql():
        people["guests"] = case((account.is_(None), email))
    yield orders._replace(figures=orders.figures | people)
    if on_postgresql():  # whose entries of an index are too small for some addresses
        for condition in (is_indexed(email), ~is_indexed(email)):
            rows = orders.rows.where(account.is_(None), condition)
            yield orders._replace(rows=rows, figures={"guests": email})


def refunds_of(scope: Scope) -> Part:
    """Return the figures of refunds."""
    joined = ORDER_REFUNDS.join(ORDERS, ORDERS.c.id == ORDER_REFUNDS.c.order_id)
    rows = select().select_from(joined).where(scope.counts_found())
    rows = read_by(rows, ORDER_REFUNDS, "ix_order_refunds_report")
    return Part(rows, ORDER_REFUNDS.c.created_at, REFUND_SUMS)


def uses_of(scope: Scope, figures: dict[str, Any]) -> Part:
    """Return figures of the uses of coupons."""
    rows = select().select_from(REDEMPTIONS).where(scope.counts_use())
    return Part(
        read_by(rows, REDEMPTIONS, "ix_redemptions_report"), REDEMPTIONS.c.confirmed_at, figures
    )


def _accounts(role: str) -> Part:
    """Return the number of new accounts, or of those with a role."""
    rows, time = select().select_from(USERS), USERS.c.created_at
    if role:
        rows = select().select_from(USER_ROLES).where(USER_ROLES.c.role == role)
        time = USER_ROLES.c.registered_at
    return Part(rows, time, {"new_customers": ONE})


def _other_currencies(fetch: Fetch, scope: Scope, period: Period) -> list[str]:
    """Return the other currencies of orders that count in a period, without reading its orders."""
    found: list[str] = []
    last: Any = ""
    while last is not None:
        last = fetch(select(func.min(ORDERS.c.currency)).where(ORDERS.c.currency > last))[0][0]
        if last not in {None, scope.currency}:
            rows, time, _ = orders_of(replace(scope, currency=last))
            in_period = rows.add_columns(literal(1)).where(*within(time, period)).limit(1)
            found += [last] if fetch(in_period) else []
    return found


def order_reports(actor: Principal, period: Period, currency: str) -> list[dict[str, Any]]:
    """Return the number and total of the orders of a period in each known status."""
    labels = current_catalog().order_statuses
    with reading(actor) as fetch:
        orders = orders_of(scope_of(fetch, currency, tuple(labels)))._replace(figures=STATUS_SUMS)

        def build(exact: bool) -> Select[Any]:
            found = by_group([orders], {"status": ORDERS.c.status}, period, exact=exact)
            return select(*found.c)

        rows = [dict(row._mapping) for row in read_sums(fetch, build)]
    found = {row.pop("status"): figures_of(row) for row in rows}
    nothing = dict.fromkeys(STATUS_SUMS, 0)
    return [
        {"status": status, "label": label} | shown(found.get(status, nothing), STATUS_SUMS)
        for status, label in labels.items()
    ]
