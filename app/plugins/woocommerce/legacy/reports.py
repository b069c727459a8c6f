"""Reports of the legacy API, which have a form of their own (reports 3)."""

from typing import Any

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.responses import json_response
from app.plugins.woocommerce.legacy.schemas import reports as schemas
from app.plugins.woocommerce.reports import (
    SELLERS,
    top_sellers,
    woocommerce_period,
    woocommerce_sales,
)
from app.services.reports.period import Period, require_reports

blp = Blueprint(
    "reports",
    __name__,
    url_prefix="/reports",
    description="Sales and best sellers of a period.",
    reads_replicas=True,
)


def _period(query: Query) -> Period:
    return woocommerce_period(query["period"], query["first"], query["last"])


@blp.route("")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.response(200, schemas.ReportNamesResponse)
def list_reports() -> Response:
    """List the reports."""
    require_reports(current_principal())
    return json_response({"reports": ["sales", "sales/top_sellers"]})


@blp.route("/sales")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(schemas.LegacyReportQuery, location="query")
@blp.response(200, schemas.LegacySalesResponse)
def get_sales(query: Query) -> Response:
    """Report sales.

    Orders count that are processing, completed, on hold or refunded, in the currency of the shop.
    """
    return json_response({"sales": woocommerce_sales(current_principal(), _period(query))})


@blp.route("/sales/top_sellers")
@blp.errors("shop_api_user_cannot_view_reports")
@blp.arguments(schemas.TopSellersQuery, location="query")
@blp.response(200, schemas.TopSellerList)
def list_top_sellers(query: Query) -> Response:
    """List the products that sold best."""
    sellers = top_sellers(current_principal(), _period(query), query["limit"] or SELLERS)
    shown: list[dict[str, Any]] = [
        {"title": each["name"], "product_id": each["product_id"], "quantity": each["quantity"]}
        for each in sellers
    ]
    return json_response({"top_sellers": shown})
