"""Campaigns: common conditions and limits of coupons, natively only (campaigns 2)."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import CAMPAIGN
from app.api.responses import delete_response, json_response, page_response
from app.schemas import campaigns as schemas
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.examples import campaigns as examples
from app.schemas.queries import ReadQuery
from app.services.campaigns import queries as campaign_queries
from app.services.campaigns import writes as campaigns
from app.services.campaigns.queries import CampaignQuery

blp = Blueprint(
    "campaigns",
    __name__,
    url_prefix="/campaigns",
    description="Common conditions, limits and a budget of many coupons.",
    always_strict=True,
    resource="coupons",
)


def _body(campaign: Mapping[str, object]) -> Body:
    return {"campaign": CAMPAIGN.record(campaign)}


init_app = blp.init_app


@blp.route("")
@blp.rights("shop_api_user_cannot_read_campaigns_count")
@blp.arguments(schemas.CampaignListQuery, location="query")
@blp.response(
    200, schemas.CampaignList, headers=PAGE_HEADERS, example={"campaigns": [examples.CAMPAIGN]}
)
def list_campaigns(query: Query) -> Response:
    """List campaigns.

    Returns the campaigns that match, newest first. The list is empty if the user of the key cannot
    read coupons. `uses` and `discount` are computed only if the response contains them.
    """
    serializer = CAMPAIGN.only(query["selection"])
    page = campaign_queries.list_campaigns(
        current_principal(), CampaignQuery.of(query), serializer.columns
    )
    return page_response("campaigns", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(
    "shop_api_missing_campaign_data",
    "shop_api_user_cannot_create_campaign",
    "shop_api_missing_campaign_name",
)
@blp.arguments(schemas.CampaignCreateRequest, example={"campaign": examples.NEW_CAMPAIGN})
@idempotent
@blp.response(201, schemas.CampaignResponse, example={"campaign": examples.CAMPAIGN})
def create_campaign(body: Body) -> Response:
    """Create a campaign.

    Only `name` is required. A coupon joins the campaign with its `campaign_id`.
    """
    campaign = campaigns.create_campaign(current_principal(), body["campaign"])
    return json_response(_body(campaign), 201)


@blp.route("/count")
@blp.errors("shop_api_user_cannot_read_campaigns_count")
@blp.arguments(schemas.CampaignCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_campaigns(query: Query) -> Response:
    """Count campaigns.

    Returns the number of campaigns that match.
    """
    return json_response(
        {"count": campaign_queries.count_campaigns(current_principal(), CampaignQuery.of(query))}
    )


@blp.route("/<id:campaign_id>")
@with_etag
@blp.errors("shop_api_invalid_campaign_id", "shop_api_user_cannot_read_campaign")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.CampaignResponse, example={"campaign": examples.CAMPAIGN})
def get_campaign(query: Query, campaign_id: int) -> Response:
    """Retrieve a campaign.

    Its entity tag changes with each use.
    """
    serializer = CAMPAIGN.only(query["selection"])
    row = campaign_queries.get_campaign(current_principal(), campaign_id, serializer.columns)
    return json_response({"campaign": serializer.row(row)})


@blp.route("/<id:campaign_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_campaign_data",
    "shop_api_invalid_campaign_id",
    "shop_api_user_cannot_edit_campaign",
    "shop_api_precondition_failed",
    "shop_api_missing_campaign_name",
)
@blp.arguments(schemas.CampaignUpdateRequest, example={"campaign": examples.CAMPAIGN_UPDATE})
@blp.response(200, schemas.CampaignResponse, example={"campaign": examples.UPDATED_CAMPAIGN})
def update_campaign(body: Body, campaign_id: int) -> Response:
    """Update a campaign.

    Fields that are absent keep their values. Limits below the current use are accepted: existing
    uses stay, and new ones are rejected.
    """
    campaign = campaigns.update_campaign(
        current_principal(), campaign_id, body["campaign"], precondition(_body)
    )
    return json_response(_body(campaign))


@blp.route("/<id:campaign_id>", methods=["DELETE"])
@blp.errors(
    "shop_api_invalid_campaign_id",
    "shop_api_user_cannot_delete_campaign",
    "shop_api_precondition_failed",
    "shop_api_cannot_delete_campaign",
)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted campaign"})
def delete_campaign(campaign_id: int) -> Response:
    """Delete a campaign permanently.

    A campaign with a coupon, also in the trash, or with a live use cannot be deleted.
    """
    campaigns.delete_campaign(current_principal(), campaign_id, precondition(_body))
    return delete_response("campaign")
