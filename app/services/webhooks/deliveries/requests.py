"""The requests of deliveries: Standard Webhooks, and the form of the legacy API (events 2, 3)."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NotRequired, TypedDict

import orjson
from flask import current_app

from app.auth.encryption import decrypt
from app.config.urls import own_url
from app.conversions.legacy_orders import legacy_order
from app.db.session import now
from app.models.webhook import WebhookFormat, WebhookRow
from app.outbound.client import USER_AGENT
from app.outbound.signatures import sign, sign_legacy
from app.services.events.erasure import METADATA

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

LEGACY_SUCCESS = frozenset({*range(200, 300), 301, 302})


class SentEvent(TypedDict):
    """An event as a delivery sends it.

    Attributes:
        id: None for an example.
        data: JSON text.
        customer_updated_at: the time of the last update of the customer of an order, or None, for a
            legacy receiver.
        bare_body: the record as wc/v3 shows it when it is sent, for a receiver of bare objects.
    """

    id: int | None
    type: str
    resource_id: int
    created_at: datetime
    data: str
    customer_updated_at: datetime | None
    bare_body: NotRequired[bytes | None]


@dataclass(frozen=True, slots=True)
class Sender:
    """What deliveries to a webhook need: its ID, URL, form and secrets.

    Attributes:
        is_bare: whether a legacy receiver gets bare objects of wc/v3.
    """

    webhook_id: int
    url: str
    form: str
    secrets: tuple[str, ...] = field(repr=False)
    is_bare: bool = False

    @property
    def is_legacy(self) -> bool:
        """Return whether the webhook expects the form of the legacy API."""
        return self.form == WebhookFormat.LEGACY

    def is_success(self, status: int | None) -> bool:
        """Return whether a status means that the receiver has the event (events 2 and 3)."""
        if status is None:
            return False
        return status in LEGACY_SUCCESS if self.is_legacy else 200 <= status < 300


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
    return Sender(
        webhook["id"],
        webhook["delivery_url"],
        webhook["format"],
        tuple(secrets),
        is_bare=webhook["is_bare"],
    )


def message_id(event_id: int | None) -> str:
    """Return the value of ``webhook-id``, the same for each attempt and replay of an event."""
    return f"evt_{event_id}"


def event_request(
    sender: Sender, delivery_id: int, event: SentEvent, public_url: str, *, name: str | None = None
) -> DeliveryRequest:
    """Return the request that delivers an event.

    Args:
        public_url: the address of the shop (``SHOP_PUBLIC_URL``), for legacy receivers.
        name: the value of ``webhook-id``, if the event has no ID.
    """
    if sender.is_legacy:
        return _legacy_request(sender, delivery_id, event, public_url)
    body = {
        "type": event["type"],
        "timestamp": _timestamp(event["created_at"]),
        "data": orjson.Fragment(event["data"]),
    }
    return _standard_request(sender, name or message_id(event["id"]), orjson.dumps(body))


def ping_request(sender: Sender, ping_id: str) -> DeliveryRequest:
    """Return the request of a ping: ``webhook_id=<id>`` as form data for a legacy receiver."""
    if sender.is_legacy:
        return DeliveryRequest({"Content-Type": FORM}, f"webhook_id={sender.webhook_id}".encode())
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


def _legacy_request(
    sender: Sender, delivery_id: int, event: SentEvent, public_url: str
) -> DeliveryRequest:
    resource, _, what = event["type"].partition(".")
    body = event.get("bare_body") or legacy_body(event)
    source = f"{public_url.rstrip('/')}/" if sender.is_bare else public_url
    headers = {
        "User-Agent": USER_AGENT,
        "Content-Type": JSON,
        "X-WC-Webhook-Source": source,
        "X-WC-Webhook-Topic": event["type"],
        "X-WC-Webhook-Resource": resource,
        "X-WC-Webhook-Event": what,
        "X-WC-Webhook-Signature": sign_legacy(sender.secrets[0], body),
        "X-WC-Webhook-ID": str(sender.webhook_id),
        "X-WC-Webhook-Delivery-ID": str(delivery_id),
    }
    return DeliveryRequest(headers, body)


def legacy_body(event: SentEvent) -> bytes:
    """Return the body of a legacy delivery: the resource as version 3 shows it."""
    resource, _, what = event["type"].partition(".")
    if what == "deleted":
        return orjson.dumps({"id": event["resource_id"]})
    shown = _without_metadata(orjson.loads(event["data"])[resource])
    if resource == "customer":
        # Version 3 shows the time of the last update, which is this event.
        shown = _with_last_update(shown, event["created_at"])
    elif resource == "order":
        shown = legacy_order(shown)
        if shown.get("customer", {}).get("id"):
            updated = event["customer_updated_at"] or event["created_at"]
            shown["customer"] = _with_last_update(shown["customer"], updated)
    return orjson.dumps({resource: shown})


def _without_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without its metadata and that of its items, as version 3 shows it."""
    return {
        name: [_without_metadata(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else value
        for name, value in record.items()
        if name != METADATA
    }


def _with_last_update(customer: Mapping[str, Any], updated: datetime) -> dict[str, Any]:
    """Return a customer with ``last_update``, which only version 3 has."""
    items = list(customer.items())
    return dict([*items[:2], ("last_update", _timestamp(updated)), *items[2:]])


def public_url() -> str:
    """Return the public address of the shop."""
    return current_app.config["SHOP_PUBLIC_URL"] or own_url(current_app.config)


def _timestamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"
