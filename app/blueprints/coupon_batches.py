"""Generated coupons: batches with random codes (migration 3). Native only."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import COUPON_BATCH
from app.api.responses import json_response, page_response
from app.schemas.coupons.batch import (
    CouponBatchCreateRequest,
    CouponBatchDeleteResponse,
    CouponBatchList,
    CouponBatchListQuery,
    CouponBatchResponse,
)
from app.schemas.examples import coupons as examples
from app.schemas.queries import ReadQuery
from app.services.coupons import batch_queries as coupon_batch_queries
from app.services.coupons import batches as coupon_batches
from app.services.coupons.batch_queries import BatchQuery

blp = Blueprint(
    "coupon_batches",
    __name__,
    url_prefix="/coupons",
    description="Batches of generated coupons.",
    always_strict=True,
    extends_orders=True,
)
init_app = blp.init_app


@blp.route("/generate", methods=["POST"])
@blp.errors(
    "shop_api_missing_generate_data",
    "shop_api_user_cannot_create_coupon",
    "shop_api_invalid_coupon_type",
    "shop_api_pattern_too_small",
    "shop_api_cannot_create_coupon",
)
@blp.errors_as(400, "shop_api_invalid_campaign_id")
@blp.arguments(CouponBatchCreateRequest, example={"generate": examples.NEW_BATCH})
@idempotent
@blp.response(201, CouponBatchResponse, example={"batch": examples.BATCH})
def create_coupon_batch(body: Body) -> Response:
    """Generate coupons with random codes.

    Creates all coupons or none. `GET /coupons?filter[batch]=…` lists them. A pattern must have a
    million times as many codes as requested, so that codes cannot be guessed.
    """
    actor, data = current_principal(), body["generate"]
    batch = coupon_batches.generate(actor, data, data.get("count", 0))
    counts = {"unused": 0, "reserved": 0, "used": 0, "trashed": 0}
    counts["used" if data["coupon"]["usage_count"] else "unused"] = batch["count"]
    return json_response({"batch": COUPON_BATCH.record(batch | counts)}, 201)


@blp.route("/batches")
@blp.rights("shop_api_user_cannot_read_coupons")
@blp.arguments(CouponBatchListQuery, location="query")
@blp.response(200, CouponBatchList, headers=PAGE_HEADERS, example={"batches": [examples.BATCH]})
def list_coupon_batches(query: Query) -> Response:
    """List the batches of generated coupons.

    Returns the batches, newest first, with the current number of unused, reserved and used coupons.
    The list is empty for a caller who cannot read coupons.
    """
    serializer = COUPON_BATCH.only(query["selection"])
    page = coupon_batch_queries.list_batches(
        current_principal(), BatchQuery.of(query), serializer.columns
    )
    return page_response("batches", serializer.rows, page)


@blp.route("/batches/<id:batch_id>")
@with_etag
@blp.errors("shop_api_invalid_coupon_batch_id", "shop_api_user_cannot_read_coupons")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, CouponBatchResponse, example={"batch": examples.BATCH})
def get_coupon_batch(query: Query, batch_id: int) -> Response:
    """Retrieve a batch of generated coupons.

    Returns the batch with the current number of unused, reserved and used coupons.
    """
    serializer = COUPON_BATCH.only(query["selection"])
    row = coupon_batch_queries.get_batch(current_principal(), batch_id, serializer.columns)
    return json_response({"batch": serializer.row(row)})


@blp.route("/batches/<id:batch_id>", methods=["DELETE"])
@blp.errors("shop_api_invalid_coupon_batch_id", "shop_api_user_cannot_delete_coupon")
@blp.response(200, CouponBatchDeleteResponse, example={"trashed": 998})
def delete_coupon_batch(batch_id: int) -> Response:
    """Move the unused coupons of a batch to the trash.

    Used and reserved coupons stay published, and the batch stays listed. The request can be
    repeated.
    """
    trashed = coupon_batches.trash_unused(current_principal(), batch_id)
    return json_response({"trashed": trashed})
