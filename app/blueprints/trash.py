"""The trash of coupons and orders (orders 4). Only in the native API."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import TRASHED_ORDER, OrderSerializer, trashed_coupons
from app.api.representations import coupons as coupons_of
from app.api.responses import json_response, page_response
from app.schemas.base import EmptyTrashResponse
from app.schemas.coupons.coupon import CouponResponse, TrashedCouponList
from app.schemas.examples import coupons as coupon_examples
from app.schemas.examples import orders as order_examples
from app.schemas.orders.order import OrderResponse, TrashedOrderList
from app.schemas.queries import CouponListQuery, OrderListQuery, TrashQuery
from app.services.coupons import queries as coupon_queries
from app.services.coupons.queries import CouponQuery
from app.services.maintenance import trash
from app.services.orders import queries as order_queries
from app.services.orders.queries import OrderQuery

coupon_trash = Blueprint(
    "coupon_trash",
    __name__,
    url_prefix="/coupons",
    description="List, restore and permanently delete coupons in the trash.",
    reads_replicas=True,
)
order_trash = Blueprint(
    "order_trash",
    __name__,
    url_prefix="/orders",
    description="List, restore and permanently delete orders in the trash.",
    extends_orders=True,
    reads_replicas=True,
)


@coupon_trash.route("/trash")
@coupon_trash.rights("shop_api_user_cannot_read_coupons")
@coupon_trash.arguments(CouponListQuery, location="query")
@coupon_trash.response(
    200,
    TrashedCouponList,
    headers=PAGE_HEADERS,
    example={"coupons": [coupon_examples.TRASHED_COUPON]},
)
def list_trashed_coupons(query: Query) -> Response:
    """List the coupons in the trash.

    Returns a page, filtered like the list of coupons. The list is empty if the user of the key
    cannot read coupons.
    """
    serializer = trashed_coupons(query)
    page = coupon_queries.list_coupons(
        current_principal(), CouponQuery.of(query), serializer.columns, trashed=True
    )
    return page_response("coupons", serializer.rows, page)


@coupon_trash.route("/trash", methods=["DELETE"])
@coupon_trash.errors("shop_api_user_cannot_delete_coupon")
@coupon_trash.arguments(TrashQuery, location="query")
@coupon_trash.response(200, EmptyTrashResponse, example={"deleted": 1})
def empty_coupon_trash(query: Query) -> Response:
    """Empty the trash of coupons.

    Permanently deletes the coupons that have been in the trash for at least `older_than_days`.
    """
    deleted = trash.empty_coupons(current_principal(), query["older_than_days"])
    return json_response({"deleted": deleted})


@coupon_trash.route("/<id:coupon_id>/restore", methods=["POST"])
@coupon_trash.errors(
    "shop_api_invalid_coupon_id",
    "shop_api_user_cannot_edit_coupon",
    "shop_api_coupon_code_already_exists",
)
@coupon_trash.response(200, CouponResponse, example={"coupon": coupon_examples.COUPON})
def restore_coupon(coupon_id: int) -> Response:
    """Restore a coupon from the trash.

    The coupon is published again. Its code must not have been taken in the meantime.
    """
    coupon = trash.restore_coupon(current_principal(), coupon_id)
    return json_response({"coupon": coupons_of().record(coupon)})


@order_trash.route("/trash")
@order_trash.rights("shop_api_user_cannot_read_orders_count")
@order_trash.arguments(OrderListQuery, location="query")
@order_trash.response(
    200, TrashedOrderList, headers=PAGE_HEADERS, example={"orders": [order_examples.TRASHED_ORDER]}
)
def list_trashed_orders(query: Query) -> Response:
    """List the orders in the trash.

    Returns a page, filtered and sorted like the list of orders. `status` is the status before the
    deletion, which a restored order gets again. The list is empty if the user of the key cannot
    read orders.
    """
    serializer = OrderSerializer(query, TRASHED_ORDER)
    page = order_queries.list_orders(
        current_principal(), OrderQuery.of(query), serializer.columns, trashed=True
    )
    return page_response("orders", serializer.rows, page)


@order_trash.route("/<id:order_id>/restore", methods=["POST"])
@order_trash.errors(
    "shop_api_invalid_order_id", "shop_api_user_cannot_edit_order", "shop_api_coupon_not_applicable"
)
@order_trash.response(200, OrderResponse, example={"order": order_examples.ORDER})
def restore_order(order_id: int) -> Response:
    """Restore an order from the trash.

    The order gets its previous status and uses its coupons again.
    """
    order = trash.restore_order(current_principal(), order_id)
    return json_response({"order": OrderSerializer().record(order)})


@order_trash.route("/trash", methods=["DELETE"])
@order_trash.errors("shop_api_user_cannot_delete_order")
@order_trash.arguments(TrashQuery, location="query")
@order_trash.response(200, EmptyTrashResponse, example={"deleted": 1})
def empty_order_trash(query: Query) -> Response:
    """Empty the trash of orders.

    Permanently deletes the orders that have been in the trash for at least `older_than_days`.
    """
    deleted = trash.empty_orders(current_principal(), query["older_than_days"])
    return json_response({"deleted": deleted})
