"""Sales, best sellers and numbers of records as WooCommerce reports them (reports 3, wc-v3).

Orders that are on hold count too, and refunded orders count as sales, from which all refunds of the
period are subtracted. Amounts are in the currency of the shop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal

from dateutil.relativedelta import relativedelta
from flask import current_app
from sqlalchemy import ColumnElement, Select, func, literal, select, union_all

from app.auth.principals import Principal
from app.config.current import shop_zone
from app.conversions.intervals import DAY, MONTH
from app.db.read_pool import Fetch
from app.db.session import now
from app.db.sql.types import Id, IdList
from app.models import COUPONS, ORDER_PRODUCTS, ORDER_REFUNDS, ORDERS, ROW_COUNTS, USER_ROLES, USERS
from app.services.common.row_counts import RowCountFilter
from app.services.coupons.queries import PUBLISHED, TRASHED
from app.services.orders.items import amount_text, cents, divided
from app.services.reports.customers import table_of
from app.services.reports.period import Period
from app.services.reports.sales import other_currencies, read_sales
from app.services.reports.scope import Scope, reading, scope_of, within

# PostgreSQL would look for the smallest ID in the order of the IDs, through most of the orders.
_ID = ORDERS.c.id + 0
SOLD = ("processing", "completed", "on-hold")
MAX_YEARS = 20
MAX_MONTHS_BY_DAY = 3
SELLERS = 12
STAFF = ("administrator", "shop_manager", "shop_assistant")

SALES = {
    "sales": "total",
    "orders": "orders",
    "items": "items",
    "tax": "tax",
    "shipping": "shipping",
    "discount": "discount",
    "customers": "new_customers",
}
"""Figures of an interval, and their names in the report of sales."""

_FIGURES = (*SALES.values(), "net", "refunded")

PERIODS = ("week", "month", "last_month", "year")


def woocommerce_period(
    name: str | None = None, first: date | None = None, last: date | None = None
) -> Period:
    """Return a period by its name or its days, by default today.

    Args:
        name: one of PERIODS. It takes precedence over the days.
        first: the first day, by default twenty years ago if there is a last one.
        last: the last day, by default today.
    """
    zone = shop_zone()
    today = now().astimezone(zone).date()
    if name == "week":
        return Period(today - timedelta(days=6), today, zone, DAY)
    if name == "month":
        return Period(today.replace(day=1), today, zone, DAY)
    if name == "last_month":
        end = today.replace(day=1) - timedelta(days=1)
        return Period(end.replace(day=1), end, zone, DAY)
    if name == "year":
        return Period(today.replace(month=1, day=1), today, zone, MONTH)
    earliest = today - relativedelta(years=MAX_YEARS)
    begin = max(first or (earliest if last else today), earliest)
    end = max(last or today, begin)
    is_long = begin + relativedelta(months=MAX_MONTHS_BY_DAY + 1) <= end
    return Period(begin, end, zone, MONTH if is_long else DAY)


def woocommerce_sales(actor: Principal, period: Period) -> dict[str, object]:
    """Return the sales of a period, in the form of WooCommerce."""
    currency = current_app.config["SHOP_CURRENCY"]
    with reading(actor) as fetch:
        scope = scope_of(fetch, currency, (*SOLD, "refunded"))
        found = read_sales(fetch, scope, period, _FIGURES, "customer")
    totals, intervals = found["totals"], found["intervals"]
    total, net, refunded = (cents(Decimal(totals[name])) for name in ("total", "net", "refunded"))
    return {
        "total_sales": amount_text(total - refunded),
        "net_sales": totals["net"],
        "average_sales": amount_text(divided(net, len(intervals))),
        "total_orders": totals["orders"],
        "total_items": totals["items"],
        "total_tax": totals["tax"],
        "total_shipping": totals["shipping"],
        # The recorded server returns a number here, unlike all other amounts.
        "total_refunds": refunded / 100 if refunded % 100 else refunded // 100,
        "total_discount": totals["discount"],
        "totals_grouped_by": period.interval,
        "totals": {
            each["label"]: {name: each[figure] for name, figure in SALES.items()}
            for each in intervals
        },
        "total_customers": totals["new_customers"],
    }


def top_sellers(actor: Principal, period: Period, limit: int = SELLERS) -> list[dict[str, object]]:
    """Return ``product_id``, ``quantity`` and ``name`` of the products that sold best.

    Units that were refunded in the period are subtracted. The name is that in the latest order of
    the product. Products that sold equally are in the order of their IDs.
    """
    product_id, quantity = ORDER_PRODUCTS.c.product_id, func.sum(ORDER_PRODUCTS.c.quantity)
    with reading(actor) as fetch:
        scope = scope_of(fetch, current_app.config["SHOP_CURRENCY"], SOLD)
        returned = Counter[int]()
        refunded = (
            select(ORDER_REFUNDS.c.line_items)
            .join(ORDERS, ORDERS.c.id == ORDER_REFUNDS.c.order_id)
            .where(scope.counts(), *within(ORDER_REFUNDS.c.created_at, period))
        )
        for (items,) in fetch(refunded):
            for each in items:
                returned[each["product_id"]] += each["quantity"]
        counts = _of_period(fetch, scope, period)
        # All products are read otherwise, which are sorted by the ID of their orders.
        ends = select(func.min(_ID), func.max(_ID)).where(*counts)
        first, last = fetch(ends)[0]
        sold = (
            select(product_id, quantity)
            .join(ORDERS, ORDERS.c.id == ORDER_PRODUCTS.c.order_id)
            .where(*counts, ORDER_PRODUCTS.c.order_id.between(first or 0, last or 0))
            .group_by(product_id)
            .order_by(quantity.desc(), product_id)
            .limit(limit + len(returned))  # a product can lose its place
        )
        sums = [(row[0], int(row[1]) - returned[row[0]]) for row in fetch(sold)]
        found = sorted(sums, key=lambda row: (-row[1], row[0]))[:limit]
        products, number = table_of(literal([row[0] for row in found], IdList), Id)
        latest = select(func.max(ORDER_PRODUCTS.c.order_id)).where(product_id == number)
        of_each = select(latest.correlate(products).scalar_subquery()).select_from(products)
        in_latest = ORDERS.c.id.in_(of_each)
        items = fetch(select(ORDERS.c.line_items).where(in_latest))
    names: dict[int, str] = {
        line["product_id"]: line.get("name", "") for (lines,) in items for line in lines
    }
    return [
        {"name": names.get(number, ""), "product_id": number, "quantity": units}
        for number, units in found
    ]


def _of_period(fetch: Fetch, scope: Scope, period: Period) -> list[ColumnElement[bool]]:
    """Return the conditions of the counted orders of a period.

    The index of statuses lacks the currency, which is compared only if there are several.
    """
    has_others = bool(other_currencies(fetch, scope, period))
    counts = scope.counts() if has_others else ORDERS.c.status.in_(scope.statuses)
    return [counts, *within(ORDERS.c.created_at, period)]


def orders_by_status(actor: Principal) -> dict[str, int]:
    """Return the number of orders in each status, from the counts of triggers."""
    status, number = ROW_COUNTS.c.partition, func.sum(ROW_COUNTS.c.count)
    counted = select(status, number).where(ROW_COUNTS.c.table_name == "orders").group_by(status)
    return _numbers(actor, counted)


def coupons_by_type(actor: Principal, types: Iterable[str]) -> dict[str, int]:
    """Return the number of coupons of some types, also in the trash.

    Each number is read from an index alone, which takes a third of the time of one statement.
    """
    numbers = (
        select(literal(kind), func.count()).select_from(COUPONS).where(COUPONS.c.type == kind, each)
        for kind in types
        for each in (PUBLISHED, TRASHED)
    )
    counted = union_all(*numbers).subquery()
    kind, number = counted.c
    return _numbers(actor, select(kind, func.sum(number)).group_by(kind))


def _numbers(actor: Principal, counted: Select[tuple[str, int]]) -> dict[str, int]:
    with reading(actor) as fetch:
        return {row[0]: int(row[1]) for row in fetch(counted)}


def paying_customers(actor: Principal) -> tuple[int, int]:
    """Return how many accounts have a completed order, and how many have none, without staff.

    Accounts are counted by triggers, so only the few of the staff and the orders are read.
    """
    staff = select(USER_ROLES.c.user_id).where(USER_ROLES.c.role.in_(STAFF)).distinct().subquery()
    customer = ORDERS.c.customer_id
    paying = select(customer).where(customer.is_not(None), ORDERS.c.completed_at.is_not(None))
    is_paying = paying.where(customer == staff.c.user_id).correlate(staff).exists()
    numbers = (
        select(func.count()).select_from(paying.distinct().subquery()),
        select(func.count()).select_from(staff).where(is_paying),
        select(func.count()).select_from(staff),
        RowCountFilter("users", USERS.c.created_at).number,
    )
    with reading(actor) as fetch:
        every, of_staff, number_of_staff, users = (int(fetch(each)[0][0]) for each in numbers)
    return every - of_staff, users - number_of_staff - every + of_staff
