"""Coupons: the endpoint table of the specification, section 4.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, current_app

from app.api.authentication import current_principal
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.openapi import PAGE_HEADERS
from app.api.request_parser import item_loader
from app.api.responses import bulk_response, json_response, page_response
from app.api.serializers import Serializer
from app.api.smorest import Api, Blueprint
from app.api.versions import current_api_version
from app.models import Coupon
from app.schemas import examples
from app.schemas.coupons import (
    CouponBulkRequest,
    CouponBulkResponse,
    CouponCreate,
    CouponCreateRequest,
    CouponList,
    CouponResponse,
    CouponSchema,
    CouponUpdate,
    CouponUpdateRequest,
)
from app.schemas.envelope import CountResponse, DeleteResponse
from app.schemas.queries import CouponCountQuery, CouponListQuery, DeleteQuery, ReadQuery
from app.services import bulk, coupons

Query = dict[str, Any]
Body = dict[str, Any]

COUPON = Serializer(CouponSchema, dict(Coupon.__table__.columns))

blp = Blueprint("coupons", __name__, url_prefix="/coupons", description="Discount coupons.")


def _body(coupon: Mapping[str, Any]) -> Body:
    return {"coupon": COUPON.record(coupon)}


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the plugin door's signature
    """Register the coupon routes."""
    api.register_blueprint(blp)


@blp.route("")
@blp.arguments(CouponListQuery, location="query")
@blp.response(200, CouponList, headers=PAGE_HEADERS, example={"coupons": [examples.COUPON]})
def list_coupons(query: Query) -> Response:
    """List coupons.

    The published coupons that match, newest first. What the caller may not read is left out of
    rows and totals alike.
    """
    view = COUPON.only(query["selection"])
    size = current_app.config["SHOP_PAGE_SIZE"]
    page = coupons.list_coupons(current_principal(), query, view.columns, size)
    return page_response("coupons", view.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_coupon_data",
    "shop_api_user_cannot_create_coupon",
    "shop_api_missing_coupon_code",
    "shop_api_coupon_code_already_exists",
    "shop_api_invalid_coupon_type",
    "shop_api_cannot_create_coupon",
)
@blp.arguments(CouponCreateRequest, example={"coupon": examples.NEW_COUPON})
@idempotent
@blp.response(201, CouponResponse, example={"coupon": examples.COUPON})
def create_coupon(body: Body) -> Response:
    """Create a coupon.

    It is published at once. Only `code` is required.
    """
    coupon = coupons.create_coupon(current_principal(), body["coupon"])
    return json_response(_body(coupon), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_coupons_count")
@blp.arguments(CouponCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_coupons(query: Query) -> Response:
    """Count coupons.

    How many published coupons match the filter.
    """
    return json_response({"count": coupons.count_coupons(current_principal(), query)})


@blp.route("/<id:coupon_id>")
@with_etag
@blp.errors("shop_api_invalid_coupon_id", "shop_api_user_cannot_read_coupon")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, CouponResponse, example={"coupon": examples.COUPON})
def get_coupon(query: Query, coupon_id: int) -> Response:
    """Read a coupon by its id.

    Only published coupons are found.
    """
    view = COUPON.only(query["selection"])
    return json_response(
        {"coupon": view.row(coupons.get_coupon(current_principal(), coupon_id, view.columns))}
    )


@blp.route("/<id:coupon_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_coupon_data",
    "shop_api_invalid_coupon_id",
    "shop_api_user_cannot_edit_coupon",
    "shop_api_precondition_failed",
    "shop_api_coupon_code_already_exists",
    "shop_api_invalid_coupon_type",
    "shop_api_cannot_update_coupon",
)
@blp.arguments(CouponUpdateRequest, example={"coupon": examples.COUPON_UPDATE})
@blp.response(200, CouponResponse, example={"coupon": examples.UPDATED_COUPON})
def update_coupon(body: Body, coupon_id: int) -> Response:
    """Edit a coupon.

    Only supplied fields change; `null` is not supplied. An edit that fails changes nothing.
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

    Moves it to the trash, where it is no longer readable and its code is free again; with
    `force=true`, removes it permanently.
    """
    force = query["force"] == "true"
    coupons.delete_coupon(
        current_principal(), coupon_id, force=force, precondition=precondition(_body)
    )
    if force:
        return json_response({"message": "Permanently deleted coupon"})
    return json_response({"message": "Deleted coupon"}, current_api_version().status("trashed"))


@blp.route("/code/<code:code>")
@with_etag
@blp.errors("shop_api_invalid_coupon_code", "shop_api_user_cannot_read_coupon")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, CouponResponse, example={"coupon": examples.COUPON})
def get_coupon_by_code(query: Query, code: str) -> Response:
    """Read a coupon by its code, in any case.

    Only published coupons are found. The code is normalised as on create; of several coupons with
    it, the newest is answered.
    """
    view = COUPON.only(query["selection"])
    return json_response(
        {"coupon": view.row(coupons.get_coupon_by_code(current_principal(), code, view.columns))}
    )


@blp.route("/bulk", methods=["POST", "PUT"])
@blp.status("bulk_created")
@blp.errors("shop_api_missing_coupons_data", "shop_api_coupons_request_entity_too_large")
@blp.arguments(CouponBulkRequest, example={"coupons": examples.COUPON_ITEMS})
@idempotent
@blp.response(200, CouponBulkResponse, example={"coupons": examples.COUPON_RESULTS})
def bulk_coupons(body: Body) -> Response:
    """Create and edit coupons in bulk.

    An item with an `id` is an edit, one without is a create. BulkResult stand in the order of the
    items; one that fails spoils only itself and says why in its result.
    """
    results = bulk.run(
        body["coupons"],
        limit=current_app.config["SHOP_BULK_LIMIT"],
        too_large="shop_api_coupons_request_entity_too_large",
        invalid_id="shop_api_invalid_coupon_id",
        load=item_loader(CouponCreate, CouponUpdate),
        save=lambda drafts: coupons.save_coupons(current_principal(), drafts),
        dump=COUPON.record,
        name=current_api_version().translate,
    )
    return bulk_response("coupons", results)
