"""Requests without an event, which try a receiver: pings, and example deliveries (events 2)."""

import asyncio
import secrets
import threading

import orjson
from flask import current_app
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.conversions.webhooks import is_delivered, wants
from app.db.read_pool import fetch
from app.db.records import row_dicts
from app.db.session import now, run_in_transaction
from app.errors import Sentence, ShopError, unavailable
from app.models import WEBHOOKS
from app.models.webhook import WebhookRow, WebhookStatus
from app.outbound.client import REFUSED, Outcome, ReceiverClient
from app.outbound.network import REMEDY, parse_networks
from app.outbound.signatures import new_secret
from app.services.common.bulk import Data
from app.services.webhooks.deliveries.requests import (
    DeliveryRequest,
    Sender,
    SentEvent,
    event_request,
    ping_request,
    public_url,
    sender_of,
)
from app.services.webhooks.queries import has_form
from app.services.webhooks.states import NOT_READABLE, disable
from app.services.webhooks.writes import locked, require_url

_EXTENSION = "shop_api_ping"
"""Key in ``app.extensions`` of the lock that lets one ping run at a time in each process."""


def ping(actor: Principal, webhook_id: int) -> dict[str, object]:
    """Send a ping and return the status, the duration in milliseconds, and a coarse error.

    An address that is not allowed has a message that names the setting.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, the secret cannot be
            read, or this process is sending another ping. A receiver that never responds can then
            occupy only one of the threads that serve requests.
    """
    sender = run_in_transaction(lambda session: _sender(session, actor, webhook_id))
    if sender is None:
        raise ShopError("shop_api_webhook_not_active", status=Sentence("disabled"))
    request = ping_request(sender, f"ping_{secrets.token_hex(12)}")
    lock: threading.Lock = current_app.extensions.setdefault(_EXTENSION, threading.Lock())
    if not lock.acquire(blocking=False):
        raise unavailable("Another ping is in progress.")
    try:
        outcome = asyncio.run(_send(sender.url, request))
    finally:
        lock.release()
    return {
        "status": outcome.status,
        "duration_ms": outcome.duration_ms,
        "error": outcome.error,
        "message": REMEDY if outcome.error == REFUSED else None,
    }


def _sender(session: Session, actor: Principal, webhook_id: int) -> Sender | None:
    """Return the sender of a webhook. If its secret cannot be read, disable it and return None."""
    webhook = locked(session, actor, webhook_id)
    sender = sender_of(webhook)
    if sender is None and webhook["status"] != WebhookStatus.DISABLED:
        disable(session, [webhook], NOT_READABLE)
    return sender


async def _send(url: str, request: DeliveryRequest) -> Outcome:
    allowed = parse_networks(current_app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"])
    return await ReceiverClient(allowed).post(url, request.headers, request.body)


def require_event_type(event_type: str) -> None:
    """Raise ShopError unless an event type exists."""
    known = list(filter(is_delivered, current_catalog().event_types))
    if event_type not in known:
        reason = Sentence(
            "Unknown event type: {0}. Event types: {1}.", event_type, ", ".join(sorted(known))
        )
        raise ShopError("shop_api_invalid_webhook_topic", reason=reason)


def senders_of(event_type: str) -> list[Sender]:
    """Return the active webhooks that receive events of a type and whose secret can be read."""
    statement = select(WEBHOOKS).where(WEBHOOKS.c.status == WebhookStatus.ACTIVE, has_form())
    rows: list[WebhookRow] = row_dicts(fetch(statement.order_by(WEBHOOKS.c.id)))
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


def example_request(sender: Sender, event_type: str, data: Data) -> DeliveryRequest:
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
