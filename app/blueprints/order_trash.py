"""The trash of orders (orders 4). Native only: the legacy API has no such routes."""

from __future__ import annotations

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import TRASHED_ORDER, OrderSerializer
from app.api.responses import json_response, page_response
from app.schemas.base import EmptyTrashResponse
from app.schemas.examples import orders as examples
from app.schemas.orders.order import OrderResponse, TrashedOrderList
from app.schemas.queries import OrderListQuery, TrashQuery
from app.services.orders import trash as order_trash

blp = Blueprint(
    "order_trash",
    __name__,
    url_prefix="/orders",
    description="List, restore and permanently delete orders in the trash.",
    extends_orders=True,
    reads_replicas=True,
)
init_app = blp.init_app


@blp.route("/trash")
@blp.arguments(OrderListQuery, location="query")
@blp.response(
    200, TrashedOrderList, headers=PAGE_HEADERS, example={"orders": [examples.TRASHED_ORDER]}
)
def list_trashed_orders(query: Query) -> Response:
    """List the orders in the trash.

    Returns a page, filtered and sorted like the list of orders. `status` is the status before the
    deletion, which a restored order gets again. The list is empty if the user of the key cannot
    read orders.

    `filter[metadata][KEY]=VALUE` finds records by their metadata. Up to five such filters must all
    match.
    """
    serializer = OrderSerializer(query, TRASHED_ORDER)
    page = order_trash.list_trash(current_principal(), query, serializer.columns)
    return page_response("orders", serializer.rows, page)


@blp.route("/<id:order_id>/restore", methods=["POST"])
@blp.errors(
    "shop_api_invalid_order_id", "shop_api_user_cannot_edit_order", "shop_api_coupon_not_applicable"
)
@blp.response(200, OrderResponse, example={"order": examples.ORDER})
def restore_order(order_id: int) -> Response:
    """Restore an order from the trash.

    The order gets its previous status and uses its coupons again.
    """
    order = order_trash.restore(current_principal(), order_id)
    return json_response({"order": OrderSerializer().records([order])[0]})


@blp.route("/trash", methods=["DELETE"])
@blp.errors("shop_api_user_cannot_delete_order")
@blp.arguments(TrashQuery, location="query")
@blp.response(200, EmptyTrashResponse, example={"deleted": 1})
def empty_order_trash(query: Query) -> Response:
    """Empty the trash of orders.

    Permanently deletes the orders that have been in the trash for at least `older_than_days`.
    """
    deleted = order_trash.empty_trash(current_principal(), query["older_than_days"])
    return json_response({"deleted": deleted})
