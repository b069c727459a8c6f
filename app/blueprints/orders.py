"""Orders, to read (decisions 7)."""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, current_app

from app.api.authentication import current_principal
from app.api.etags import with_etag
from app.api.openapi import PAGE_HEADERS
from app.api.order_extensions import OrderView
from app.api.responses import json_response, page_response
from app.api.smorest import Api, Blueprint
from app.catalog import current_catalog
from app.schemas import examples
from app.schemas.envelope import CountResponse
from app.schemas.orders import OrderList, OrderResponse, OrderStatusList
from app.schemas.queries import OrderCountQuery, OrderListQuery, ReadQuery
from app.services import order_queries

Query = dict[str, Any]

blp = Blueprint(
    "orders", __name__, url_prefix="/orders", description="Orders, each with its customer."
)


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the plugin door's signature
    """Register the order routes."""
    api.register_blueprint(blp)


@blp.route("")
@blp.arguments(OrderListQuery, location="query")
@blp.response(200, OrderList, headers=PAGE_HEADERS, example={"orders": [examples.ORDER]})
def list_orders(query: Query) -> Response:
    """List orders.

    The orders that match, newest first, each with its customer. The list is empty for a caller who
    may not read orders.
    """
    view = OrderView(query["selection"])
    size = current_app.config["SHOP_PAGE_SIZE"]
    page = order_queries.list_orders(current_principal(), query, view.columns, size)
    return page_response("orders", view.rows, page)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_orders_count")
@blp.arguments(OrderCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_orders(query: Query) -> Response:
    """Count orders.

    How many orders match the filter.
    """
    return json_response({"count": order_queries.count_orders(current_principal(), query)})


@blp.route("/statuses")
@blp.response(200, OrderStatusList, example={"order_statuses": examples.ORDER_STATUSES})
def list_order_statuses() -> Response:
    """List the order statuses and what they are called.

    The keys are what `filter[status]` and the `status` of an order know.
    """
    return json_response({"order_statuses": current_catalog().order_statuses})


@blp.route("/<id:order_id>")
@with_etag
@blp.errors("shop_api_invalid_order_id", "shop_api_user_cannot_read_order")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, OrderResponse, example={"order": examples.ORDER})
def get_order(query: Query, order_id: int) -> Response:
    """Read an order with its customer.

    An order of an account shows the full customer, one of a guest the names and addresses that the
    guest gave.
    """
    view = OrderView(query["selection"])
    return json_response(
        {"order": view.row(order_queries.get_order(current_principal(), order_id, view.columns))}
    )
