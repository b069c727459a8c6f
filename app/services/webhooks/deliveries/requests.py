"""The requests of deliveries: Standard Webhooks, or the form of a plugin (events 2 and 3)."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import NotRequired, TypedDict

import orjson
from flask import current_app

from app.auth.encryption import decrypt
from app.catalog import FormedDelivery, WebhookForm, current_catalog
from app.config.urls import own_url
from app.db.session import now
from app.models.webhook import WebhookFormat, WebhookRow, form_of
from app.outbound.client import USER_AGENT
from app.outbound.signatures import sign

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class SentEvent(TypedDict):
    """An event as a delivery sends it.

    Attributes:
        id: None for an example.
        data: JSON text.
        body: the body in the form of a plugin.
    """

    id: int | None
    type: str
    resource_id: int
    created_at: datetime
    data: str
    body: NotRequired[bytes]


@dataclass(frozen=True, slots=True)
class Sender:
    """What deliveries to a webhook need: its ID, URL, secrets, and its form if it has an own."""

    webhook_id: int
    url: str
    secrets: tuple[str, ...] = field(repr=False)
    form: WebhookForm | None = None

    def is_success(self, status: int | None) -> bool:
        """Return whether a status means that the receiver has the event (events 2 and 3)."""
        if status is None:
            return False
        return status in self.form.successes if self.form else 200 <= status < 300


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """A request to a receiver. Signatures contain the time, so it is made for each attempt."""

    headers: dict[str, str]
    body: bytes = field(repr=False)


def sender_of(webhook: WebhookRow) -> Sender | None:
    """Return the sender of a webhook, or None if its secret cannot be read."""
    secret = decrypt(webhook["secret_encrypted"])
    if secret is None:
        return None
    secrets = [secret]
    until, earlier = webhook["previous_secret_until"], webhook["previous_secret_encrypted"]
    if until and earlier and until > now() and webhook["format"] == WebhookFormat.STANDARD:
        previous = decrypt(earlier)
        secrets += [previous] if previous else []
    form = current_catalog().webhook_forms.get(form_of(webhook))
    return Sender(webhook["id"], webhook["delivery_url"], tuple(secrets), form)


def message_id(event_id: int | None) -> str:
    """Return the value of ``webhook-id``, the same for each attempt and replay of an event."""
    return f"evt_{event_id}"


def event_request(
    sender: Sender, delivery_id: int, event: SentEvent, public_url: str, *, name: str | None = None
) -> DeliveryRequest:
    """Return the request that delivers an event.

    Args:
        public_url: the address of the shop (``SHOP_PUBLIC_URL``), for the form of a plugin.
        name: the value of ``webhook-id``, if the event has no ID.
    """
    if sender.form:
        own, secret = event["body"], sender.secrets[0]
        delivery = FormedDelivery(
            sender.webhook_id, delivery_id, event["type"], own, secret, public_url
        )
        headers = {"User-Agent": USER_AGENT, "Content-Type": JSON, **sender.form.headers(delivery)}
        return DeliveryRequest(headers, own)
    body = {
        "type": event["type"],
        "timestamp": _timestamp(event["created_at"]),
        "data": orjson.Fragment(event["data"]),
    }
    return _standard_request(sender, name or message_id(event["id"]), orjson.dumps(body))


def ping_request(sender: Sender, ping_id: str) -> DeliveryRequest:
    """Return the request of a ping."""
    if sender.form:
        return DeliveryRequest({"Content-Type": FORM}, sender.form.ping(sender.webhook_id))
    body = {
        "type": "ping",
        "timestamp": _timestamp(now()),
        "data": {"webhook_id": sender.webhook_id},
    }
    return _standard_request(sender, ping_id, orjson.dumps(body))


def _standard_request(sender: Sender, name: str, body: bytes) -> DeliveryRequest:
    timestamp = int(time.time())
    headers = {
        "Content-Type": JSON,
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(sender.secrets, name, timestamp, body),
    }
    return DeliveryRequest(headers, body)


def public_url() -> str:
    """Return the public address of the shop."""
    return current_app.config["SHOP_PUBLIC_URL"] or own_url(current_app.config)


def _timestamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"
