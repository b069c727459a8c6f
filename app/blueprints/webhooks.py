"""Webhooks and their deliveries (events 2)."""

from collections.abc import Mapping

from flask import Response

from app.api import webhook_error_codes
from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent_with_secret
from app.api.openapi.document import PAGE_HEADERS
from app.api.representations import WEBHOOK, WEBHOOK_DELIVERY
from app.api.responses import delete_response, json_response, page_response
from app.schemas import webhooks as schemas
from app.schemas.base import CountResponse, DeleteResponse
from app.schemas.examples import webhooks as examples
from app.schemas.queries import ReadQuery
from app.services.webhooks import pings as webhook_pings
from app.services.webhooks import queries as webhook_queries
from app.services.webhooks import writes as webhooks
from app.services.webhooks.deliveries import collection
from app.services.webhooks.queries import DeliveryQuery, WebhookQuery

blp = Blueprint(
    "webhooks",
    __name__,
    url_prefix="/webhooks",
    description="Send events to the URLs of other systems.",
)


def _body(webhook: Mapping[str, object]) -> Body:
    """Return the body of a response, with the secret if it was generated."""
    secret = {name: webhook[name] for name in (webhooks.SECRET,) if name in webhook}
    return {"webhook": WEBHOOK.record(webhook) | secret}


def _require_again(response: Body) -> None:
    webhooks.require_creator(current_principal(), response["webhook"]["topics"])


init_app = blp.init_app


@blp.route("")
@blp.rights("shop_api_user_cannot_read_webhooks_count")
@blp.arguments(schemas.WebhookListQuery, location="query")
@blp.response(
    200, schemas.WebhookList, headers=PAGE_HEADERS, example={"webhooks": [examples.WEBHOOK]}
)
def list_webhooks(query: Query) -> Response:
    """List webhooks.

    Returns the webhooks that match, newest first. The list is empty for a caller who cannot manage
    webhooks.
    """
    serializer = WEBHOOK.only(query["selection"])
    page = webhook_queries.list_webhooks(
        current_principal(), WebhookQuery.of(query), serializer.columns
    )
    return page_response("webhooks", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.errors(*webhook_error_codes.CREATE)
@blp.arguments(schemas.WebhookCreateRequest, example={"webhook": examples.NEW_WEBHOOK})
@idempotent_with_secret(_require_again)
@blp.response(
    201, schemas.WebhookWithSecretResponse, example={"webhook": examples.WEBHOOK_WITH_SECRET}
)
def create_webhook(body: Body) -> Response:
    """Create a webhook.

    `topics` and `delivery_url` are required. Without `secret`, a secret is generated and returned
    in this response only, and again for the same `Idempotency-Key`. The webhook receives the events
    from now on. A key that is limited to resources needs the resource of each topic, or `events`.
    """
    return json_response(_body(webhooks.create_webhook(current_principal(), body["webhook"])), 201)


@blp.route("/count")
@blp.errors(*webhook_error_codes.COUNT)
@blp.arguments(schemas.WebhookCountQuery, location="query")
@blp.response(200, CountResponse, example={"count": 1})
def count_webhooks(query: Query) -> Response:
    """Count webhooks.

    Returns the number of webhooks that match the filter.
    """
    return json_response(
        {"count": webhook_queries.count_webhooks(current_principal(), WebhookQuery.of(query))}
    )


@blp.route("/<id:webhook_id>")
@with_etag
@blp.errors(*webhook_error_codes.GET)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.WebhookResponse, example={"webhook": examples.WEBHOOK})
def get_webhook(query: Query, webhook_id: int) -> Response:
    """Retrieve a webhook.

    The secret is never returned.
    """
    serializer = WEBHOOK.only(query["selection"])
    row = webhook_queries.get_webhook(current_principal(), webhook_id, serializer.columns)
    return json_response({"webhook": serializer.row(row)})


@blp.route("/<id:webhook_id>", methods=["PUT"])
@blp.errors(*webhook_error_codes.UPDATE, "shop_api_precondition_failed")
@blp.arguments(schemas.WebhookUpdateRequest, example={"webhook": examples.WEBHOOK_UPDATE})
@blp.response(200, schemas.WebhookResponse, example={"webhook": examples.UPDATED_WEBHOOK})
def update_webhook(body: Body, webhook_id: int) -> Response:
    """Update a webhook.

    A webhook that becomes active receives the events from then on. Replay the events that it has
    missed. A paused webhook keeps its pending deliveries. Those of a disabled webhook fail.
    """
    webhook = webhooks.update_webhook(
        current_principal(), webhook_id, body["webhook"], precondition(_body)
    )
    return json_response(_body(webhook))


