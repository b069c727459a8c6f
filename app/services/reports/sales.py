"""The report of sales: orders, refunds, new customers and uses of coupons (reports 2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import (
    ARRAY,
    DateTime,
    FromClause,
    Select,
    String,
    func,
    literal,
    select,
    type_coerce,
)

from app.auth.principals import Principal
from app.conversions.intervals import Interval
from app.db.read_pool import Fetch
from app.db.sql.functions import is_indexed, json_list, json_record
from app.models import ORDER_REFUNDS, ORDERS, REDEMPTIONS, USER_ROLES, USERS
from app.services.orders.sums import amount_text, divided
from app.services.reports.period import Period, require_reports, text_of
from app.services.reports.scope import (
    Scope,
    Span,
    figures_of,
    on_postgresql,
    read_sums,
    reading,
    scope_of,
    sums_of,
    within,
)

Figures = dict[str, int]
"""Figures by name. Amounts are in cents."""

NUMBERS = ("orders", "items", "customers", "refunds", "new_customers", "uses")

ORDER_SUMS = {
    "items": ORDERS.c["items"],
    "total": ORDERS.c.total,
    "discount": ORDERS.c.total_discount,
    "shipping": ORDERS.c.total_shipping,
    "cart_tax": ORDERS.c.cart_tax,
    "shipping_tax": ORDERS.c.shipping_tax,
    "fees": ORDERS.c.fees,
}
REFUND_SUMS = {"refunded": ORDER_REFUNDS.c.amount}


@dataclass(frozen=True, slots=True)
class Sales:
    """Sales of a period.

    Attributes:
        intervals: each interval with its figures.
        totals: the figures of the period.
        previous: the figures of the period of equal length before.
        currencies: other currencies of orders that count in the period.
    """

    intervals: list[tuple[Interval, Figures]]
    totals: Figures
    previous: Figures
    currencies: list[str]


def sales_report(actor: Principal, period: Period, currency: str) -> dict[str, Any]:
    """Return the sales of a period as the API shows them.

    Raises:
        ShopError: the capability is missing, or a statement took too long.
        InvalidParams: the period has too many intervals.
    """
    require_reports(actor)
    sales = read_sales(period, currency)
    return {
        "currency": currency,
        "currencies": sales.currencies,
        "interval": period.interval,
        "time_zone": period.zone.key,
        "from": period.first.isoformat(),
        "to": period.last.isoformat(),
        "totals": shown(sales.totals) | {"previous": shown(sales.previous)},
        "intervals": [
            {"start": text_of(interval.start), "label": interval.label} | shown(figures)
            for interval, figures in sales.intervals
        ],
    }


def read_sales(
    period: Period, currency: str, statuses: Sequence[str] | None = None, role: str = ""
) -> Sales:
    """Return the sales of a period.

    Args:
        statuses: the statuses of counted orders, by default ``SHOP_PAID_STATUSES`` and
            ``refunded``.
        role: counts only new accounts with this role.

    Raises:
        InvalidParams: the period has too many intervals.
    """
    parts = period.intervals()
    before, whole = period.previous, (period.since, period.until)
    spans = [(each.since, each.until) for each in parts] + [(before.since, before.until)]
    with reading() as fetch:
        scope = replace(scope_of(fetch, currency, statuses), role=role)
        *found, (previous, _) = _figures(fetch, scope, spans)
        currencies = _other_currencies(fetch, scope, whole) if scope.others else []
    figures = [each for each, _ in found]
    totals = {name: sum(each[name] for each in figures) for name in previous}
    totals["customers"] = len(set[Any]().union(*(customers for _, customers in found)))
    return Sales(list(zip(parts, figures, strict=True)), totals, previous, currencies)


def shown(figures: Mapping[str, int]) -> dict[str, Any]:
    """Return figures as the API shows them. Amounts are text."""
    orders, total = figures["orders"], figures["total"]
    net = total - figures["shipping"] - figures["tax"] - figures["refunded"]
    average = divided(total, orders) if orders else 0
    complete = {**figures, "net": net, "average_order": average}
    return {
        name: complete[name] if name in NUMBERS else amount_text(complete[name])
        for name in FIGURES
        if name in complete
    }


FIGURES = (
    "orders", "items", "total", "discount", "shipping", "tax", "fees", "refunds", "refunded", "net",
    "average_order", "customers", "new_customers", "uses",
)  # fmt: skip
"""The figures of sales, in their order in responses."""


def with_tax(figures: Figures) -> Figures:
    """Return the figures of orders with one sum of their taxes."""
    tax = figures["cart_tax"] + figures["shipping_tax"]
    return {**figures, "tax": tax}


def _figures(fetch: Fetch, scope: Scope, spans: Sequence[Span]) -> list[tuple[Figures, set[Any]]]:
    """Return the figures and the customers of each span, in one statement.

    Databases take longer to count different customers than to list them for Python.
    """

    def build(exact: bool) -> Select[Any]:
        source, place, since, until = _table_of(spans)
        parts = _parts(scope, since, until, exact=exact)
        each = (part.correlate(source).scalar_subquery() for part in parts)
        return select(*each).select_from(source).order_by(place)

    found = []
    for row in read_sums(fetch, build):
        values: dict[str, Any] = {}
        for part in row:
            values |= orjson.loads(part)
        guests = (values.pop(name, None) or () for name in ("guests", "more_guests"))
        customers: set[Any] = {email.lower() for email in set().union(*guests)}
        customers.update(values.pop("accounts") or ())
        figures = figures_of(values) | {"customers": len(customers)}
        found.append((with_tax(figures), customers))
    return found


def _parts(scope: Scope, since: Any, until: Any, *, exact: bool) -> list[Select[Any]]:
    """Return selects of the figures of a span, each as a JSON object."""
    orders = scope.counts_then(), *within(ORDERS.c.created_at, since, until)
    refunds = ORDER_REFUNDS.join(ORDERS, ORDERS.c.id == ORDER_REFUNDS.c.order_id)
    refunded = {"refunds": func.count(), **sums_of(REFUND_SUMS, exact=exact)}
    is_guest = ORDERS.c.customer_id.is_(None)
    created = within(USERS.c.created_at, since, until)
    if scope.role:
        has_role = USER_ROLES.c.role == scope.role
        created = (has_role, *within(USER_ROLES.c.registered_at, since, until))
    accounts: Any = json_list(ORDERS.c.customer_id).filter(~is_guest)
    guests: Any = json_list(ORDERS.c.billing_email)
    figures = {"orders": func.count(), "accounts": accounts, **sums_of(ORDER_SUMS, exact=exact)}
    if on_postgresql():  # whose entries of an index are too small for some addresses
        in_index = is_indexed(ORDERS.c.billing_email)
        of_orders = [
            select(json_record(figures)).where(*orders),
            select(json_record({"guests": guests})).where(is_guest, in_index, *orders),
            select(json_record({"more_guests": guests})).where(is_guest, ~in_index, *orders),
        ]
    else:
        figures["guests"] = guests.filter(is_guest)
        of_orders = [select(json_record(figures)).where(*orders)]
    return [
        *of_orders,
        select(json_record(refunded))
        .select_from(refunds)
        .where(scope.counts_found(), *within(ORDER_REFUNDS.c.created_at, since, until)),
        select(json_record({"new_customers": func.count()})).where(*created),
        select(json_record({"uses": func.count()})).where(
            scope.counts_use(), *within(REDEMPTIONS.c.confirmed_at, since, until)
        ),
    ]


def _other_currencies(fetch: Fetch, scope: Scope, span: Span) -> list[str]:
    """Return the other currencies of orders that count in a span, without reading its orders."""
    found: list[str] = []
    last: Any = ""
    while last is not None:
        last = fetch(select(func.min(ORDERS.c.currency)).where(ORDERS.c.currency > last))[0][0]
        if last not in {None, scope.currency}:
            of_currency = replace(scope, currency=last).counts()
            in_span = select(1).where(of_currency, *within(ORDERS.c.created_at, *span)).limit(1)
            found += [last] if fetch(in_span) else []
    return found


def _table_of(spans: Sequence[Span]) -> tuple[FromClause, Any, Any, Any]:
    """Return a table of spans, and the columns of their place and of their ends."""
    if on_postgresql():
        ends = (literal([span[end] for span in spans], _TIMES) for end in (0, 1))
        table = func.unnest(*ends).table_valued("since", "until", with_ordinality="n", name="spans")
        table = table.render_derived()
        return table, table.c.n, table.c.since, table.c.until
    listed = json.dumps([[_stored(end) for end in span] for span in spans])
    rows = func.json_each(literal(listed, String)).table_valued("key", "value", name="spans")
    since, until = (
        type_coerce(func.json_extract(rows.c.value, f"$[{end}]"), String) for end in (0, 1)
    )
    return rows, rows.c.key, since, until


_TIMES: Any = ARRAY(DateTime(timezone=True))


def _stored(instant: datetime) -> str:
    """Return an instant as SQLite stores it."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
