"""Reports, natively only (reports 1)."""

from collections.abc import Iterator, Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.csv_responses import report_response
from app.api.openapi.document import PAGE_HEADERS
from app.api.responses import json_response, page_headers, page_response
from app.db.read_pool import RowStream
from app.schemas import reports as schemas
from app.schemas.base import Base
from app.schemas.examples import reports as examples
from app.services.reports.coupons import coupon_report, coupon_reports
from app.services.reports.customers import customer_reports
from app.services.reports.lists import Report
from app.services.reports.period import Period, ReportQuery, currency_of, period_of
from app.services.reports.refusals import refusal_reports
from app.services.reports.sales import order_reports, sales_report

blp = Blueprint(
    "reports",
    __name__,
    url_prefix="/reports",
    description="What the shop sold, and what each coupon did, by days of its time zone.",
    reads_replicas=True,
)

init_app = blp.init_app

CSV = "text/csv"


def _is_csv(query: Mapping[str, object]) -> bool:
    return bool(query["format"] == "csv")


def _file(name: str, period: Period) -> str:
    return f"{name}-{period.first}-{period.last}"


@blp.route("/sales")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(schemas.SalesReportQuery, location="query")
@blp.response(200, schemas.SalesReportResponse, example={"sales": examples.SALES})
@blp.also_returns(CSV)
def get_sales_report(query: Query) -> Response:
    """Report sales.

    Orders count in the statuses of `SHOP_PAID_STATUSES` and `refunded`, on the day of their
    creation. Refunds count on their own day, and uses of coupons on the day of their confirmation.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    sales = sales_report(current_principal(), period, currency_of(wanted), wanted.figures)
    if _is_csv(query):
        name, rows = _file("sales", period), [sales["intervals"]]
        without = {*schemas.SALES_FIGURES} - {*query["figures"]}
        return report_response(name, schemas.SalesInterval, rows, without=without)
    return json_response({"sales": sales})


@blp.route("/coupons")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.also_requires("coupons")
@blp.arguments(schemas.CouponReportListQuery, location="query")
@blp.response(
    200,
    schemas.CouponReportList,
    headers=PAGE_HEADERS,
    example={"coupon_reports": examples.COUPONS},
)
@blp.also_returns(CSV)
def list_coupon_reports(query: Query) -> Response:
    """Report all coupons.

    Returns the coupons with a use or an order in the period. An order with two coupons counts for
    both.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    report = coupon_reports(current_principal(), period, currency_of(wanted), wanted)
    return _list("coupon", schemas.CouponSummarySchema, report, period, query)


@blp.route("/coupons/<id:coupon_id>")
@blp.errors("shop_api_user_cannot_view_reports", "shop_api_invalid_coupon_id")
@blp.also_requires("coupons")
@blp.arguments(schemas.IntervalReportQuery, location="query")
@blp.response(200, schemas.CouponReportResponse, example={"coupon_report": examples.COUPON_REPORT})
@blp.also_returns(CSV)
def get_coupon_report(query: Query, coupon_id: int) -> Response:
    """Report a coupon.

    The coupon can be in the trash.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    report = coupon_report(
        current_principal(), coupon_id, period, currency_of(wanted), schemas.COUPON_FIGURES
    )
    if _is_csv(query):
        name = _file(f"coupon-{coupon_id}", period)
        return report_response(name, schemas.CouponInterval, [report["intervals"]])
    return json_response({"coupon_report": report})


@blp.route("/customers")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.also_requires("customers")
@blp.arguments(schemas.CustomerReportListQuery, location="query")
@blp.response(
    200,
    schemas.CustomerReportList,
    headers=PAGE_HEADERS,
    example={"customer_reports": examples.CUSTOMERS},
)
@blp.also_returns(CSV)
def list_customer_reports(query: Query) -> Response:
    """Report all customers.

    Returns the customers with an order or a refund in the period. Requires the capability
    `list_users` in addition.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    report = customer_reports(
        current_principal(), period, currency_of(wanted), wanted, schemas.ORDER_FIGURES
    )
    return _list("customer", schemas.CustomerReportSchema, report, period, query)


@blp.route("/orders")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(schemas.CurrencyQuery, location="query")
@blp.response(200, schemas.OrderReportList, example={"order_reports": examples.ORDERS})
@blp.also_returns(CSV)
def list_order_reports(query: Query) -> Response:
    """Report orders by status.

    Returns the number and total of the orders in each known status.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    rows = order_reports(current_principal(), period, currency_of(wanted))
    if _is_csv(query):
        return report_response(_file("orders", period), schemas.OrderReportSchema, [rows])
    return json_response({"order_reports": rows})


@blp.route("/refusals")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.also_requires("coupons")
@blp.arguments(schemas.RefusalReportListQuery, location="query")
@blp.response(
    200,
    schemas.RefusalReportList,
    headers=PAGE_HEADERS,
    example={"refusal_reports": examples.REFUSALS},
)
@blp.also_returns(CSV)
def list_refusal_reports(query: Query) -> Response:
    """Report refused codes.

    Returns the codes that an evaluation, a redemption or an order refused, most often first. The
    numbers are written every few seconds and kept for `SHOP_EVENTS_DAYS`. A code that looks like an
    e-mail address or has more than six digits in a row counts as an empty code, unless a coupon has
    it, and so do further codes after 5,000 different ones on a day.
    """
    wanted = ReportQuery.of(query)
    period = period_of(wanted)
    report = refusal_reports(current_principal(), period, wanted)
    return _list("refusal", schemas.RefusalReportSchema, report, period, query)


def _list(name: str, schema: type[Base], report: Report, period: Period, query: Query) -> Response:
    if not _is_csv(query):
        return page_response(f"{name}_reports", report.shown, report.page)
    file, page = _file(f"{name}s", period), report.page
    without = {*schemas.COUPON_FIGURES} - {*query.get("figures", schemas.COUPON_FIGURES)}
    return report_response(
        file, schema, _batches(report), page_headers(page), page.rows, without=without
    )


def _batches(report: Report) -> Iterator[list[dict[str, object]]]:
    rows = report.page.rows
    if not isinstance(rows, RowStream):
        yield report.shown(rows)
        return
    for batch in rows.batches():
        with rows.reading():
            shown = report.shown(batch)
        yield shown
