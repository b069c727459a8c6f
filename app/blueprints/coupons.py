"""Coupons: the endpoint table of the specification, section 4.1."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.bulk_requests import bulk_response
from app.api.dialect import current_dialect
from app.api.etags import precondition, record_response, with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import coupons as coupons_of
from app.api.responses import delete_response, json_response, page_response
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.coupons import coupon as schemas
from app.schemas.examples import coupons as examples
from app.schemas.queries import CouponCountQuery, CouponListQuery, DeleteQuery, RecordQuery
from app.services.coupons import queries as coupon_queries
from app.services.coupons import writes as coupons
from app.services.coupons.queries import CouponQuery

blp = Blueprint(
    "coupons",
    __name__,
    url_prefix="/coupons",
    description="Create, find, update and delete discount coupons.",
    extends_orders=True,
    reads_replicas=True,
)


def _body(coupon: Mapping[str, object]) -> Body:
    return {"coupon": coupons_of().record(coupon)}


init_app = blp.init_app


@blp.route("")
@blp.rights("shop_api_user_cannot_read_coupons")
@blp.arguments(CouponListQuery, location="query")
@blp.response(200, schemas.CouponList, headers=PAGE_HEADERS, example={"coupons": [examples.COUPON]})
def list_coupons(query: Query) -> Response:
    """List coupons.

    Returns the published coupons that match, newest first. Coupons that the user of the key cannot
    read are neither listed nor counted.
    """
    serializer = coupons_of(query)
    page = coupon_queries.list_coupons(
        current_principal(), CouponQuery.of(query), serializer.columns
    )
    return page_response("coupons", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_coupon_data",
    "shop_api_user_cannot_create_coupon",
    "shop_api_missing_coupon_code",
    "shop_api_coupon_code_already_exists",
    "shop_api_invalid_coupon_type",
    "shop_api_cannot_create_coupon",
    "shop_api_invalid_metadata",
)
@blp.errors_as(400, "shop_api_invalid_campaign_id")
@blp.arguments(schemas.CouponCreateRequest, example={"coupon": examples.NEW_COUPON})
@idempotent
@blp.response(201, schemas.CouponResponse, example={"coupon": examples.COUPON})
def create_coupon(body: Body) -> Response:
    """Create a coupon.

    The coupon is published immediately. Only `code` is required.
    """
    coupon = coupons.create_coupon(current_principal(), body["coupon"])
    return json_response(_body(coupon), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_coupons_count")
@blp.arguments(CouponCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_coupons(query: Query) -> Response:
    """Count coupons.

    Returns the number of published coupons that match.
    """
    number = coupon_queries.count_coupons(current_principal(), CouponQuery.of(query))
    return json_response(number.body)


@blp.route("/<id:coupon_id>")
@with_etag
@blp.errors("shop_api_invalid_coupon_id", "shop_api_user_cannot_read_coupon")
@blp.arguments(RecordQuery, location="query")
@blp.response(200, schemas.CouponResponse, example={"coupon": examples.COUPON})
def get_coupon(query: Query, coupon_id: int) -> Response:
    """Retrieve a coupon.

    Only published coupons are found.
    """
    serializer = coupons_of(query)
    row = coupon_queries.get_coupon(current_principal(), coupon_id, serializer.columns)
    return record_response("coupon", serializer, row)


@blp.route("/<id:coupon_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_coupon_data",
    "shop_api_invalid_coupon_id",
    "shop_api_user_cannot_edit_coupon",
    "shop_api_precondition_failed",
    "shop_api_coupon_code_already_exists",
    "shop_api_invalid_coupon_type",
    "shop_api_cannot_update_coupon",
    "shop_api_invalid_metadata",
)
@blp.errors_as(400, "shop_api_invalid_campaign_id")
@blp.arguments(schemas.CouponUpdateRequest, example={"coupon": examples.COUPON_UPDATE})
@blp.response(200, schemas.CouponResponse, example={"coupon": examples.UPDATED_COUPON})
def update_coupon(body: Body, coupon_id: int) -> Response:
    """Update a coupon.

    Fields that are absent keep their values. A request that fails changes nothing.
    """
    coupon = coupons.update_coupon(
        current_principal(), coupon_id, body["coupon"], precondition(_body)
    )
    return json_response(_body(coupon))


@blp.route("/<id:coupon_id>", methods=["DELETE"])
@blp.status("trashed")
@blp.errors(
    "shop_api_invalid_coupon_id",
    "shop_api_user_cannot_delete_coupon",
    "shop_api_precondition_failed",
)
@blp.arguments(DeleteQuery, location="query")
@blp.response(200, DeleteResponse, example={"message": "Deleted coupon"})
def delete_coupon(query: Query, coupon_id: int) -> Response:
    """Delete a coupon.

    Moves the coupon to the trash, where it cannot be read and does not reserve its code. With
    `force=true`, the coupon is deleted permanently.
    """
    force = query["force"] == "true"
    coupons.delete_coupon(
        current_principal(),
        coupon_id,
        force=force,
        trashed_too=current_dialect().removes_trashed,
        precondition=precondition(_body),
    )
    return delete_response("coupon", permanently=force)


@blp.route("/code/<code:code>")
@with_etag
@blp.errors("shop_api_invalid_coupon_code", "shop_api_user_cannot_read_coupon")
@blp.arguments(RecordQuery, location="query")
@blp.response(200, schemas.CouponResponse, example={"coupon": examples.COUPON})
def get_coupon_by_code(query: Query, code: str) -> Response:
    """Retrieve a coupon by its code.

    Only published coupons are found. The code is normalized as on create, so its letter case does
    not matter.
    """
    serializer = coupons_of(query)
    row = coupon_queries.get_coupon_by_code(current_principal(), code, serializer.columns)
    return record_response("coupon", serializer, row)


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.rights("shop_api_user_cannot_create_coupon", "shop_api_user_cannot_edit_coupon")
@blp.status("bulk_created")
@blp.errors("shop_api_missing_coupons_data", "shop_api_coupons_request_entity_too_large")
@blp.arguments(schemas.CouponBulkRequest, example={"coupons": examples.COUPON_ITEMS})
@idempotent
@blp.response(200, schemas.CouponBulkResponse, example={"coupons": examples.COUPON_RESULTS})
def bulk_coupons(body: Body) -> Response:
    """Create and update coupons in bulk.

    An item with an `id` updates that coupon; an item without an `id` creates one. The results are
    in the order of the items. An item that fails changes nothing and does not affect the others.
    """
    return bulk_response(
        "coupon",
        body["coupons"],
        create=schemas.CouponCreate,
        update=schemas.CouponUpdate,
        save=coupons.save_coupons,
        dump=coupons_of().records,
    )
