"""Example deliveries, which an operator sends to try a receiver (events 2)."""

import secrets
from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import select

from app.catalog import current_catalog
from app.conversions.webhooks import is_delivered, wants
from app.db.read_pool import fetch
from app.db.session import now
from app.errors import ShopError
from app.models import WEBHOOKS
from app.models.webhook import WebhookStatus
from app.outbound.signatures import new_secret
from app.services.webhooks.deliveries.requests import (
    DeliveryRequest,
    Sender,
    SentEvent,
    event_request,
    public_url,
    sender_of,
)
from app.services.webhooks.queries import has_form
from app.services.webhooks.writes import require_url


def require_event_type(event_type: str) -> None:
    """Raise ShopError unless an event type exists."""
    known = list(filter(is_delivered, current_catalog().event_types))
    if event_type not in known:
        reason = f"Unknown event type: {event_type}. Event types: {', '.join(sorted(known))}."
        raise ShopError("shop_api_invalid_webhook_topic", reason=reason)


def senders_of(event_type: str) -> list[Sender]:
    """Return the active webhooks that receive events of a type and whose secret can be read."""
    statement = select(WEBHOOKS).where(WEBHOOKS.c.status == WebhookStatus.ACTIVE, has_form())
    rows: list[Any] = [dict(row._mapping) for row in fetch(statement.order_by(WEBHOOKS.c.id))]
    found = (sender_of(row) for row in rows if wants(row["topics"], event_type))
    return [sender for sender in found if sender]


def new_sender(url: str, secret: str | None) -> Sender:
    """Return a sender to a URL without a webhook.

    Args:
        secret: signs the request. Default: generated.

    Raises:
        ShopError: the URL is invalid or its host is always rejected.
    """
    require_url(url)
    return Sender(0, url, (secret or new_secret(),))


def example_request(sender: Sender, event_type: str, data: Mapping[str, Any]) -> DeliveryRequest:
    """Return a request with example data, signed like the delivery of an event.

    Its ``webhook-id`` starts with ``example_``, so that a receiver does not take it for an event.
    """
    event: SentEvent = {
        "id": None,
        "type": event_type,
        # The data of an invitation has no ID.
        "resource_id": data[event_type.partition(".")[0]].get("id", 1),
        "created_at": now(),
        "data": orjson.dumps(data).decode(),
    }
    if sender.form:
        (event["body"],) = sender.form.bodies([event])
    name = f"example_{secrets.token_hex(12)}"
    return event_request(sender, 0, event, public_url(), name=name)
