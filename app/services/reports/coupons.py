"""The reports of coupons: uses, and the orders with them (reports 2 and 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    distinct,
    func,
    select,
    type_coerce,
)

from app.auth.principals import Principal
from app.db.sql.types import UtcDateTime
from app.errors import ShopError
from app.models import COUPONS, ORDERS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.services.coupons.customers import ERASED
from app.services.orders.sums import amount_text, divided
from app.services.reports.lists import TIMES, Report, added_up, fetch_list, in_order, sort_keys
from app.services.reports.period import Period, require_reports, text_of
from app.services.reports.scope import (
    LOW,
    ORDERS_INDEX,
    Scope,
    Span,
    figures_of,
    on_postgresql,
    read_by,
    reading,
    scope_of,
    sums_of,
    within,
)

NUMBERS = ("uses", "orders", "customers", "new_customers")
SUMS = (*NUMBERS, "discount", "revenue")
FIGURES = (
    "uses", "orders", "customers", "discount", "revenue", "average_order", "new_customers",
    "first_use", "last_use",
)  # fmt: skip
"""The figures of a coupon, in their order in responses."""

BOUNDED_DAYS = 366
"""Longest period in which PostgreSQL finds the redemptions of orders by a range of order IDs."""

COUPON = ("id", "code", "type", "status")

_USE_SUMS = {"discount": REDEMPTIONS.c.amount}
_ORDER_SUMS = {"revenue": ORDERS.c.total}
# The code of a coupon that was deleted permanently.
_DELETED_CODE = case((REDEMPTIONS.c.coupon_id.is_(None), REDEMPTIONS.c.code))
_IS_ERASED = func.substr(REDEMPTIONS.c.email_normalized, 1, len(ERASED)) == ERASED
# A guest of a use. The address of a deleted customer is empty.
_GUEST = case((_IS_ERASED, ""), else_=REDEMPTIONS.c.email_normalized)
_WITH_ORDER = and_(REDEMPTIONS.c.order_id == ORDERS.c.id, IS_CONFIRMED)
_COUPON = select(*(COUPONS.c[name] for name in COUPON)).where(COUPONS.c.id == bindparam("this"))


def coupon_reports(
    actor: Principal, period: Period, currency: str, query: Mapping[str, Any]
) -> Report:
    """Return a page of the coupons with a use or an order in a period.

    Args:
        query: ``orderby``, ``order``, ``page`` and ``limit``.

    Raises:
        ShopError: the capability is missing, or a statement took too long.
    """
    require_reports(actor)

    def build(scope: Scope, exact: bool) -> Select[Any]:
        found = _by_coupon(scope, period, exact=exact)
        code = func.coalesce(COUPONS.c.code, found.c.code)
        keys = sort_keys(found.c) | {"code": [code]}
        shown = [code.label("shown_code"), COUPONS.c.type, COUPONS.c.status, *found.c]
        joined = select(*shown).select_from(
            found.outerjoin(COUPONS, COUPONS.c.id == found.c.coupon_id)
        )
        return joined.order_by(*in_order(keys[query["orderby"]], query), code, found.c.coupon_id)

    return fetch_list(build, _shown_coupons, currency, query)


def _shown_coupons(rows: Sequence[Any], _: Scope) -> list[dict[str, Any]]:
    """Return reports of coupons as the API shows them."""
    found = []
    for row in rows:
        values = dict(row._mapping)
        coupon = [values[name] for name in ("coupon_id", "shown_code", "type", "status")]
        times = {name: values[name] for name in TIMES}
        figures = figures_of({name: values[name] for name in values if name.split(LOW)[0] in SUMS})
        shown = _shown(figures, times)
        found.append({"coupon": dict(zip(COUPON, coupon, strict=True))} | shown)
    return found


def coupon_report(
    actor: Principal, coupon_id: int, period: Period, currency: str
) -> dict[str, Any]:
    """Return the report of a coupon, which can be in the trash, as the API shows it.

    Raises:
        ShopError: the capability is missing, the coupon does not exist, or a statement took too
            long.
        InvalidParams: the period has too many intervals.
    """
    require_reports(actor)
    parts, before = period.intervals(), period.previous
    with reading() as fetch:
        coupon = fetch(_COUPON, {"this": coupon_id})
        if not coupon:
            raise ShopError("shop_api_invalid_coupon_id")
        scope = scope_of(fetch, currency)
        this = REDEMPTIONS.c.coupon_id == coupon_id
        span = before.since, period.until
        uses, orders = (fetch(part(scope, span).where(this)) for part in (_uses, _orders))
    starts = [before.since, *(part.since for part in parts)]
    tallies = [_Tally() for _ in starts]
    whole = _Tally()
    for record, rows in ((_Tally.add_use, uses), (_Tally.add_order, orders)):
        for row in rows:
            place = bisect_right(starts, row[0]) - 1
            record(tallies[place], row)
            if place:
                record(whole, row)
    previous, *each = tallies
    return {
        "coupon": dict(coupon[0]._mapping),
        "totals": whole.shown() | {"previous": previous.shown()},
        "intervals": [
            {"start": text_of(part.start), "label": part.label} | tally.shown()
            for part, tally in zip(parts, each, strict=True)
        ],
    }


def uses_of_batch(actor: Principal, batch_id: int, period: Period) -> list[dict[str, Any]]:
    """Return the confirmed uses of the coupons of a batch by interval: ``label`` and ``uses``.

    Raises:
        ShopError: the capability is missing, or a statement took too long.
        InvalidParams: the period has too many intervals.
    """
    require_reports(actor)
    parts = period.intervals()
    uses = (
        select(REDEMPTIONS.c.confirmed_at)
        .join(COUPONS, COUPONS.c.id == REDEMPTIONS.c.coupon_id)
        .where(
            COUPONS.c.batch_id == batch_id,
            IS_CONFIRMED,
            *within(REDEMPTIONS.c.confirmed_at, period.since, period.until),
        )
    )
    with reading() as fetch:
        times = [row[0] for row in fetch(uses)]
    starts = [part.since for part in parts]
    counted = Counter(bisect_right(starts, time) - 1 for time in times)
    return [{"label": part.label, "uses": counted[place]} for place, part in enumerate(parts)]


class _Tally:
    """The figures of a coupon while its uses and orders are added."""

    def __init__(self) -> None:
        self.figures = dict.fromkeys(("uses", "discount", "orders", "revenue", "new_customers"), 0)
        self.customers: set[Any] = set()
        self.times: list[Any] = []

    def add_use(self, row: Any) -> None:
        """Add a use: when it was confirmed, its amount in cents, and its customer."""
        time, amount, customer_id, guest = row
        self.figures["uses"] += 1
        self.figures["discount"] += amount or 0
        self.customers.add(guest if customer_id is None else customer_id)
        self.times.append(time)

    def add_order(self, row: Any) -> None:
        """Add an order: when it was created, its total in cents, and whether it is the first."""
        _, total, is_first = row
        self.figures["orders"] += 1
        self.figures["revenue"] += total
        self.figures["new_customers"] += bool(is_first)

    def shown(self) -> dict[str, Any]:
        """Return the figures as the API shows them."""
        times = self.times or [None]
        ends = {"first_use": min(times), "last_use": max(times)}
        return _shown(self.figures | {"customers": len(self.customers)}, ends)


def _shown(figures: Mapping[str, int], times: Mapping[str, Any]) -> dict[str, Any]:
    orders = figures["orders"]
    average = divided(figures["revenue"], orders) if orders else 0
    shown: dict[str, Any] = {name: time and text_of(time) for name, time in times.items()}
    for name, figure in {**figures, "average_order": average}.items():
        shown[name] = figure if name in NUMBERS else amount_text(figure)
    return {name: shown[name] for name in FIGURES}


def _uses(scope: Scope, span: Span) -> Select[Any]:
    """Return a select of the uses of a span: time, amount in cents, and customer."""
    uses = select(
        REDEMPTIONS.c.confirmed_at,
        type_coerce(REDEMPTIONS.c.amount, BigInteger),
        REDEMPTIONS.c.customer_id,
        _GUEST,
    )
    uses = uses.where(scope.counts_use(), *within(REDEMPTIONS.c.confirmed_at, *span))
    return read_by(uses, REDEMPTIONS, "ix_redemptions_report")


def _orders(scope: Scope, span: Span) -> Select[Any]:
    """Return a select of the orders with a use: time, total in cents, and whether it is first."""
    orders = select(ORDERS.c.created_at, type_coerce(ORDERS.c.total, BigInteger), scope.is_first())
    joined = orders.select_from(ORDERS.join(REDEMPTIONS, _WITH_ORDER))
    joined = joined.where(scope.counts(), *within(ORDERS.c.created_at, *span))
    joined = read_by(joined, REDEMPTIONS, "ix_redemptions_order_confirmed")
    return read_by(joined, ORDERS, ORDERS_INDEX)


def _of_orders(span: Span) -> ColumnElement[bool]:
    """Return a condition that is true for the redemptions of orders of a span, and for others.

    Without it, PostgreSQL reads all redemptions of the shop to join them with the orders of a
    month. IDs mostly ascend with time. ``+ 0`` lets it read them from an index by time.
    """
    in_span = within(ORDERS.c.created_at, *span)
    first, last = (
        select(end(ORDERS.c.id + 0)).where(*in_span).scalar_subquery()
        for end in (func.min, func.max)
    )
    return REDEMPTIONS.c.order_id.between(first, last)


def _by_coupon(scope: Scope, period: Period, *, exact: bool) -> Any:
    """Return a subquery of the figures of each coupon, from its uses and from its orders."""
    span = period.since, period.until
    key = REDEMPTIONS.c.coupon_id, _DELETED_CODE.label("code")
    guest = case((REDEMPTIONS.c.customer_id.is_(None), _GUEST))
    customers = func.count(distinct(REDEMPTIONS.c.customer_id)) + func.count(distinct(guest))
    first_use, last_use = (
        end(REDEMPTIONS.c.confirmed_at, type_=UtcDateTime) for end in (func.min, func.max)
    )
    uses: dict[str, Any] = {
        "uses": func.count(),
        "customers": customers,
        "first_use": first_use,
        "last_use": last_use,
    }
    is_first = case((scope.is_first(), 1), else_=0)
    orders: dict[str, Any] = {"orders": func.count(), "new_customers": func.sum(is_first)}
    with_use = _orders(scope, span)
    if on_postgresql() and (period.last - period.first).days <= BOUNDED_DAYS:
        with_use = with_use.where(_of_orders(span))
    parts = (
        (_uses(scope, span), uses | sums_of(_USE_SUMS, exact=exact)),
        (with_use, orders | sums_of(_ORDER_SUMS, exact=exact)),
    )
    return added_up([(part, values, key) for part, values in parts])
