"""Reports of this dialect, computed by the services of reports (wc-v3, surface 12)."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from typing import Any

from flask import current_app

from app.auth.principals import Capability
from app.catalog import current_catalog
from app.conversions.intervals import DAY, MONTH
from app.db.session import now
from app.services.orders.sums import amount_text
from app.services.reports import totals
from app.services.reports.period import Period, require_reports, shop_zone
from app.services.reports.sales import Figures, read_sales
from app.woocommerce_rest.frame import Call, Operation, Reply, Route
from app.woocommerce_rest.lists import ONE
from app.woocommerce_rest.site import plain_number

Object = dict[str, Any]

SOLD = ("processing", "completed", "on-hold")
COUNTED = (*SOLD, "refunded")
REPORTS = {
    "sales": "List of sales reports.",
    "top_sellers": "List of top sellers products.",
    "orders/totals": "Orders totals.",
    "customers/totals": "Customers totals.",
    "coupons/totals": "Coupons totals.",
}
_TYPES = {
    "percent": "Percentage discount",
    "fixed_cart": "Fixed cart discount",
    "fixed_product": "Fixed product discount",
}
_LONGEST_BY_DAY = 3


def list_reports(call: Call) -> Reply:
    """Return the reports that exist."""
    found = []
    for slug, description in REPORTS.items():
        links = call.site.links("reports", slug, methods=("GET",))
        links["collection"] = [{"href": call.site.url("reports")}]
        found.append({"slug": slug, "description": description, "_links": links})
    return Reply(found)


def _period_of(call: Call) -> Period:
    """Return the period of a report: its parameters, or today."""
    zone, given = shop_zone(), call.given
    today = now().astimezone(zone).date()
    first, last, interval = today, today, DAY
    if "date_min" in given or "date_max" in given:
        last = date.fromisoformat(given["date_max"]) if "date_max" in given else today
        years_back = _years_before(today, 20)
        first = date.fromisoformat(given["date_min"]) if "date_min" in given else years_back
        last = max(first, last)
        interval = MONTH if _whole_months(first, last) > _LONGEST_BY_DAY else DAY
    elif call.args.get("period") == "week":
        first = today - timedelta(days=6)
    elif call.args.get("period") == "month":
        first = today.replace(day=1)
    elif call.args.get("period") == "last_month":
        last = today.replace(day=1) - timedelta(days=1)
        first = last.replace(day=1)
    elif call.args.get("period") == "year":
        first, interval = today.replace(month=1, day=1), MONTH
    return Period(first, last, zone, interval)


def _years_before(day: date, years: int) -> date:
    year = day.year - years
    return day.replace(year=year, day=min(day.day, monthrange(year, day.month)[1]))


def _whole_months(first: date, last: date) -> int:
    months = (last.year - first.year) * 12 + last.month - first.month
    return months - (last.day < first.day)


def get_sales(call: Call) -> Reply:
    """Return the sales of a period, in a list with one object."""
    require_reports(call.actor)
    period = _period_of(call)
    sales = read_sales(period, current_app.config["SHOP_CURRENCY"], COUNTED)
    figures = sales.totals
    total = figures["total"] - figures["refunded"]
    net = total - figures["tax"] - figures["shipping"]
    average = _half_up(net, len(sales.intervals))
    shown = {
        "total_sales": amount_text(total),
        "net_sales": amount_text(net),
        "average_sales": amount_text(average),
        "total_orders": figures["orders"],
        "total_items": figures["items"],
        "total_tax": amount_text(figures["tax"]),
        "total_shipping": amount_text(figures["shipping"]),
        "total_refunds": plain_number(amount_text(figures["refunded"])),
        "total_discount": amount_text(figures["discount"]),
        "totals_grouped_by": period.interval,
        "totals": {interval.label: _row(each) for interval, each in sales.intervals},
        "total_customers": figures["new_customers"],
        "_links": {"about": [{"href": call.site.url("reports")}]},
    }
    return Reply([shown])


def _half_up(value: int, by: int) -> int:
    quotient = (2 * abs(value) + by) // (2 * by)
    return -quotient if value < 0 else quotient


def _row(figures: Figures) -> Object:
    return {
        "sales": amount_text(figures["total"]),
        "orders": figures["orders"],
        "items": figures["items"],
        "tax": amount_text(figures["tax"]),
        "shipping": amount_text(figures["shipping"]),
        "discount": amount_text(figures["discount"]),
        "customers": figures["new_customers"],
    }


def get_top_sellers(call: Call) -> Reply:
    """Return the products of which most units were sold in a period."""
    about = [{"href": call.site.url("reports")}]
    return Reply(
        [
            {
                "name": name,
                "product_id": product_id,
                "quantity": quantity,
                "_links": {
                    "about": about,
                    "product": [{"href": call.site.url("products", product_id)}],
                },
            }
            for product_id, name, quantity in totals.top_sellers(call.actor, _period_of(call), SOLD)
        ]
    )


def get_order_totals(call: Call) -> Reply:
    """Return the number of orders in each status."""
    found = totals.orders_by_status(call.actor)
    statuses = current_catalog().order_statuses.items()
    return Reply([_total(slug, label, found.get(slug, 0)) for slug, label in statuses])


def get_customer_totals(call: Call) -> Reply:
    """Return the number of customers with and without a completed order."""
    paying, others = totals.paying_customers(call.actor)
    return Reply(
        [
            _total("paying", "Paying customer", paying),
            _total("non_paying", "Non-paying customer", others),
        ]
    )


def get_coupon_totals(call: Call) -> Reply:
    """Return the number of coupons of each type."""
    found = totals.coupons_by_type(call.actor)
    return Reply([_total(slug, name, found.get(slug, 0)) for slug, name in _TYPES.items()])


def _total(slug: str, name: str, number: int) -> Object:
    return {"slug": slug, "name": name, "total": number}


_DATE = {"type": "string", "format": "report-date"}
_PERIOD = {
    "period": {"type": "string", "enum": ["week", "month", "last_month", "year"]},
    "date_min": _DATE,
    "date_max": _DATE,
}


def _report(path: str, call: Any, summary: str, args: Any = ONE) -> Route:
    needs = (Capability.VIEW_REPORTS,)
    return Route(
        f"/reports{path}",
        {"GET": Operation(call, "list", needs, args, summary, result="Report", is_list=True)},
    )


ROUTES = (
    _report("", list_reports, "List the reports"),
    _report("/sales", get_sales, "Report sales", _PERIOD),
    _report("/top_sellers", get_top_sellers, "Report best sellers", _PERIOD),
    _report("/orders/totals", get_order_totals, "Count orders by status"),
    _report("/customers/totals", get_customer_totals, "Count paying customers"),
    _report("/coupons/totals", get_coupon_totals, "Count coupons by type"),
)