@blp.route("/<id:webhook_id>", methods=["DELETE"])
@blp.errors(*webhook_error_codes.DELETE, "shop_api_precondition_failed")
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted webhook"})
def delete_webhook(webhook_id: int) -> Response:
    """Delete a webhook permanently.

    Its deliveries are deleted with it.
    """
    webhooks.delete_webhook(current_principal(), webhook_id, precondition(_body))
    return delete_response("webhook")


@blp.route("/<id:webhook_id>/rotate-secret", methods=["POST"])
@blp.errors(*webhook_error_codes.EDIT, "shop_api_insufficient_key_rights")
@idempotent_with_secret(_require_again)
@blp.response(
    200, schemas.WebhookWithSecretResponse, example={"webhook": examples.WEBHOOK_WITH_SECRET}
)
def rotate_webhook_secret(webhook_id: int) -> Response:
    """Rotate the secret of a webhook.

    The new secret is returned in this response only, and again for the same `Idempotency-Key`. For
    24 hours, deliveries are signed with the old secret, too.
    """
    return json_response(_body(webhooks.rotate_secret(current_principal(), webhook_id)))


@blp.route("/<id:webhook_id>/ping", methods=["POST"])
@blp.errors(*webhook_error_codes.EDIT, "shop_api_webhook_not_active")
@blp.response(200, schemas.WebhookPingResponse, example={"ping": examples.PING})
def ping_webhook(webhook_id: int) -> Response:
    """Send a ping to a webhook.

    Sends an event of type `ping` immediately, regardless of the status of the webhook, and returns
    the status of the response. If the secret cannot be read, because `SECRET_KEY` has changed,
    nothing is sent and the webhook is disabled.
    """
    return json_response({"ping": webhook_pings.ping(current_principal(), webhook_id)})


@blp.route("/<id:webhook_id>/replay", methods=["POST"])
@blp.errors(*webhook_error_codes.RESEND)
@blp.arguments(schemas.WebhookReplayRequest, example={"after": 0})
@blp.response(200, schemas.WebhookReplayResponse, example={"replay": {"after": 0, "through": 0}})
def replay_webhook(body: Body, webhook_id: int) -> Response:
    """Send events to a webhook again.

    All retained events with a higher ID than `after` that match the topics are sent, in their
    order, with the same `webhook-id` as before.
    """
    replay = collection.replay(current_principal(), webhook_id, body["after"])
    return json_response({"replay": replay})


@blp.route("/<id:webhook_id>/deliveries")
@blp.errors(*webhook_error_codes.GET)
@blp.arguments(schemas.WebhookDeliveryListQuery, location="query")
@blp.response(
    200, schemas.WebhookDeliveryList, headers=PAGE_HEADERS, example={"webhook_deliveries": []}
)
def list_webhook_deliveries(query: Query, webhook_id: int) -> Response:
    """List the deliveries of a webhook.

    Returns the deliveries with their attempts, newest first. A delivery is removed together with
    its event.
    """
    serializer = WEBHOOK_DELIVERY.only(query["selection"])
    page = webhook_queries.list_deliveries(
        current_principal(), webhook_id, DeliveryQuery.of(query), serializer.columns
    )
    return page_response("webhook_deliveries", serializer.rows, page)


@blp.route("/<id:webhook_id>/deliveries/<id:delivery_id>")
@with_etag
@blp.errors(*webhook_error_codes.GET_DELIVERY)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.WebhookDeliveryResponse, example={"webhook_delivery": examples.DELIVERY})
def get_webhook_delivery(query: Query, webhook_id: int, delivery_id: int) -> Response:
    """Retrieve a delivery.

    Returns the delivery with its attempts, the time of the next attempt, and the start of the last
    response.
    """
    serializer = WEBHOOK_DELIVERY.only(query["selection"])
    row = webhook_queries.get_delivery(
        current_principal(), webhook_id, delivery_id, serializer.columns
    )
    return json_response({"webhook_delivery": serializer.row(row)})


@blp.route("/<id:webhook_id>/deliveries/<id:delivery_id>/redeliver", methods=["POST"])
@blp.errors(*webhook_error_codes.RESEND, "shop_api_invalid_webhook_delivery_id")
@blp.response(200, schemas.WebhookDeliveryResponse, example={"webhook_delivery": examples.DELIVERY})
def redeliver_webhook_delivery(webhook_id: int, delivery_id: int) -> Response:
    """Send a delivery again.

    A successful delivery can be sent again, too. The schedule of retries starts from the beginning.
    """
    delivery = collection.redeliver(current_principal(), webhook_id, delivery_id)
    return json_response({"webhook_delivery": WEBHOOK_DELIVERY.record(delivery)})
