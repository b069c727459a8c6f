"""The report of customers: their orders and refunds (reports 1 and 4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy.types import TypeEngine

from app.auth.principals import Capability, Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import Fetch, ReadRow, on_postgresql
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.models import ORDERS, USERS
from app.services.common.pagination import page_size
from app.services.reports.figures import FigureRows, figures_of, shown
from app.services.reports.lists import Report, fetch_list, in_order
from app.services.reports.period import CANNOT_VIEW, Period, ReportQuery
from app.services.reports.sales import ORDER_SUMS, REFUND_SUMS, orders_of, refunds_of
from app.services.reports.scope import OTHERS, Scope, within

T = TypeVar("T")

PERSON = ("id", "email", "first_name", "last_name")
FIGURES = (*ORDER_SUMS, *REFUND_SUMS)
_Key = tuple[int | None, str | None]
"""The account or the guest of a row."""

_ACCOUNT = ORDERS.c.customer_id
_NO_GUEST = cast(null(), ORDERS.c.billing_email.type)


def customer_reports(
    actor: Principal, period: Period, currency: str, query: ReportQuery, shown_names: Sequence[str]
) -> Report:
    """Return some figures of a page of the customers with an order or a refund in a period."""
    actor.require(CANNOT_VIEW, Capability.LIST_USERS)
    # PostgreSQL sorts one figure of all customers, and adds up the others of those on the page.
    is_page = on_postgresql() and page_size(query.limit) is not None
    names = {query.orderby} if is_page else FIGURES

    def build(scope: Scope) -> Select[Any]:
        every = (
            _by_orders(scope, period, query.orderby)
            if is_page and query.orderby in ORDER_SUMS
            else _by_customer(_every_part(scope), period, names)
        )
        found = every.subquery().c
        ties = func.coalesce(found.customer_id, 0), found.guest
        return select(*found).order_by(in_order(found[query.orderby], query), *ties)

    def shown_rows(rows: Sequence[ReadRow], scope: Scope, fetch: Fetch) -> list[dict[str, object]]:
        keys = [(row.customer_id, row.guest) for row in rows]
        accounts = [account for account, guest in keys if account is not None]
        guests = [guest for account, guest in keys if account is None]
        if is_page and rows:
            rows = fetch(_by_customer(_parts_of(accounts, guests, scope), period, FIGURES))
        figures = {
            (row.customer_id, row.guest): figures_of({name: row._mapping[name] for name in FIGURES})
            for row in rows
        }
        persons = _accounts(accounts, scope, fetch) | _guests(guests, scope, fetch)
        return [
            {"customer": dict(zip(PERSON, persons[key], strict=True))}
            | shown(figures[key], shown_names)
            for key in keys
        ]

    return fetch_list(actor, build, shown_rows, currency, query)


class _Part(NamedTuple):
    """Orders or refunds of accounts or of guests, and the column of the guest."""

    figures: FigureRows
    condition: ColumnElement[bool]
    guest: ColumnElement[Any]


def _every_part(scope: Scope) -> list[_Part]:
    """Return the parts of a report.

    PostgreSQL reads the orders of accounts from an index alone, which lacks the guest.
    """
    orders, guest = orders_of(scope), scope.guest()
    return [
        _Part(orders, _ACCOUNT.is_not(None), _NO_GUEST),
        _Part(orders, _ACCOUNT.is_(None), guest),
        _Part(refunds_of(scope), true(), case((_ACCOUNT.is_(None), guest))),
    ]


def _parts_of(accounts: Sequence[int], guests: Sequence[str], scope: Scope) -> list[_Part]:
    """Return the parts of the report of some customers, whose orders are found by indexes."""
    table, key = table_of(literal([*guests], TextList), String)
    of_guests = union_all(
        *(
            select(ORDERS.c.id)
            .select_from(table.join(ORDERS, is_theirs))
            .where(scope.guest() == key)
            for is_theirs in scope.by_guest(ORDERS.c, key)
        )
    )
    is_chosen = (
        (accounts, is_one_of(_ACCOUNT, literal([*accounts], IdList)), _NO_GUEST),
        (guests, ORDERS.c.id.in_(of_guests), scope.guest()),
    )
    return [
        _Part(figures, condition, guest)
        for figures in (orders_of(scope), refunds_of(scope))
        for keys, condition, guest in is_chosen
        if keys
    ]


def _by_customer(parts: Iterable[_Part], period: Period, names: Collection[str]) -> Select[Any]:
    """Return a select of the customers of a period, and some of their figures."""
    every = union_all(
        *(
            figures.rows.add_columns(
                _ACCOUNT.label("customer_id"),
                guest.label("guest"),
                *(cast(figures.figures.get(name), BigInteger).label(name) for name in names),
            ).where(condition, *within(figures.time, period))
            for figures, condition, guest in parts
        )
    ).subquery()
    keys = every.c.customer_id, every.c.guest
    sums = (func.coalesce(func.sum(every.c[name]), 0).label(name) for name in names)
    return select(*keys, *sums).group_by(*keys)


def _by_orders(scope: Scope, period: Period, name: str) -> CompoundSelect[Any]:
    """Return a select of the customers of a period, and a figure of their orders.

    Accounts are a group of their own, so that PostgreSQL adds up their orders in the order of an
    index. Of the refunds, it only looks for customers without an order in the period.
    """
    orders, refunds = orders_of(scope), refunds_of(scope)
    in_period, guest = and_(*within(orders.time, period)), scope.guest()
    is_alone = and_(
        *within(refunds.time, period),
        ~in_period,
        ~scope.has_other(and_(*within(OTHERS.c.created_at, period))),
    )
    total: Any = func.sum(cast(orders.figures[name], BigInteger))
    accounts = orders.rows.add_columns(_ACCOUNT.label("customer_id"), _NO_GUEST.label("guest"))
    guests = orders.rows.add_columns(_ACCOUNT, guest)
    others = refunds.rows.add_columns(_ACCOUNT, case((_ACCOUNT.is_(None), guest)), literal(0))
    return union_all(
        accounts.add_columns(total.label(name))
        .where(in_period, _ACCOUNT.is_not(None))
        .group_by(_ACCOUNT),
        guests.add_columns(total).where(in_period, _ACCOUNT.is_(None)).group_by(_ACCOUNT, guest),
        others.where(is_alone).distinct(),
    )


def _accounts(ids: Sequence[int], scope: Scope, fetch: Fetch) -> dict[_Key, Sequence[object]]:
    """Return the values of PERSON of some accounts, by the key of a row.

    Orders of a deleted account, which the worker has not cleared yet, are those of a guest.
    """
    columns = (USERS.c[name] for name in PERSON)
    rows = fetch(select(*columns).where(is_one_of(USERS.c.id, literal([*ids], IdList))))
    found: dict[_Key, Sequence[object]] = {(row.id, None): row for row in rows}
    for missing in {*ids} - {row.id for row in rows}:
        billing = (ORDERS.c[f"billing_{name}"] for name in PERSON[1:])
        latest = select(*billing).where(scope.counts(), ORDERS.c.customer_id == missing)
        in_order = ORDERS.c.created_at.desc(), ORDERS.c.id.desc()
        email, *names = next(iter(fetch(latest.order_by(*in_order).limit(1))), ("", "", ""))
        found[missing, None] = (0, comparable_email(email), *names)
    return found


def _guests(guests: Sequence[str], scope: Scope, fetch: Fetch) -> dict[_Key, Sequence[object]]:
    """Return the same of some guests."""
    names = _names_of_guests(guests, scope, fetch)
    return {
        (None, guest): (0, comparable_email(email), *person)
        for guest, (email, *person) in names.items()
    }


def _names_of_guests(guests: Sequence[str], scope: Scope, fetch: Fetch) -> dict[str, Sequence[str]]:
    """Return the address and the names in the latest counted order of each guest."""
    if not guests:
        return {}
    table, key = table_of(literal([*guests], TextList), String)
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


def table_of(
    values: ColumnElement[Any], kind: type[TypeEngine[T]] | TypeEngine[T]
) -> tuple[Any, ColumnElement[T]]:
    """Return a table of the values of a ``ValueList``, and its column."""
    function = func.unnest if on_postgresql() else func.json_each
    table = function(values).table_valued("value", name="given")
    table = table.render_derived() if on_postgresql() else table
    return table, type_coerce(table.c.value, kind)
