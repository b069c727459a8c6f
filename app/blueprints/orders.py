"""Orders: the routes of decisions 7 and orders 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Flask, Response, current_app

from app.api.authentication import current_principal
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.openapi import PAGE_HEADERS
from app.api.order_extensions import OrderView
from app.api.request_parser import item_loader
from app.api.responses import bulk_response, json_response, page_response
from app.api.serializers import Serializer
from app.api.smorest import Api, Blueprint
from app.api.versions import current_api_version
from app.auth.principals import Capability
from app.catalog import current_catalog
from app.errors import ShopError
from app.schemas import examples
from app.schemas.envelope import CountResponse, DeletedResponse, DeleteResponse
from app.schemas.order_inputs import (
    OrderBulkRequest,
    OrderBulkResponse,
    OrderCreate,
    OrderCreateRequest,
    OrderUpdate,
    OrderUpdateRequest,
)
from app.schemas.orders import (
    OrderList,
    OrderResponse,
    OrderStatusList,
    TrashedOrderList,
    TrashedOrderSchema,
)
from app.schemas.queries import (
    DeleteQuery,
    OrderCountQuery,
    OrderListQuery,
    ReadQuery,
    TrashQuery,
)
from app.services import bulk, order_queries, orders
from app.services.bulk import BulkItem, WriteResult

Query = dict[str, Any]
Body = dict[str, Any]

TRASHED_ORDER = Serializer(TrashedOrderSchema, order_queries.TRASH_COLUMNS)

blp = Blueprint(
    "orders",
    __name__,
    url_prefix="/orders",
    description="Orders, each with its customer.",
    extends_orders=True,
)


# The legacy API has no trash that can be listed or restored.
trash = Blueprint(
    "orders_trash", __name__, url_prefix="/orders", description="Orders in the trash."
)


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the plugin door's signature
    """Register the order routes."""
    api.register_blueprint(blp)
    api.register_blueprint(trash)


def _body(order: Mapping[str, Any]) -> Body:
    return {"order": OrderView(None).records([order])[0]}


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


@blp.route("", methods=["POST"])
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.errors(
    "shop_api_missing_order_data",
    "shop_api_user_cannot_create_order",
    "shop_api_invalid_order_status",
    "shop_api_invalid_order_currency",
    "shop_api_invalid_order_item",
    "shop_api_order_too_large",
    "shop_api_cannot_create_order",
    "shop_api_coupon_not_applicable",
)
@blp.arguments(OrderCreateRequest, example={"order": examples.NEW_ORDER})
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


@blp.route("/<id:order_id>", methods=["PUT"])
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.errors(
    "shop_api_missing_order_data",
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_edit_order",
    "shop_api_precondition_failed",
    "shop_api_invalid_order_status",
    "shop_api_invalid_order_currency",
    "shop_api_invalid_order_item",
    "shop_api_order_too_large",
    "shop_api_cannot_update_order",
    "shop_api_coupon_not_applicable",
)
@blp.arguments(OrderUpdateRequest, example={"order": examples.ORDER_UPDATE})
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
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_delete_order",
    "shop_api_precondition_failed",
)
@blp.arguments(DeleteQuery, location="query")
@blp.response(200, DeleteResponse, example={"message": "Deleted order"})
def delete_order(query: Query, order_id: int) -> Response:
    """Delete an order.

    Moves it to the trash, where it is in no list, count or sum. With `force=true`, removes it
    permanently.
    """
    force = query["force"] == "true"
    orders.delete_order(
        current_principal(),
        order_id,
        force=force,
        trashed_too=current_api_version().removes_trashed,
        precondition=precondition(_body),
    )
    if force:
        return json_response({"message": "Permanently deleted order"})
    return json_response({"message": "Deleted order"}, current_api_version().status("trashed"))


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.status("bulk_created")
@blp.errors("shop_api_missing_orders_data", "shop_api_orders_request_entity_too_large")
@blp.arguments(OrderBulkRequest, example={"orders": examples.ORDER_ITEMS})
@idempotent
@blp.response(200, OrderBulkResponse, example={"orders": examples.ORDER_RESULTS})
def bulk_orders(body: Body) -> Response:
    """Create and update orders in bulk.

    An item with an `id` updates that order; an item without an `id` creates one. The results are
    in the order of the items. An item that fails changes nothing and does not affect the others.
    """
    version = current_api_version()
    results = bulk.run(
        body["orders"],
        limit=current_app.config["SHOP_BULK_LIMIT"],
        too_large="shop_api_orders_request_entity_too_large",
        invalid_id="shop_api_invalid_order_id",
        load=item_loader(
            version.schema(OrderCreate),
            version.schema(OrderUpdate),
            create_needs=Capability.PUBLISH_SHOP_ORDERS,
            edit_needs=Capability.EDIT_SHOP_ORDERS,
        ),
        save=_saved,
        dump=dict,
        name=version.translate,
    )
    return bulk_response("orders", results)


def _saved(items: Sequence[BulkItem]) -> list[WriteResult]:
    """Save orders and return them as responses show them, their customers read at once."""
    results = orders.save_orders(current_principal(), items)
    written = [result for result in results if not isinstance(result, ShopError)]
    shown = iter(OrderView(None).records(written))
    return [result if isinstance(result, ShopError) else next(shown) for result in results]


@trash.route("/trash")
@trash.arguments(OrderListQuery, location="query")
@trash.response(
    200, TrashedOrderList, headers=PAGE_HEADERS, example={"orders": [examples.TRASHED_ORDER]}
)
def list_trashed_orders(query: Query) -> Response:
    """List the orders in the trash.

    Filtered, sorted and paginated like the list of orders. `status` is the status that an order
    had, and that it has again once it is restored. The list is empty for a caller who may not read
    orders.
    """
    view = OrderView(query["selection"], TRASHED_ORDER)
    size = current_app.config["SHOP_PAGE_SIZE"]
    page = order_queries.list_trash(current_principal(), query, view.columns, size)
    return page_response("orders", view.rows, page)


@trash.route("/<id:order_id>/restore", methods=["POST"])
@trash.errors(
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_edit_order",
    "shop_api_coupon_not_applicable",
)
@trash.response(200, OrderResponse, example={"order": examples.ORDER})
def restore_order(order_id: int) -> Response:
    """Restore an order from the trash.

    The order has the status again that it had before, and takes the uses of its coupons again.
    """
    return json_response(_body(orders.restore_order(current_principal(), order_id)))


@trash.route("/trash", methods=["DELETE"])
@trash.errors("shop_api_user_cannot_delete_order")
@trash.arguments(TrashQuery, location="query")
@trash.response(200, DeletedResponse, example={"deleted": 1})
def empty_order_trash(query: Query) -> Response:
    """Empty the trash of orders.

    Permanently removes the orders that have been in the trash for `older_than_days` days.
    """
    deleted = orders.empty_trash(current_principal(), query["older_than_days"])
    return json_response({"deleted": deleted})
