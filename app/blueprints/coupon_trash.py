"""The trash of coupons (orders 4). Native only: the legacy API has no such routes."""

from __future__ import annotations

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import TRASHED_COUPON
from app.api.representations import coupons as coupons_of
from app.api.responses import json_response, page_response
from app.schemas.base import EmptyTrashResponse
from app.schemas.coupons.coupon import CouponResponse, TrashedCouponList
from app.schemas.examples import coupons as examples
from app.schemas.queries import CouponListQuery, TrashQuery
from app.services.coupons import trash as coupon_trash

blp = Blueprint(
    "coupon_trash",
    __name__,
    url_prefix="/coupons",
    description="List, restore and permanently delete coupons in the trash.",
    reads_replicas=True,
)
init_app = blp.init_app


@blp.route("/trash")
@blp.arguments(CouponListQuery, location="query")
@blp.response(
    200, TrashedCouponList, headers=PAGE_HEADERS, example={"coupons": [examples.TRASHED_COUPON]}
)
def list_trashed_coupons(query: Query) -> Response:
    """List the coupons in the trash.

    Returns a page, filtered like the list of coupons. The list is empty if the user of the key
    cannot read coupons.

    `filter[metadata][KEY]=VALUE` finds records by their metadata. Up to five such filters must all
    match.
    """
    serializer = coupons_of(query, TRASHED_COUPON)
    page = coupon_trash.list_trash(current_principal(), query, serializer.columns)
    return page_response("coupons", serializer.rows, page)


@blp.route("/trash", methods=["DELETE"])
@blp.errors("shop_api_user_cannot_delete_coupon")
@blp.arguments(TrashQuery, location="query")
@blp.response(200, EmptyTrashResponse, example={"deleted": 1})
def empty_coupon_trash(query: Query) -> Response:
    """Empty the trash of coupons.

    Permanently deletes the coupons that have been in the trash for at least `older_than_days`.
    """
    deleted = coupon_trash.empty_trash(current_principal(), query["older_than_days"])
    return json_response({"deleted": deleted})


@blp.route("/<id:coupon_id>/restore", methods=["POST"])
@blp.errors(
    "shop_api_invalid_coupon_id",
    "shop_api_user_cannot_edit_coupon",
    "shop_api_coupon_code_already_exists",
)
@blp.response(200, CouponResponse, example={"coupon": examples.COUPON})
def restore_coupon(coupon_id: int) -> Response:
    """Restore a coupon from the trash.

    The coupon is published again. Its code must not have been taken in the meantime.
    """
    coupon = coupon_trash.restore(current_principal(), coupon_id)
    return json_response({"coupon": coupons_of().record(coupon)})
