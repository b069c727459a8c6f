"""Pings: requests that check immediately whether a receiver is reachable (events 2)."""

import asyncio
import secrets
import threading

from flask import current_app
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.db.session import run_in_transaction
from app.errors import ShopError, unavailable
from app.models.webhook import WebhookStatus
from app.outbound.client import REFUSED, Outcome, ReceiverClient
from app.outbound.network import REMEDY, parse_networks
from app.services.webhooks.deliveries.requests import (
    DeliveryRequest,
    Sender,
    ping_request,
    sender_of,
)
from app.services.webhooks.states import UNREADABLE, disable
from app.services.webhooks.writes import locked

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
        raise ShopError("shop_api_webhook_not_active", status="disabled")
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
        disable(session, [webhook], UNREADABLE)
    return sender


async def _send(url: str, request: DeliveryRequest) -> Outcome:
    allowed = parse_networks(current_app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"])
    return await ReceiverClient(allowed).post(url, request.headers, request.body)
