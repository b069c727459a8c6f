"""The forms of deliveries to receivers of WooCommerce webhooks (events 3; wc-v3, surface 11)."""

import hmac
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson
from flask import Flask
from sqlalchemy import select

from app.catalog import EXTENSION, FormedDelivery, WebhookForm
from app.db.read_pool import fetch
from app.db.records import Record
from app.models import EVENTS, USERS
from app.models.webhook import WebhookFormat
from app.plugins.woocommerce.legacy.orders import legacy_order
from app.plugins.woocommerce.rest import coupons, customers, orders
from app.plugins.woocommerce.rest.site import current_site
from app.plugins.woocommerce.topics import is_topic
from app.schemas.coupons.coupon import CouponSchema
from app.schemas.customers import CustomerSchema
from app.schemas.fields.output import on_request
from app.services.common.metadata import METADATA

Event = Mapping[str, Any]

_NATIVE_ONLY = {"coupon": on_request(CouponSchema), "customer": on_request(CustomerSchema)}
"""The fields of records that only the native API shows (campaigns 1)."""

_NOUNS = {each.noun: each for each in (coupons.RESOURCE, customers.CUSTOMERS, orders.ORDERS)}


def init_app(app: Flask) -> None:
    """Register the forms, also if no API is served: existing webhooks keep their receivers."""
    app.extensions[EXTENSION].webhook_forms |= {
        WebhookFormat.LEGACY: _LEGACY,
        WebhookFormat.BARE: replace(_LEGACY, bodies=_bare_bodies, headers=_bare_headers),
    }


def legacy_bodies(events: Sequence[Event]) -> Iterator[bytes]:
    """Yield the bodies of legacy deliveries: each record as version 3 shows it."""
    ids = [event["id"] for event in events if event["id"] and event["type"].startswith("order.")]
    updated = dict[int, datetime]()
    if ids:
        of_customers = select(EVENTS.c.id, USERS.c.updated_at).join(
            USERS, USERS.c.id == EVENTS.c.customer_id
        )
        updated = dict(map(tuple, fetch(of_customers.where(EVENTS.c.id.in_(ids)))))
    for event in events:
        yield _legacy_body(event, updated.get(event["id"]))


def _legacy_body(event: Event, customer_updated_at: datetime | None) -> bytes:
    resource, _, what = event["type"].partition(".")
    if what == "deleted":
        return orjson.dumps({"id": event["resource_id"]})
    shown = _without_metadata(orjson.loads(event["data"])[resource])
    for name in _NATIVE_ONLY.get(resource, ()):
        shown.pop(name, None)
    if resource == "customer":
        # Version 3 shows the time of the last update, which is this event.
        shown = _with_last_update(shown, event["created_at"])
    elif resource == "order":
        shown = legacy_order(shown)
        if shown.get("customer", {}).get("id"):
            updated = customer_updated_at or event["created_at"]
            shown["customer"] = _with_last_update(shown["customer"], updated)
    return orjson.dumps({resource: shown})


def _without_metadata(record: Mapping[str, Any]) -> Record:
    """Return a record without its metadata and that of its items, as version 3 shows it."""
    return {
        name: [_without_metadata(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else value
        for name, value in record.items()
        if name != METADATA
    }


def _with_last_update(customer: Mapping[str, object], updated: datetime) -> dict[str, object]:
    """Return a customer with ``last_update``, which only version 3 has."""
    items = list(customer.items())
    return dict([*items[:2], ("last_update", f"{updated:%Y-%m-%dT%H:%M:%SZ}"), *items[2:]])


def _bare_bodies(events: Sequence[Event]) -> list[bytes]:
    """Return the records as wc/v3 shows them now; of deleted ones their ID."""
    ids: dict[str, set[int]] = {}
    for event in events:
        ids.setdefault(event["type"].partition(".")[0], set()).add(event["resource_id"])
    shown = {
        (noun, each["id"]): each
        for noun, found in ids.items()
        if noun in _NOUNS
        for each in _NOUNS[noun].objects(sorted(found), current_site())
    }
    return [_bare_body(event, shown) for event in events]


def _bare_body(event: Event, shown: Mapping[tuple[str, int], object]) -> bytes:
    if event["id"] is None:  # an example
        return _legacy_body(event, None)
    noun, _, what = event["type"].partition(".")
    gone = {"id": event["resource_id"]}
    return orjson.dumps(gone if what == "deleted" else shown.get((noun, gone["id"]), gone))


def _headers(delivery: FormedDelivery) -> dict[str, str]:
    resource, _, what = delivery.event_type.partition(".")
    signature = hmac.digest(delivery.secret.encode(), delivery.body, "sha256")
    return {
        "X-WC-Webhook-Source": delivery.source,
        "X-WC-Webhook-Topic": delivery.event_type,
        "X-WC-Webhook-Resource": resource,
        "X-WC-Webhook-Event": what,
        "X-WC-Webhook-Signature": b64encode(signature).decode(),
        "X-WC-Webhook-ID": str(delivery.webhook_id),
        "X-WC-Webhook-Delivery-ID": str(delivery.delivery_id),
    }


def _bare_headers(delivery: FormedDelivery) -> dict[str, str]:
    return _headers(replace(delivery, source=f"{delivery.source.rstrip('/')}/"))


_LEGACY = WebhookForm(
    is_topic=is_topic,
    bodies=legacy_bodies,
    headers=_headers,
    ping=lambda webhook_id: f"webhook_id={webhook_id}".encode(),
    successes=frozenset({*range(200, 300), 301, 302}),
)
