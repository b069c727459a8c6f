"""Orders: the routes of decisions 7 and orders 1."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.bulk_requests import bulk_response
from app.api.dialect import current_dialect
from app.api.etags import precondition, record_response, with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import OrderSerializer
from app.api.responses import delete_response, json_response, page_response
from app.catalog import current_catalog
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.examples import orders as examples
from app.schemas.orders import input as schemas
from app.schemas.orders.order import OrderList, OrderResponse, OrderStatusList
from app.schemas.queries import DeleteQuery, OrderCountQuery, OrderListQuery, RecordQuery
from app.services.orders import queries as order_queries
from app.services.orders import writes as orders
from app.services.orders.queries import OrderQuery

blp = Blueprint(
    "orders",
    __name__,
    url_prefix="/orders",
    description="Create, find, update and delete orders, each with its customer.",
    extends_orders=True,
    reads_replicas=True,
)
init_app = blp.init_app


def _body(order: Mapping[str, object]) -> Body:
    return {"order": OrderSerializer().record(order)}


@blp.route("")
@blp.rights("shop_api_user_cannot_read_orders_count")
@blp.arguments(OrderListQuery, location="query")
@blp.response(200, OrderList, headers=PAGE_HEADERS, example={"orders": [examples.ORDER]})
def list_orders(query: Query) -> Response:
    """List orders.

    Returns the orders that match, newest first, each with its customer. The list is empty if the
    user of the key cannot read orders.
    """
    serializer = OrderSerializer(query)
    page = order_queries.list_orders(current_principal(), OrderQuery.of(query), serializer.columns)
    return page_response("orders", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors_as(400, "shop_api_invalid_customer_id", "shop_api_invalid_order_id")
@blp.errors(
    "shop_api_missing_order_data",
    "shop_api_user_cannot_create_order",
    "shop_api_user_cannot_create_order_refund",
    "shop_api_invalid_order_status",
    "shop_api_invalid_order_currency",
    "shop_api_invalid_currency",
    "shop_api_invalid_order_item",
    "shop_api_order_too_large",
    "shop_api_cannot_create_order",
    "shop_api_coupon_not_applicable",
    "shop_api_invalid_metadata",
)
@blp.arguments(schemas.OrderCreateRequest, example={"order": examples.NEW_ORDER})
@idempotent
@blp.response(201, OrderResponse, example={"order": examples.ORDER})
def create_order(body: Body) -> Response:
    """Create an order.

    No field is required. The sums of the order are computed from its items.
    """
    order = orders.create_order(current_principal(), body["order"])
    return json_response(_body(order), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_orders_count")
@blp.arguments(OrderCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_orders(query: Query) -> Response:
    """Count orders.

    Returns the number of orders that match.
    """
    number = order_queries.count_orders(current_principal(), OrderQuery.of(query))
    return json_response(number.body)


@blp.route("/statuses")
@blp.response(200, OrderStatusList, example={"order_statuses": examples.ORDER_STATUSES})
def list_order_statuses() -> Response:
    """List the order statuses.

    Returns the label of each status. The keys are the values of `status` in orders and in filters.
    """
    return json_response({"order_statuses": current_catalog().order_statuses})


@blp.route("/<id:order_id>")
@with_etag
@blp.errors("shop_api_invalid_order_id", "shop_api_user_cannot_read_order")
@blp.arguments(RecordQuery, location="query")
@blp.response(200, OrderResponse, example={"order": examples.ORDER})
def get_order(query: Query, order_id: int) -> Response:
    """Retrieve an order.

    The `customer` of an order is the customer account, or for a guest order an object with the ID
    0 and the billing and shipping address of the order.
    """
    serializer = OrderSerializer(query)
    row = order_queries.get_order(current_principal(), order_id, serializer.columns)
    return record_response("order", serializer, row)


@blp.route("/<id:order_id>", methods=["PUT"])
@blp.errors_as(400, "shop_api_invalid_customer_id", "shop_api_invalid_order_id")
@blp.errors(
    "shop_api_missing_order_data",
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_edit_order",
    "shop_api_user_cannot_create_order_refund",
    "shop_api_precondition_failed",
    "shop_api_invalid_order_status",
    "shop_api_invalid_order_currency",
    "shop_api_invalid_currency",
    "shop_api_invalid_order_item",
    "shop_api_order_too_large",
    "shop_api_invalid_order_refund",
    "shop_api_cannot_update_order",
    "shop_api_coupon_not_applicable",
    "shop_api_invalid_metadata",
)
@blp.arguments(schemas.OrderUpdateRequest, example={"order": examples.ORDER_UPDATE})
@blp.response(200, OrderResponse, example={"order": examples.UPDATED_ORDER})
def update_order(body: Body, order_id: int) -> Response:
    """Update an order.

    Only supplied fields change. A list changes single items: an item with an `id` updates that
    item, or removes it with `"remove": true`; an item without an `id` is added. The sums are
    computed again. A change of the status adds a note to the order.
    """
    order = orders.update_order(current_principal(), order_id, body["order"], precondition(_body))
    return json_response(_body(order))


@blp.route("/<id:order_id>", methods=["DELETE"])
@blp.status("trashed")
@blp.errors(
    "shop_api_invalid_order_id", "shop_api_user_cannot_delete_order", "shop_api_precondition_failed"
)
@blp.arguments(DeleteQuery, location="query")
@blp.response(200, DeleteResponse, example={"message": "Deleted order"})
def delete_order(query: Query, order_id: int) -> Response:
    """Delete an order.

    Moves the order to the trash, where it is not listed or counted. With `force=true`, the order
    is deleted permanently.
    """
    force = query["force"] == "true"
    orders.delete_order(
        current_principal(),
        order_id,
        force=force,
        trashed_too=current_dialect().removes_trashed,
        precondition=precondition(_body),
    )
    return delete_response("order", permanently=force)


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.rights("shop_api_user_cannot_create_order", "shop_api_user_cannot_edit_order")
@blp.status("bulk_created")
@blp.errors("shop_api_missing_orders_data", "shop_api_orders_request_entity_too_large")
@blp.arguments(schemas.OrderBulkRequest, example={"orders": examples.ORDER_ITEMS})
@idempotent
@blp.response(200, schemas.OrderBulkResponse, example={"orders": examples.ORDER_RESULTS})
def bulk_orders(body: Body) -> Response:
    """Create and update orders in bulk.

    An item with an `id` updates that order; an item without an `id` creates one. The results are
    in the order of the items. An item that fails changes nothing and does not affect the others.
    """
    return bulk_response(
        "order",
        body["orders"],
        create=schemas.OrderCreate,
        update=schemas.OrderUpdate,
        save=orders.save_orders,
        dump=OrderSerializer().records,
    )
