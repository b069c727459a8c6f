"""The orders and downloads of a customer (spec 4.2, decisions 7 and 8)."""

from collections.abc import Sequence

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.dialect import current_dialect
from app.api.representations import DOWNLOAD, OrderSerializer
from app.api.responses import page_response
from app.db.records import Row
from app.schemas.examples import orders as examples
from app.schemas.orders.order import DownloadList, OrderList
from app.schemas.queries import CustomerOrdersQuery, ReadQuery
from app.services.common.pagination import Page
from app.services.orders import queries as order_queries
from app.services.orders.queries import OrderQuery

READ_ERRORS = (
    "shop_api_invalid_customer_id",
    "shop_api_invalid_customer",
    "shop_api_user_cannot_read_customer",
)
TAGS = ["customers"]

blp = Blueprint(
    "customer_orders", __name__, url_prefix="/customers", extends_orders=True, reads_replicas=True
)
init_app = blp.init_app


@blp.route("/<id:customer_id>/orders", tags=TAGS)
@blp.also_requires("orders")
@blp.errors(*READ_ERRORS)
@blp.arguments(CustomerOrdersQuery, location="query")
@blp.response(200, OrderList, example={"orders": [examples.ORDER]})
def list_customer_orders(query: Query, customer_id: int) -> Response:
    """List the orders of a customer.

    Returns all orders of the customer, oldest first.
    """
    serializer = OrderSerializer(query)
    page = order_queries.orders_of_customer(
        current_principal(),
        customer_id,
        serializer.columns,
        OrderQuery.of(query) if "page" in query else None,
        with_total=query.get("totals", False),
    )
    return page_response("orders", serializer.rows, page)


@blp.route("/<id:customer_id>/downloads", tags=TAGS)
@blp.also_requires("orders")
@blp.errors(*READ_ERRORS)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, DownloadList, example={"downloads": {"1": examples.DOWNLOAD}})
def list_customer_downloads(query: Query, customer_id: int) -> Response:
    """List the downloads of a customer.

    Returns the available downloads by the ID of their permission: downloads of orders in the
    status `processing` or `completed` that are not used up and have not expired.
    """
    serializer = DOWNLOAD.only(query["selection"])
    rows = order_queries.downloads_of_customer(current_principal(), customer_id, serializer.columns)
    in_a_list = current_dialect().schema(DownloadList) is not DownloadList

    def by_id(found: Sequence[Row]) -> dict[str, object]:
        return {str(row[-1]): serializer.row(row) for row in found}

    return page_response("downloads", serializer.rows if in_a_list else by_id, Page(rows, None))
