"""Reports of this dialect, computed by the services of reports (wc-v3, surface 12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

from app.auth.principals import Capability
from app.catalog import current_catalog
from app.plugins.woocommerce import reports
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import schemas
from app.plugins.woocommerce.rest.operations import Call, Operation, Route
from app.plugins.woocommerce.rest.site import Object
from app.schemas.base import Base
from app.services.reports.period import Period, require_reports

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


def list_reports(call: Call) -> list[Object]:
    """Return the reports that exist."""
    found = []
    for slug, description in REPORTS.items():
        links = call.site.links("reports", slug, methods=("GET",))
        links["collection"] = [{"href": call.site.url("reports")}]
        found.append({"slug": slug, "description": description, "_links": links})
    return found


def _period_of(call: Call) -> Period:
    """Return the period of a report: its days, its name, or today."""
    days = [
        date.fromisoformat(call.given[name]) if name in call.given else None
        for name in ("date_min", "date_max")
    ]
    return reports.woocommerce_period(None if any(days) else call.args.get("period"), *days)


def get_sales(call: Call) -> list[Object]:
    """Return the sales of a period, in a list with one object."""
    require_reports(call.actor)
    sales = reports.woocommerce_sales(call.actor, _period_of(call))
    return [{**sales, "_links": {"about": [{"href": call.site.url("reports")}]}}]


def get_top_sellers(call: Call) -> list[Object]:
    """Return the products of which most units were sold in a period."""
    url, sellers = call.site.url, reports.top_sellers(call.actor, _period_of(call))
    about = [{"href": url("reports")}]
    products = ([{"href": url("products", each["product_id"])}] for each in sellers)
    links = ({"about": about, "product": product} for product in products)
    return [each | {"_links": own} for each, own in zip(sellers, links, strict=True)]


def get_order_totals(call: Call) -> list[Object]:
    """Return the number of orders in each status."""
    found = reports.orders_by_status(call.actor)
    statuses = current_catalog().order_statuses.items()
    return [_total(slug, label, found.get(slug, 0)) for slug, label in statuses]


def get_customer_totals(call: Call) -> list[Object]:
    """Return the number of customers with and without a completed order."""
    kinds = (("paying", "Paying customer"), ("non_paying", "Non-paying customer"))
    found = zip(kinds, reports.paying_customers(call.actor), strict=True)
    return [_total(slug, name, number) for (slug, name), number in found]


def get_coupon_totals(call: Call) -> list[Object]:
    """Return the number of coupons of each type."""
    found = reports.coupons_by_type(call.actor, _TYPES)
    return [_total(slug, name, found.get(slug, 0)) for slug, name in _TYPES.items()]


def _total(slug: str, name: str, number: int) -> Object:
    return {"slug": slug, "name": name, "total": number}


_DATE = arg.Argument("string", format="report-date")


def _period(noun: str) -> Base:
    """Return the arguments of a report of a period."""
    period = arg.choice(f"{noun}ListPeriod", [*reports.PERIODS])
    return arg.query({**arg.VIEW, "period": period, "date_min": _DATE, "date_max": _DATE})


_VIEW = arg.query(arg.VIEW)
_SELLERS = (schemas.RestTopSeller, _period("TopSeller"))
_TOTALS = (schemas.RestReportTotal, _VIEW)
_ROWS: Sequence[
    tuple[str, Callable[[Call], object], str, tuple[type[Base], Base], tuple[str, ...]]
] = (
    ("", list_reports, "List the reports", (schemas.RestReport, _VIEW), ()),
    ("/sales", get_sales, "Report sales", (schemas.RestSalesReport, _period("SalesReport")), ()),
    ("/top_sellers", get_top_sellers, "Report best sellers", _SELLERS, ()),
    ("/orders/totals", get_order_totals, "Count orders by status", _TOTALS, ()),
    ("/customers/totals", get_customer_totals, "Count paying customers", _TOTALS, ("customers",)),
    ("/coupons/totals", get_coupon_totals, "Count coupons by type", _TOTALS, ("coupons",)),
)
ROUTES = tuple(
    Route(
        f"/reports{path}",
        {"GET": Operation(call, "list", (Capability.VIEW_REPORTS,), args, summary, result, True)},
        also=also,
    )
    for path, call, summary, (result, args), also in _ROWS
)
