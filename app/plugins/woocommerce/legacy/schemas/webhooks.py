"""Webhooks and deliveries in the form of the legacy API (events 3)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import marshmallow as ma

from app.api.blueprint import Body
from app.plugins.woocommerce.topics import hooks_of, stored_topic
from app.schemas import webhooks
from app.schemas.base import Base, list_response, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import output as fields
from app.schemas.fields.output import Output
from app.schemas.fields.query import ChoiceParam
from app.schemas.queries import Query

_TOPIC = (
    "`coupon`, `customer`, `order` or `product`, a dot, and `created`, `updated`, `deleted` or "
    "`restored`; or `action.` and the name of a hook."
)
_STATUS = "`active`, `paused` or `disabled`."


class Headers(Output):
    """HTTP headers by name."""

    openapi = {"type": "object", "additionalProperties": {"type": "string"}}


class LegacyStatus(webhooks.WebhookStatusInput):
    """Status of a webhook. An empty text means no status."""

    def convert(self, value: object) -> str:
        return "" if value == "" else super().convert(value)


ANY_STATUS = "all", "any"


class LegacyWebhookFilter(Query):
    """Which webhooks, by ``filter[status]`` or ``status`` (decisions 14)."""

    status = ChoiceParam(
        "filter[status]",
        "Only webhooks with this status. `all` and `any` mean no filter.",
        *webhooks.STATUSES,
        *ANY_STATUS,
    )
    top_level_status = ChoiceParam(
        "status",
        "The same as `filter[status]`, which it overrides.",
        *webhooks.STATUSES,
        *ANY_STATUS,
    )

    @ma.post_load
    def finish(self, data: dict[str, object], **_: object) -> dict[str, object]:
        """Return the query with one ``status``, or None for no filter."""
        status = data.pop("top_level_status") or data["status"]
        return data | {"status": None if status in ANY_STATUS else status}


class LegacyWebhookCountQuery(LegacyWebhookFilter, webhooks.WebhookCountQuery):
    """Query of a count."""


class LegacyWebhookListQuery(LegacyWebhookFilter, webhooks.WebhookListQuery):
    """Query of a list."""


class LegacyWebhookSchema(Base):
    """Webhook in a response of the legacy API."""

    id = fields.Identifier("Webhook ID.")
    name = fields.String("Name.")
    status = fields.String(_STATUS)
    topic = fields.String("Topic.")
    resource = fields.String("Part of the topic before the dot.")
    event = fields.String("Part of the topic after the dot.")
    hooks = fields.StringList("Names of the WordPress hooks behind the topic.")
    delivery_url = fields.String("URL of the receiver.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")


class LegacyWebhookDeliverySchema(Base):
    """Delivery in a response of the legacy API, with its last attempt."""

    id = fields.Identifier("Delivery ID.")
    duration = fields.String("Duration of the attempt in seconds.")
    summary = fields.String("Result in one line.")
    request_method = fields.String("HTTP method.")
    request_url = fields.String("URL of the receiver.")
    request_headers = Headers("Headers of the request.")
    request_body = fields.String("Body of the request. Empty if the event has been removed.")
    response_code = fields.String("HTTP status of the response; empty without a response.")
    response_message = fields.String("Reason phrase of the status, or the error.")
    response_headers = Headers("Headers of the response.")
    response_body = fields.String("The first 4 KiB of the response.")
    created_at = fields.Timestamp("Creation time, in UTC.")


class LegacyWebhookCreate(Base):
    """Fields of a new webhook in the legacy API. `topic` and `delivery_url` are required."""

    name = inputs.CleanText("Name. Default: `Webhook created on <date>`.", load_default="")
    topic = inputs.Text(_TOPIC, required=True)
    delivery_url = webhooks.DeliveryUrl("URL of the receiver.", required=True)
    secret = inputs.Text(
        "Any text. Default: the consumer secret of the key that creates the webhook.",
        load_default=None,
    )
    status = LegacyStatus(_STATUS, load_default="active")

    @ma.post_load
    def finish(self, data: Body, **_: object) -> Body:
        """Return the fields as a native client would have written them."""
        topic = stored_topic(data.pop("topic", ""))
        status = data["status"] or "active"
        return data | {"topics": [topic] if topic else [], "status": status}


class LegacyWebhookUpdate(Base):
    """Fields of a webhook that can be updated in the legacy API. Empty fields change nothing."""

    name = inputs.CleanText("Name.", load_default=ma.missing)
    topic = inputs.Text(_TOPIC, load_default=ma.missing)
    delivery_url = webhooks.DeliveryUrl("URL of the receiver.", load_default=ma.missing)
    secret = inputs.Text("Any text.", load_default=ma.missing)
    status = LegacyStatus(_STATUS, load_default=ma.missing)

    @ma.post_load
    def finish(self, data: Body, **_: object) -> Body:
        """Return the fields as a native client would have written them."""
        data = {name: value for name, value in data.items() if value != ""}
        if "topic" in data:
            data["topics"] = [stored_topic(data.pop("topic"))]
        return data


LegacyWebhookCreateRequest = request(LegacyWebhookCreate, "webhook")
LegacyWebhookUpdateRequest = request(LegacyWebhookUpdate, "webhook")

LegacyWebhookResponse = response(LegacyWebhookSchema, "webhook")
LegacyWebhookList = list_response(LegacyWebhookSchema, "webhooks")

LegacyWebhookDeliveryResponse = response(LegacyWebhookDeliverySchema, "webhook_delivery")
LegacyWebhookDeliveryList = list_response(LegacyWebhookDeliverySchema, "webhook_deliveries")


def legacy_webhook(webhook: Mapping[str, Any]) -> Body:
    """Return a webhook as the legacy API returns it."""
    topic = webhook["topics"][0]
    resource, _, event = topic.partition(".")
    return {
        **{name: webhook[name] for name in ("id", "name", "status")},
        "topic": topic,
        "resource": resource,
        "event": event,
        "hooks": hooks_of(topic),
        "delivery_url": webhook["delivery_url"],
        "created_at": fields.Timestamp.wire(webhook["created_at"]),
        "updated_at": fields.Timestamp.wire(webhook["updated_at"]),
    }


def legacy_delivery(delivery: Body, url: str, body: str) -> Body:
    """Return a delivery to the URL of a receiver as the legacy API returns it."""
    attempts = delivery["attempts"]
    last: Body = attempts[-1] if attempts else {"status": None, "duration_ms": 0, "error": ""}
    code = "" if last["status"] is None else str(last["status"])
    message = _phrase(last["status"]) or last["error"] or ""
    text = delivery["response_body"]
    return {
        "id": delivery["id"],
        "duration": str(last["duration_ms"] / 1000),
        "summary": f"HTTP {code} {message}: {text}" if code else message,
        "request_method": "POST",
        "request_url": url,
        "request_headers": delivery["request_headers"],
        "request_body": body,
        "response_code": code,
        "response_message": message,
        "response_headers": delivery["response_headers"],
        "response_body": text,
        "created_at": fields.Timestamp.wire(delivery["created_at"]),
    }


def _phrase(status: int | None) -> str:
    try:
        return HTTPStatus(status).phrase if status else ""
    except ValueError:
        return ""
