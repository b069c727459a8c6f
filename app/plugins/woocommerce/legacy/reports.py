"""Reports of the legacy API, which have a form of their own (reports 3)."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.responses import json_response
from app.plugins.woocommerce import reports
from app.schemas import queries
from app.schemas.base import Base, list_response, response
from app.schemas.fields import output as fields
from app.schemas.fields.query import ChoiceParam, IntegerParam
from app.schemas.reports import DateParam
from app.services.reports.period import Period, require_reports


class LegacyReportQuery(queries.Query):
    """Period of a report of the legacy API."""

    period = ChoiceParam(
        "filter[period]",
        "`week` is the last 7 days until today; `month` and `year` begin with their first day. By "
        "default, the days of the other parameters, or today.",
        *reports.PERIODS,
    )
    first = DateParam("filter[date_min]", "First day in the time zone of the shop.")
    last = DateParam("filter[date_max]", "Last day, which is included. By default, today.")


class TopSellersQuery(LegacyReportQuery):
    """Query of the best sellers."""

    limit = IntegerParam("filter[limit]", "Number of products. 0 means 12.")


class LegacySalesInterval(Base):
    """Sales of a day or a month."""

    sales = fields.Amount("Sum of the orders.")
    orders = fields.Number("Number of orders.")
    items = fields.Number("Units in the orders.")
    tax = fields.Amount("Sum of the taxes, with those of shipping.")
    shipping = fields.Amount("Sum of the shipping, without taxes.")
    discount = fields.Amount("Sum of the discounts.")
    customers = fields.Number("Number of accounts that were created.")


class LegacySalesSchema(Base):
    """Sales of a period."""

    total_sales = fields.Amount("Sum of the orders, minus the refunds of the period.")
    net_sales = fields.Amount("`total_sales` without shipping and taxes.")
    average_sales = fields.Amount("`net_sales` divided by the number of days or months.")
    total_orders = fields.Number("Number of orders.")
    total_items = fields.Number("Units in the orders.")
    total_tax = fields.Amount("Sum of the taxes, with those of shipping.")
    total_shipping = fields.Amount("Sum of the shipping, without taxes.")
    total_refunds = fields.Output("Sum of the refunds of the period.", openapi={"type": "number"})
    total_discount = fields.Amount("Sum of the discounts.")
    totals_grouped_by = fields.String("`day` or `month`.")
    totals = fields.by_name(
        "Sales by day (`2026-11-20`) or month (`2026-11`).", of=LegacySalesInterval
    )
    total_customers = fields.Number("Number of accounts that were created.")


class TopSellerSchema(Base):
    """Product that sold well."""

    title = fields.String("Name of the product in its latest order.")
    product_id = fields.Identifier("Product ID.")
    quantity = fields.Number("Units that were sold.")


class ReportNamesResponse(Base):
    """Reports of the legacy API."""

    reports = fields.StringList("Paths of the reports.")


LegacySalesResponse = response(LegacySalesSchema, "sales")
TopSellerList = list_response(TopSellerSchema, "top_sellers")


blp = Blueprint(
    "reports",
    __name__,
    url_prefix="/reports",
    description="Sales and best sellers of a period.",
    reads_replicas=True,
)


def _period(query: Query) -> Period:
    return reports.woocommerce_period(query["period"], query["first"], query["last"])


@blp.route("")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.response(200, ReportNamesResponse)
def list_reports() -> Response:
    """List the reports."""
    require_reports(current_principal())
    return json_response({"reports": ["sales", "sales/top_sellers"]})


@blp.route("/sales")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(LegacyReportQuery, location="query")
@blp.response(200, LegacySalesResponse)
def get_sales(query: Query) -> Response:
    """Report sales.

    Orders count that are processing, completed, on hold or refunded, in the currency of the shop.
    """
    return json_response({"sales": reports.woocommerce_sales(current_principal(), _period(query))})


@blp.route("/sales/top_sellers")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(TopSellersQuery, location="query")
@blp.response(200, TopSellerList)
def list_top_sellers(query: Query) -> Response:
    """List the products that sold best."""
    sellers = reports.top_sellers(
        current_principal(), _period(query), query["limit"] or reports.SELLERS
    )
    shown: list[dict[str, object]] = [
        {"title": each["name"], "product_id": each["product_id"], "quantity": each["quantity"]}
        for each in sellers
    ]
    return json_response({"top_sellers": shown})
