"""Webhooks of the legacy API, which have a form of their own (events 3)."""

from typing import Any

from flask import Response

from app.api import webhook_error_codes
from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.responses import delete_response, json_response, page_response
from app.api.serializers import narrowed
from app.models.webhook import WebhookFormat
from app.plugins.woocommerce.legacy import stored_webhooks as legacy_webhooks
from app.plugins.woocommerce.legacy.schemas import webhooks as schemas
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.queries import ReadQuery
from app.schemas.webhooks import WebhookDeliveryListQuery
from app.services.webhooks import queries as webhook_queries
from app.services.webhooks import writes as webhooks
from app.services.webhooks.queries import DeliveryQuery, WebhookQuery

blp = Blueprint(
    "webhooks",
    __name__,
    url_prefix="/webhooks",
    description="Send events to the URLs of other systems.",
)


@blp.route("")
@blp.arguments(schemas.LegacyWebhookListQuery, location="query")
@blp.response(200, schemas.LegacyWebhookList, headers=PAGE_HEADERS)
def list_webhooks(query: Query) -> Response:
    """List webhooks.

    Returns the webhooks that match, newest first, without those that were created in the native
    API.
    """
    page = legacy_webhooks.list_legacy_webhooks(current_principal(), WebhookQuery.of(query))
    return page_response(
        "webhooks",
        lambda rows: [_selected(legacy_webhooks.webhook_record(row), query) for row in rows],
        page,
    )


@blp.route("", methods=["POST"])
@blp.errors(*webhook_error_codes.CREATE)
@blp.arguments(schemas.LegacyWebhookCreateRequest)
@idempotent
@blp.response(201, schemas.LegacyWebhookResponse)
def create_webhook(body: Body) -> Response:
    """Create a webhook.

    `topic` and `delivery_url` are required. Deliveries have the form of the legacy API.
    """
    actor, data = current_principal(), body["webhook"]
    # It signs with the consumer secret of its creator, unless it has another one (events 3).
    data["secret"] = data["secret"] or legacy_webhooks.consumer_secret(actor)
    webhook = webhooks.create_webhook(actor, data, WebhookFormat.LEGACY)
    return json_response({"webhook": schemas.legacy_webhook(webhook)}, 201)


@blp.route("/count")
@blp.errors(*webhook_error_codes.COUNT)
@blp.arguments(schemas.LegacyWebhookCountQuery, location="query")
@blp.response(200, CountResponse)
def count_webhooks(query: Query) -> Response:
    """Count webhooks.

    Returns the number of webhooks that match the filter.
    """
    number = webhook_queries.count_webhooks(
        current_principal(), WebhookQuery.of(query), legacy_webhooks.LEGACY_ONLY
    )
    return json_response({"count": number})


@blp.route("/<id:webhook_id>")
@blp.errors(*webhook_error_codes.GET)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.LegacyWebhookResponse)
def get_webhook(query: Query, webhook_id: int) -> Response:
    """Retrieve a webhook.

    The secret is never returned.
    """
    webhook = legacy_webhooks.get_legacy_webhook(current_principal(), webhook_id)
    return json_response({"webhook": _selected(webhook, query)})


@blp.route("/<id:webhook_id>", methods=["PUT"])
@blp.errors(*webhook_error_codes.UPDATE)
@blp.arguments(schemas.LegacyWebhookUpdateRequest)
@blp.response(200, schemas.LegacyWebhookResponse)
def update_webhook(body: Body, webhook_id: int) -> Response:
    """Update a webhook.

    A webhook that becomes active is sent a ping first.
    """
    webhook = webhooks.update_webhook(
        current_principal(), webhook_id, body["webhook"], forms=legacy_webhooks.LEGACY_ONLY
    )
    return json_response({"webhook": schemas.legacy_webhook(webhook)})


@blp.route("/<id:webhook_id>", methods=["DELETE"])
@blp.errors(*webhook_error_codes.DELETE)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted webhook"})
def delete_webhook(webhook_id: int) -> Response:
    """Delete a webhook permanently.

    Its deliveries are deleted with it.
    """
    webhooks.delete_webhook(current_principal(), webhook_id, forms=legacy_webhooks.LEGACY_ONLY)
    return delete_response("webhook")


@blp.route("/<id:webhook_id>/deliveries")
@blp.errors(*webhook_error_codes.GET)
@blp.arguments(WebhookDeliveryListQuery, location="query")
@blp.response(200, schemas.LegacyWebhookDeliveryList, headers=PAGE_HEADERS)
def list_webhook_deliveries(query: Query, webhook_id: int) -> Response:
    """List the deliveries of a webhook.

    Returns the deliveries with their last attempt, newest first.
    """
    actor = current_principal()
    url = legacy_webhooks.get_legacy_webhook(actor, webhook_id)["delivery_url"]
    page = legacy_webhooks.list_legacy_deliveries(actor, webhook_id, DeliveryQuery.of(query))
    return page_response(
        "webhook_deliveries",
        lambda rows: [
            narrowed(each, query["selection"])
            for each in _deliveries([legacy_webhooks.delivery_record(row) for row in rows], url)
        ],
        page,
    )


@blp.route("/<id:webhook_id>/deliveries/<id:delivery_id>")
@blp.errors(*webhook_error_codes.GET_DELIVERY)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.LegacyWebhookDeliveryResponse)
def get_webhook_delivery(query: Query, webhook_id: int, delivery_id: int) -> Response:
    """Retrieve a delivery.

    Returns the delivery with its last attempt.
    """
    actor = current_principal()
    url = legacy_webhooks.get_legacy_webhook(actor, webhook_id)["delivery_url"]
    delivery = legacy_webhooks.get_legacy_delivery(actor, webhook_id, delivery_id)
    (shown,) = _deliveries([delivery], url)
    return json_response({"webhook_delivery": narrowed(shown, query["selection"])})


def _selected(webhook: Body, query: Query) -> Any:
    return narrowed(schemas.legacy_webhook(webhook), query["selection"])


def _deliveries(deliveries: list[Body], url: str) -> list[Body]:
    bodies = legacy_webhooks.request_bodies(deliveries)
    return [
        schemas.legacy_delivery(delivery, url, bodies.get(delivery["event_id"], ""))
        for delivery in deliveries
    ]
