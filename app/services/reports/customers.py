"""The report of customers: their orders and refunds (reports 1 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, String, case, func, literal, select, type_coerce

from app.auth.principals import Capability, Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import Fetch, on_postgresql
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.models import ORDERS, USERS
from app.services.reports.figures import ORDER_FIGURES, by_group, figures_of, shown
from app.services.reports.lists import TOTAL, Report, fetch_list, in_order
from app.services.reports.period import CANNOT_VIEW, Period
from app.services.reports.sales import orders_of, refunds_of
from app.services.reports.scope import Scope

PERSON = ("id", "email", "first_name", "last_name")


def customer_reports(
    actor: Principal, period: Period, currency: str, query: Mapping[str, Any]
) -> Report:
    """Return a page of the customers with an order or a refund in a period."""
    actor.require(CANNOT_VIEW, Capability.LIST_USERS)

    def build(scope: Scope) -> Select[Any]:
        guest = case((ORDERS.c.customer_id.is_(None), scope.guest()))
        keys = {"customer_id": ORDERS.c.customer_id, "guest": guest}
        found = by_group([orders_of(scope), refunds_of(scope)], keys, period)
        persons = (USERS.c[name].label(f"person_{name}") for name in PERSON[1:])
        joined = found.outerjoin(USERS, USERS.c.id == found.c.customer_id)
        rows = select(*found.c, *persons).select_from(joined)
        key = in_order(found.c[query["orderby"]], query)
        ties = func.coalesce(found.c.customer_id, 0), found.c.guest
        return rows.order_by(key, *ties)

    return fetch_list(actor, build, _shown_customers, currency, query)


def _shown_customers(rows: Sequence[Any], scope: Scope, fetch: Fetch) -> list[dict[str, Any]]:
    guests = [row.guest for row in rows if row.customer_id is None]
    names = _names_of_guests(guests, scope, fetch)
    found = []
    for row in rows:
        values = dict(row._mapping)
        values.pop(TOTAL, None)
        customer_id, guest = values.pop("customer_id"), values.pop("guest")
        person = [values.pop(f"person_{name}") for name in PERSON[1:]]
        if customer_id is None:
            customer_id, (email, *person) = 0, names[guest]
            person.insert(0, comparable_email(email))
        customer = dict(zip(PERSON, (customer_id, *person), strict=True))
        found.append({"customer": customer} | shown(figures_of(values), ORDER_FIGURES))
    return found


def _names_of_guests(guests: Sequence[str], scope: Scope, fetch: Fetch) -> dict[str, Sequence[str]]:
    """Return the address and the names in the latest counted order of each guest."""
    if not guests:
        return {}
    table, key = _table_of(guests)
    columns = [ORDERS.c[name] for name in ("created_at", "id")]
    latest = (
        select(columns[1])
        .where(scope.counts(), is_theirs)
        .order_by(*(column.desc() for column in columns))
        .limit(1)
        .correlate(table)
        .scalar_subquery()
        for is_theirs in scope.by_guest(ORDERS.c, key)
    )
    found = {guest: ids for guest, *ids in fetch(select(key, *latest).select_from(table))}
    columns += [ORDERS.c[f"billing_{name}"] for name in PERSON[1:]]
    wanted = literal([each for ids in found.values() for each in ids], IdList)
    orders = {row.id: row for row in fetch(select(*columns).where(is_one_of(columns[1], wanted)))}
    return {
        guest: max(known)[2:]
        for guest, ids in found.items()
        if (known := [orders[each] for each in ids if each is not None])
    }


def _table_of(texts: Sequence[str]) -> tuple[Any, ColumnElement[str]]:
    """Return a table of texts, and its column."""
    function = func.unnest if on_postgresql() else func.json_each
    table = function(literal([*texts], TextList)).table_valued("value", name="texts")
    table = table.render_derived() if on_postgresql() else table
    return table, type_coerce(table.c.value, String)
