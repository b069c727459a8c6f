"""Webhooks of the legacy API, which have a form of their own (events 3)."""

from collections.abc import Sequence

from flask import Response
from sqlalchemy import select

from app.api import webhook_error_codes
from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.idempotency import idempotent
from app.api.openapi.document import PAGE_HEADERS
from app.api.responses import delete_response, json_response, page_response
from app.api.serializers import narrowed
from app.auth.encryption import decrypt
from app.auth.principals import Principal
from app.db.read_pool import fetch
from app.db.records import Columns, Row, row_dicts
from app.errors import ShopError
from app.models import API_KEYS, EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookFormat
from app.plugins.woocommerce.legacy.schemas import webhooks as schemas
from app.plugins.woocommerce.rest.lists import as_records
from app.plugins.woocommerce.webhook_forms import legacy_bodies
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.queries import ReadQuery
from app.schemas.webhooks import WebhookDeliveryListQuery
from app.services.common.erased import IS_HIDDEN
from app.services.events.erasure import hidden_data
from app.services.webhooks import queries as webhook_queries
from app.services.webhooks import writes as webhooks
from app.services.webhooks.queries import DeliveryQuery, WebhookQuery
from app.services.webhooks.topics import can_read

LEGACY_ONLY = (WebhookFormat.LEGACY,)

_WEBHOOK: Columns = tuple(WEBHOOKS.c)
_DELIVERY: Columns = tuple(WEBHOOK_DELIVERIES.c)

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
    actor = current_principal()
    page = webhook_queries.list_webhooks(actor, WebhookQuery.of(query), _WEBHOOK, LEGACY_ONLY)
    return page_response("webhooks", lambda rows: _webhooks(rows, query), page)


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
    data["secret"] = data["secret"] or _consumer_secret(actor)
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
        current_principal(), WebhookQuery.of(query), LEGACY_ONLY
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
    actor = current_principal()
    row = webhook_queries.get_webhook(actor, webhook_id, _WEBHOOK, LEGACY_ONLY)
    return json_response({"webhook": _webhooks([row], query)[0]})


@blp.route("/<id:webhook_id>", methods=["PUT"])
@blp.errors(*webhook_error_codes.UPDATE)
@blp.arguments(schemas.LegacyWebhookUpdateRequest)
@blp.response(200, schemas.LegacyWebhookResponse)
def update_webhook(body: Body, webhook_id: int) -> Response:
    """Update a webhook.

    A webhook that becomes active is sent a ping first.
    """
    webhook = webhooks.update_webhook(
        current_principal(), webhook_id, body["webhook"], forms=LEGACY_ONLY
    )
    return json_response({"webhook": schemas.legacy_webhook(webhook)})


@blp.route("/<id:webhook_id>", methods=["DELETE"])
@blp.errors(*webhook_error_codes.DELETE)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted webhook"})
def delete_webhook(webhook_id: int) -> Response:
    """Delete a webhook permanently.

    Its deliveries are deleted with it.
    """
    webhooks.delete_webhook(current_principal(), webhook_id, forms=LEGACY_ONLY)
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
    url, selection = _readable_url(actor, webhook_id), query["selection"]
    wanted = DeliveryQuery.of(query)
    page = webhook_queries.list_deliveries(actor, webhook_id, wanted, _DELIVERY, forms=LEGACY_ONLY)
    return page_response(
        "webhook_deliveries", lambda rows: narrowed(_deliveries(rows, url), selection), page
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
    url = _readable_url(actor, webhook_id)
    row = webhook_queries.get_delivery(actor, webhook_id, delivery_id, _DELIVERY, LEGACY_ONLY)
    (shown,) = _deliveries([row], url)
    return json_response({"webhook_delivery": narrowed(shown, query["selection"])})


def _readable_url(actor: Principal, webhook_id: int) -> str:
    """Return the URL of the receiver of a webhook whose deliveries the caller may read.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, or the key may not read
            the events of the webhook, which the deliveries contain.
    """
    columns = (WEBHOOKS.c.delivery_url, WEBHOOKS.c.topics)
    url, topics, _id = webhook_queries.get_webhook(actor, webhook_id, columns, LEGACY_ONLY)
    if not can_read(actor, topics):
        raise ShopError("shop_api_user_cannot_read_webhook")
    return str(url)


def _webhooks(rows: Sequence[Row], query: Query) -> list[object]:
    shown = map(schemas.legacy_webhook, as_records(_WEBHOOK, rows))
    return [narrowed(each, query["selection"]) for each in shown]


def _deliveries(rows: Sequence[Row], url: str) -> list[Body]:
    """Return deliveries, each with the body of its request if the event is retained."""
    deliveries = as_records(_DELIVERY, rows)
    ids = [each["event_id"] for each in deliveries if each["event_id"]]
    stored = select(*EVENTS.c, IS_HIDDEN.label("is_hidden")).where(EVENTS.c.id.in_(ids))
    found: list[Body] = row_dicts(fetch(stored)) if ids else []
    events = [
        row | hidden_data(row["data"], row["changes"]) if row["is_hidden"] else row for row in found
    ]
    sent = zip(events, legacy_bodies(events), strict=True)
    bodies = {event["id"]: body.decode() for event, body in sent}
    return [
        schemas.legacy_delivery(each, url, bodies.get(each["event_id"], "")) for each in deliveries
    ]


def _consumer_secret(actor: Principal) -> str | None:
    """Return the consumer secret of the key of a request, or None if it is not stored."""
    ((encrypted,),) = fetch(
        select(API_KEYS.c.consumer_secret_encrypted).where(API_KEYS.c.id == actor.key_id)
    )
    return decrypt(encrypted) if encrypted else None
