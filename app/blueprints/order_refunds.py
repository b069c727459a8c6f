"""Refunds: the endpoint table of records 2."""

from collections.abc import Mapping

from flask import Flask, Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, record_response, with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import RefundSerializer
from app.api.responses import delete_response, json_response, page_response
from app.api.smorest import Api
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.examples import orders as examples
from app.schemas.orders.refund import (
    OrderRefundCreateRequest,
    OrderRefundList,
    OrderRefundResponse,
    OrderRefundUpdateRequest,
    RefundCountQuery,
    RefundListQuery,
)
from app.schemas.queries import RecordQuery
from app.services.common.pagination import Page
from app.services.orders import refunds
from app.services.orders.refunds import RefundQuery

blp = Blueprint(
    "order_refunds",
    __name__,
    url_prefix="/orders",
    description="Create, list, update and delete the refunds of an order.",
    reads_replicas=True,
)
all_refunds = Blueprint(
    "refunds",
    __name__,
    url_prefix="/refunds",
    description="List and count the refunds of all orders.",
    resource="orders",
    reads_replicas=True,
)


def init_app(_app: Flask, api: Api) -> None:
    """Register the routes of refunds."""
    api.register_blueprint(blp)
    api.register_blueprint(all_refunds)


def _body(refund: Mapping[str, object]) -> Body:
    return {"order_refund": RefundSerializer().record(refund)}


@blp.route("/<id:order_id>/refunds")
@blp.errors("shop_api_invalid_order_id", "shop_api_user_cannot_read_order_refunds")
@blp.arguments(RecordQuery, location="query")
@blp.response(200, OrderRefundList, example={"order_refunds": [examples.ORDER_REFUND]})
def list_order_refunds(query: Query, order_id: int) -> Response:
    """List the refunds of an order.

    Returns all refunds, oldest first.
    """
    serializer = RefundSerializer(query)
    rows = refunds.list_refunds(current_principal(), order_id, serializer.columns)
    return page_response("order_refunds", serializer.rows, Page(rows, None))


@blp.route("/<id:order_id>/refunds", methods=["POST"])
@blp.errors(
    "shop_api_missing_order_refund_data",
    "shop_api_cannot_update_order",
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_create_order_refund",
    "shop_api_invalid_order_refund",
    "shop_api_invalid_metadata",
)
@blp.arguments(OrderRefundCreateRequest, example={"order_refund": examples.NEW_ORDER_REFUND})
@idempotent
@blp.response(201, OrderRefundResponse, example={"order_refund": examples.ORDER_REFUND})
def create_order_refund(body: Body, order_id: int) -> Response:
    """Refund an order, or a part of it.

    Records an amount, items of the order, or both. The refunds of an order never exceed its total,
    regardless of how many clients refund at the same time. When nothing is left, the order becomes
    `refunded`. No payment provider is called.
    """
    refund = refunds.create_refund(current_principal(), order_id, body["order_refund"])
    return json_response(_body(refund), 201)


@blp.route("/<id:order_id>/refunds/<id:refund_id>")
@with_etag
@blp.errors(
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_refund_id",
    "shop_api_user_cannot_read_order_refunds",
)
@blp.arguments(RecordQuery, location="query")
@blp.response(200, OrderRefundResponse, example={"order_refund": examples.ORDER_REFUND})
def get_order_refund(query: Query, order_id: int, refund_id: int) -> Response:
    """Retrieve a refund.

    The refund must belong to the order.
    """
    serializer = RefundSerializer(query)
    row = refunds.get_refund(current_principal(), order_id, refund_id, serializer.columns)
    return record_response("order_refund", serializer, row)


@blp.route("/<id:order_id>/refunds/<id:refund_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_order_refund_data",
    "shop_api_cannot_update_order",
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_refund_id",
    "shop_api_user_cannot_edit_order_refund",
    "shop_api_precondition_failed",
    "shop_api_invalid_metadata",
)
@blp.arguments(OrderRefundUpdateRequest, example={"order_refund": examples.ORDER_REFUND_UPDATE})
@blp.response(200, OrderRefundResponse, example={"order_refund": examples.UPDATED_ORDER_REFUND})
def update_order_refund(body: Body, order_id: int, refund_id: int) -> Response:
    """Update a refund.

    The reason and the metadata can be updated; amounts and items are ignored.
    """
    refund = refunds.update_refund(
        current_principal(), order_id, refund_id, body["order_refund"], precondition(_body)
    )
    return json_response(_body(refund))


@blp.route("/<id:order_id>/refunds/<id:refund_id>", methods=["DELETE"])
@blp.errors(
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_refund_id",
    "shop_api_user_cannot_delete_order_refund",
    "shop_api_precondition_failed",
)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted order_refund"})
def delete_order_refund(order_id: int, refund_id: int) -> Response:
    """Delete a refund permanently.

    The status of the order does not change.
    """
    refunds.delete_refund(current_principal(), order_id, refund_id, precondition(_body))
    return delete_response("order_refund")


@all_refunds.route("")
@all_refunds.rights("shop_api_user_cannot_read_order_refunds_count")
@blp.arguments(RefundListQuery, location="query")
@blp.response(
    200, OrderRefundList, headers=PAGE_HEADERS, example={"order_refunds": [examples.ORDER_REFUND]}
)
def list_refunds(query: Query) -> Response:
    """List the refunds of all orders.

    Returns the refunds that match, newest first. The list is empty if the user of the key cannot
    read orders.
    """
    serializer = RefundSerializer(query)
    page = refunds.list_all_refunds(current_principal(), RefundQuery.of(query), serializer.columns)
    return page_response("order_refunds", serializer.rows, page)


@all_refunds.route("/count")
@blp.errors("shop_api_user_cannot_read_order_refunds_count")
@blp.arguments(RefundCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_refunds(query: Query) -> Response:
    """Count the refunds of all orders.

    Returns the number of refunds that match.
    """
    return json_response(
        {"count": refunds.count_all_refunds(current_principal(), RefundQuery.of(query))}
    )
