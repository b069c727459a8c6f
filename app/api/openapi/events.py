"""Events in the OpenAPI document: the bodies of webhooks, and the event types of plugins."""

from collections.abc import Mapping
from typing import Any

from app.api.openapi.document import Document
from app.conversions.webhooks import is_delivered
from app.schemas.event_types import EVENTS, PAYLOADS, PluginEventSchema, PluginPayload
from app.schemas.examples.events import event_data

TAG = {
    "name": "Webhook deliveries",
    "description": "Requests that the service sends to the receivers of webhooks.",
}
"""The tag of the deliveries: not that of webhooks, whose operations a client calls."""

_HEADERS = {
    "webhook-id": "ID of the event, the same for each attempt: `evt_` and the ID in the feed.",
    "webhook-timestamp": "Time of the attempt, in Unix seconds.",
    "webhook-signature": "`v1,` and the base64 form of the HMAC-SHA256 of "
    "`<webhook-id>.<webhook-timestamp>.<body>`. During a rotation of the secret, two signatures "
    "separated by a space.",
}


def webhooks(converter: object, event_types: Mapping[str, str]) -> Document:
    """Return the section ``webhooks``, with its components: what a receiver gets for each type.

    Its entries refer to components, because openapi-generator writes a client for other entries,
    as if a program could send them.
    """
    meanings = {**event_types, "ping": "Sent on request, to check that the receiver responds."}
    items = {
        name: {"post": _delivery(name, meaning, _body(converter, name))}
        for name, meaning in meanings.items()
        if is_delivered(name)
    }
    return {
        "webhooks": {name: {"$ref": f"#/components/pathItems/{name}"} for name in items},
        "components": {"pathItems": items},
    }


def _delivery(name: str, meaning: str, body: Document) -> Document:
    """Return the operation of a delivery, in the form of Standard Webhooks."""
    words = "".join(part.title() for part in name.replace("_", ".").split("."))
    return {
        "operationId": f"receive{words}",
        "summary": meaning.rstrip("."),
        "description": "Sent to the `delivery_url` of each active webhook with this topic. Verify "
        "the signature before you use the body.",
        "tags": [TAG["name"]],
        "security": [],
        "parameters": [
            {
                "in": "header",
                "name": header,
                "description": text,
                "required": True,
                "schema": {"type": "string"},
            }
            for header, text in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "204": {"description": "Any status from 200 to 299 means that the event was received."},
            "410": {"description": "Disables the webhook."},
        },
    }


def _body(converter: Any, name: str) -> Document:
    data = {"webhook_id": 1} if name == "ping" else event_data(name)
    example = {"type": name, "timestamp": "2026-11-20T09:38:00Z", "data": data}
    schema = converter.resolve_nested_schema(PAYLOADS.get(name, PluginPayload))
    return {"schema": schema, "example": example}


def describe_plugin_events(converter: Any, components: Any, event_types: Mapping[str, str]) -> None:
    """Add the event types of plugins to the union of events."""
    added = [name for name in event_types if name not in EVENTS]
    union = components.schemas.get("Event")
    if not added or union is None:
        return
    reference = converter.resolve_nested_schema(PluginEventSchema)
    components.schemas["PluginEvent"]["properties"]["type"]["enum"] = added
    union["oneOf"].append(reference)
    union["discriminator"]["mapping"] |= dict.fromkeys(added, reference["$ref"])
