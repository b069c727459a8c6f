"""Redemptions: reserve, confirm and release uses of coupons, natively only (redemptions 4)."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import REDEMPTION
from app.api.responses import json_response, page_response
from app.schemas.base import CountResponse
from app.schemas.examples import redemptions as examples
from app.schemas.queries import ReadQuery
from app.schemas.redemptions import (
    RedemptionCountQuery,
    RedemptionCreateRequest,
    RedemptionList,
    RedemptionListQuery,
    RedemptionResponse,
)
from app.services.redemptions import queries as redemption_queries
from app.services.redemptions import writes as redemptions
from app.services.redemptions.queries import RedemptionQuery

blp = Blueprint(
    "redemptions",
    __name__,
    url_prefix="/redemptions",
    description="Reserve, confirm and release uses of coupons.",
    extends_orders=True,
    reads_replicas=True,
)


def _response(redemption: Mapping[str, object], status: int = 200) -> Response:
    return json_response({"redemption": REDEMPTION.record(redemption)}, status)


init_app = blp.init_app


@blp.route("")
@blp.rights("shop_api_user_cannot_read_redemptions_count")
@blp.arguments(RedemptionListQuery, location="query")
@blp.response(
    200, RedemptionList, headers=PAGE_HEADERS, example={"redemptions": [examples.REDEMPTION]}
)
def list_redemptions(query: Query) -> Response:
    """List redemptions.

    Returns the redemptions that match, newest first. The list is empty if the user of the key
    cannot read orders.
    """
    serializer = REDEMPTION.only(query["selection"])
    page = redemption_queries.list_redemptions(
        current_principal(), RedemptionQuery.of(query), serializer.columns
    )
    return page_response("redemptions", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_redemption_data",
    "shop_api_user_cannot_create_redemption",
    "shop_api_missing_coupon_code",
    "shop_api_coupon_not_applicable",
)
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.arguments(RedemptionCreateRequest, example={"redemption": examples.NEW_REDEMPTION})
@idempotent
@blp.alt_response(200, schema=RedemptionResponse, example={"redemption": examples.REDEMPTION})
@blp.response(201, RedemptionResponse, example={"redemption": examples.REDEMPTION})
def create_redemption(body: Body) -> Response:
    """Reserve a use of a coupon.

    The use counts towards the limits of the coupon until it expires or is released. The same code
    and reference again return the same redemption, with status 200. The limits are exact,
    regardless of how many clients reserve at the same time. A `customer_id` requires a key for
    `customers` or `orders`.
    """
    redemption, created = redemptions.reserve_use(current_principal(), body["redemption"])
    return _response(redemption, 201 if created else 200)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_redemptions_count")
@blp.arguments(RedemptionCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_redemptions(query: Query) -> Response:
    """Count redemptions.

    Returns the number of redemptions that match.
    """
    return json_response(
        {
            "count": redemption_queries.count_redemptions(
                current_principal(), RedemptionQuery.of(query)
            )
        }
    )


@blp.route("/<id:redemption_id>")
@with_etag
@blp.errors("shop_api_invalid_redemption_id", "shop_api_user_cannot_read_redemption")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, RedemptionResponse, example={"redemption": examples.REDEMPTION})
def get_redemption(query: Query, redemption_id: int) -> Response:
    """Retrieve a redemption.

    An expired reservation is shown as released.
    """
    serializer = REDEMPTION.only(query["selection"])
    row = redemption_queries.get_redemption(current_principal(), redemption_id, serializer.columns)
    return json_response({"redemption": serializer.row(row)})


@blp.route("/<id:redemption_id>/confirm", methods=["POST"])
@blp.errors(
    "shop_api_invalid_redemption_id",
    "shop_api_user_cannot_edit_redemption",
    "shop_api_invalid_redemption_status",
    "shop_api_coupon_not_applicable",
)
@blp.response(200, RedemptionResponse, example={"redemption": examples.CONFIRMED_REDEMPTION})
def confirm_redemption(redemption_id: int) -> Response:
    """Confirm a reserved use.

    Adds one to `usage_count` of the coupon. Repeating the request changes nothing. An expired
    reservation is confirmed while the limits of the coupon allow another use.
    """
    return _response(redemptions.confirm_redemption(current_principal(), redemption_id))


@blp.route("/<id:redemption_id>/release", methods=["POST"])
@blp.errors(
    "shop_api_invalid_redemption_id",
    "shop_api_user_cannot_edit_redemption",
    "shop_api_invalid_redemption_status",
)
@blp.response(200, RedemptionResponse, example={"redemption": examples.RELEASED_REDEMPTION})
def release_redemption(redemption_id: int) -> Response:
    """Release a reserved or confirmed use.

    Another use is possible immediately. Repeating the request changes nothing.
    """
    return _response(redemptions.release_redemption(current_principal(), redemption_id))
