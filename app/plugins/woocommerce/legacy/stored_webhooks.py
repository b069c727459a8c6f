"""Reading webhooks and deliveries for the legacy API (events 3)."""

from typing import Any

from sqlalchemy import select

from app.auth.encryption import decrypt
from app.auth.principals import Principal
from app.db.read_pool import fetch
from app.db.records import Columns, Row
from app.errors import ShopError
from app.models import API_KEYS, EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookFormat
from app.plugins.woocommerce.webhook_forms import legacy_bodies
from app.services.common.pagination import Page
from app.services.webhooks.queries import (
    DeliveryQuery,
    WebhookQuery,
    get_delivery,
    get_webhook,
    list_deliveries,
    list_webhooks,
)
from app.services.webhooks.topics import can_read

Record = dict[str, Any]

LEGACY_ONLY = (WebhookFormat.LEGACY,)

_WEBHOOK: Columns = tuple(WEBHOOKS.c)
_DELIVERY: Columns = tuple(WEBHOOK_DELIVERIES.c)


def list_legacy_webhooks(actor: Principal, query: WebhookQuery) -> Page:
    """Return a page of the legacy webhooks, for ``webhook_record``."""
    return list_webhooks(actor, query, _WEBHOOK, LEGACY_ONLY)


def get_legacy_webhook(actor: Principal, webhook_id: int) -> Record:
    """Return a legacy webhook by its column names."""
    return webhook_record(get_webhook(actor, webhook_id, _WEBHOOK, LEGACY_ONLY))


def list_legacy_deliveries(actor: Principal, webhook_id: int, query: DeliveryQuery) -> Page:
    """Return a page of the deliveries of a legacy webhook, for ``delivery_record``.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, or the key may not read
            the events of the webhook, which the deliveries contain.
    """
    _require_readable(actor, webhook_id)
    return list_deliveries(actor, webhook_id, query, _DELIVERY, forms=LEGACY_ONLY)


def get_legacy_delivery(actor: Principal, webhook_id: int, delivery_id: int) -> Record:
    """Return a delivery of a legacy webhook by its column names.

    Raises:
        ShopError: as ``list_legacy_deliveries``, or the delivery does not exist.
    """
    _require_readable(actor, webhook_id)
    return delivery_record(get_delivery(actor, webhook_id, delivery_id, _DELIVERY, LEGACY_ONLY))


def webhook_record(row: Row) -> Record:
    """Return a row of a page of webhooks by its column names."""
    return _record(row, _WEBHOOK)


def delivery_record(row: Row) -> Record:
    """Return a row of a page of deliveries by its column names."""
    return _record(row, _DELIVERY)


def request_bodies(deliveries: list[Record]) -> dict[int, str]:
    """Return the request body of each delivery whose event is retained, by the ID of the event."""
    ids = [delivery["event_id"] for delivery in deliveries if delivery["event_id"]]
    if not ids:
        return {}
    events = [row._mapping for row in fetch(select(EVENTS).where(EVENTS.c.id.in_(ids)))]
    bodies = legacy_bodies(events)
    return {event["id"]: body.decode() for event, body in zip(events, bodies, strict=True)}


def consumer_secret(actor: Principal) -> str | None:
    """Return the consumer secret of the key of a request, or None if it is not stored."""
    ((encrypted,),) = fetch(
        select(API_KEYS.c.consumer_secret_encrypted).where(API_KEYS.c.id == actor.key_id)
    )
    return decrypt(encrypted) if encrypted else None


def _require_readable(actor: Principal, webhook_id: int) -> None:
    if not can_read(actor, get_legacy_webhook(actor, webhook_id)["topics"]):
        raise ShopError("shop_api_user_cannot_read_webhook")


def _record(row: Row, columns: Columns) -> Record:
    return {column.name: value for column, value in zip(columns, row, strict=False)}
