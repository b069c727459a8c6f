"""The reports of coupons: uses, and the orders with them (reports 2 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, or_, select

from app.auth.principals import Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import ReadRow
from app.db.records import NamedColumns, Record
from app.db.sql.functions import is_one_of, person
from app.errors import ShopError
from app.models import COUPONS, DELETED_COUPONS, ORDERS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.services.common.erased import ERASED
from app.services.reports.figures import (
    CUSTOMERS,
    ONE,
    ORDER_IDS,
    TIMES,
    FigureRows,
    by_group,
    by_row,
    figures_of,
    in_cents,
    shown,
    with_figures,
    with_intervals,
)
from app.services.reports.lists import Report, fetch_list, in_order
from app.services.reports.period import Period, ReportQuery
from app.services.reports.sales import uses_of
from app.services.reports.scope import (
    Scope,
    reading,
    scope_of,
)

COUPON = ("id", "code", "type", "status")

_IS_ERASED = func.substr(REDEMPTIONS.c.email_normalized, 1, len(ERASED)) == ERASED
_HAS_ACCOUNT = REDEMPTIONS.c.customer_id.is_not(None)
# A guest of a use, empty for accounts. The address of a deleted customer is empty.
_GUEST = case((or_(_HAS_ACCOUNT, _IS_ERASED), ""), else_=REDEMPTIONS.c.email_normalized)
_USE_FIGURES: dict[str, ColumnElement[Any]] = {
    "uses": ONE,
    CUSTOMERS: person(REDEMPTIONS.c.customer_id, _GUEST),
    "discount": in_cents(REDEMPTIONS.c.amount),
    **dict.fromkeys(TIMES, REDEMPTIONS.c.confirmed_at),
}
# The code of a coupon that was deleted permanently.
_IS_DELETED = or_(REDEMPTIONS.c.coupon_id.is_(None), DELETED_COUPONS.c.id.is_not(None))
_KEYS: NamedColumns = {
    "coupon_id": case((DELETED_COUPONS.c.id.is_(None), REDEMPTIONS.c.coupon_id)),
    "code": case((_IS_DELETED, REDEMPTIONS.c.code)),
}
_COUPON = select(*(COUPONS.c[name] for name in COUPON)).where(COUPONS.c.id == bindparam("this"))


def coupon_reports(actor: Principal, period: Period, currency: str, query: ReportQuery) -> Report:
    """Return a page of the coupons with a use or an order in a period."""
    # A row is a coupon with a use or an order, so both are counted.
    names = {*query.figures, query.orderby, "uses", "orders"}
    chosen = _of_campaign(query.campaign)

    def in_sequence(rows: Select[Any], columns: Any) -> Select[Any]:
        key = in_order(columns[query.orderby], query)
        return rows.order_by(key, columns.code, columns.coupon_id)

    def build(scope: Scope) -> Select[Any]:
        orders = _orders_with_use(scope, {ORDER_IDS: ORDERS.c.id})
        parts = with_figures([uses_of(scope, _USE_FIGURES), orders], names)
        is_deleted = DELETED_COUPONS.c.id == REDEMPTIONS.c.coupon_id
        parts = [
            part._replace(rows=part.rows.outerjoin(DELETED_COUPONS, is_deleted).where(*chosen))
            for part in parts
        ]
        found = by_group(parts, _KEYS, period)
        code = func.coalesce(COUPONS.c.code, found.c.code).label("code")
        about = found.c.coupon_id, code, COUPONS.c.type, COUPONS.c.status
        joined = found.outerjoin(COUPONS, COUPONS.c.id == found.c.coupon_id)
        rows = select(*about, *[*found.c][len(_KEYS) :]).select_from(joined)
        return in_sequence(rows, rows.selected_columns)

    def complete(rows: Select[Any], scope: Scope) -> Select[Any]:
        # No list is sorted by it, and each order of the period would need a search.
        page = rows.subquery().c
        if ORDER_IDS not in page:
            return rows
        new = select(func.count()).select_from(ORDERS).correlate(page[ORDER_IDS].table)
        new = new.where(is_one_of(ORDERS.c.id, page[ORDER_IDS]), scope.is_first())
        columns = {each.name: each for each in page}
        columns[ORDER_IDS] = new.scalar_subquery().label("new_customers")
        return in_sequence(select(*columns.values()), page)

    shown_rows = partial(_shown_coupons, query.figures)
    return fetch_list(actor, build, shown_rows, currency, query, complete=complete)


def _of_campaign(campaign_id: int | None) -> list[ColumnElement[bool]]:
    """Return the condition of the uses of the coupons that are in a campaign now."""
    if campaign_id is None:
        return []
    theirs = COUPONS.c.campaign_id == min(campaign_id, INT64_MAX)
    return [REDEMPTIONS.c.coupon_id.in_(select(COUPONS.c.id).where(theirs))]


def _shown_coupons(
    names: Sequence[str], rows: Sequence[ReadRow], *_: object
) -> list[dict[str, object]]:
    found = []
    for row in rows:
        coupon = dict(zip(COUPON, row, strict=False))  # the first columns
        values = dict(zip(row._fields[len(COUPON) :], row[len(COUPON) :], strict=True))
        found.append({"coupon": coupon} | shown(figures_of(values), names))
    return found


def coupon_report(
    actor: Principal, coupon_id: int, period: Period, currency: str, names: Sequence[str]
) -> Record:
    """Return some figures of a coupon, which can be in the trash, as the API shows them.

    Raises:
        ShopError: the coupon does not exist.
    """
    with reading(actor) as fetch:
        spans = period.spans()
        rows = fetch(_COUPON, {"this": coupon_id})
        if not rows:
            raise ShopError("shop_api_invalid_coupon_id")
        coupon = dict(rows[0]._mapping)
        scope = scope_of(fetch, currency)
        new = {"new_customers": case((scope.is_first(), 1), else_=0)}
        parts = [
            part._replace(rows=part.rows.where(REDEMPTIONS.c.coupon_id == coupon_id))
            for part in (uses_of(scope, _USE_FIGURES), _orders_with_use(scope, new))
        ]
        found = with_intervals(parts, spans, by_row(fetch, parts, spans), names)
    return {"coupon": coupon, **found}


def uses_of_batch(actor: Principal, batch_id: int, period: Period) -> list[dict[str, object]]:
    """Return the confirmed uses of the coupons of a batch by interval: ``label`` and ``uses``."""
    intervals = period.intervals()
    rows = select().select_from(REDEMPTIONS.join(COUPONS, COUPONS.c.id == REDEMPTIONS.c.coupon_id))
    rows = rows.where(COUPONS.c.batch_id == batch_id, IS_CONFIRMED)
    uses = FigureRows(rows, REDEMPTIONS.c.confirmed_at, {"uses": ONE})
    with reading(actor) as fetch:
        found = by_row(fetch, [uses], intervals)
    return [
        {"label": interval.label, "uses": figures["uses"]}
        for interval, figures in zip(intervals, found, strict=True)
    ]


def _orders_with_use(scope: Scope, more: Mapping[str, ColumnElement[Any]]) -> FigureRows:
    """Return the figures of the orders with a use. An order with two coupons counts for both.

    Args:
        more: a figure from which the new customers follow.
    """
    order_id = REDEMPTIONS.c.order_id
    # Most uses of some shops have no order, which PostgreSQL would not know.
    with_use = and_(order_id == ORDERS.c.id, order_id.is_not(None), IS_CONFIRMED)
    rows = select().select_from(ORDERS.join(REDEMPTIONS, with_use)).where(scope.counts())
    figures = {
        "orders": ONE,
        "revenue": in_cents(ORDERS.c.total),
        **more,
    }
    return FigureRows(rows, ORDERS.c.created_at, figures)
