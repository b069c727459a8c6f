"""Webhooks of this dialect: objects and operations (wc-v3, surface 11)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.auth.principals import Capability
from app.conversions.webhooks import LEGACY_HOOKS
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import ShopError
from app.models.webhook import WebhookFormat, WebhookStatus
from app.services.common.records import RecordQuery
from app.services.webhooks import writes
from app.services.webhooks.queries import BARE_ONLY
from app.services.webhooks.records import list_records, records_by_id
from app.woocommerce_rest import arguments as arg
from app.woocommerce_rest.arguments import Arguments
from app.woocommerce_rest.batch import resource_routes
from app.woocommerce_rest.errors import RestError
from app.woocommerce_rest.frame import Call, Reply
from app.woocommerce_rest.lists import collection, page, record_query
from app.woocommerce_rest.site import Site

Record = Mapping[str, Any]
Object = dict[str, Any]

HOOKS: Mapping[str, list[str]] = {
    **LEGACY_HOOKS,
    "order.created": ["woocommerce_new_order"],
    "order.updated": ["woocommerce_update_order"],
    "order.deleted": ["wp_trash_post", "woocommerce_trash_order"],
    "order.restored": ["untrashed_post", "woocommerce_untrash_order"],
    "product.created": ["woocommerce_new_product", "woocommerce_new_product_variation"],
    "product.updated": ["woocommerce_update_product", "woocommerce_update_product_variation"],
    "product.deleted": ["wp_trash_post"],
    "product.restored": ["untrashed_post"],
}
"""The topics that are accepted, each with what the original shows as ``hooks``."""

_STATUSES = list(WebhookStatus)
FIELDS: Arguments = {
    "name": arg.TEXT,
    "status": {"type": "string", "enum": _STATUSES},
    "topic": arg.TEXT,
    "secret": {**arg.TEXT, "maxLength": 255},
    "delivery_url": arg.TEXT,
}


def webhook_object(record: Record, site: Site) -> Object:
    """Return a webhook of this dialect."""
    (topic,) = record["topics"]
    resource, _, event = topic.partition(".")
    created, modified = record["created_at"], record["updated_at"]
    return {
        "id": record["id"],
        "name": record["name"],
        "status": record["status"],
        "topic": topic,
        "resource": resource,
        "event": event,
        "hooks": HOOKS.get(topic, []),
        "delivery_url": record["delivery_url"],
        **site.dates(created=created, modified=None if modified == created else modified),
        "_links": site.links("webhooks", record["id"]),
    }


def _found(
    webhook_id: int, site: Site, status: int = 404, message: str = "ID is invalid."
) -> Object:
    with reading_own_writes():
        found = records_by_id([webhook_id])
    if not found:
        raise RestError("woocommerce_rest_shop_webhook_invalid_id", message, status)
    return webhook_object(found[0], site)


def list_webhooks(call: Call) -> Reply:
    """Return a page of webhooks."""
    query, status = record_query(call), call.args.get("status")
    query["include"] = tuple(filter(None, query["include"]))
    wanted = None if status in {None, "all"} else status
    found, total = list_records(call.actor, RecordQuery(**query), wanted)
    return page(call, (webhook_object(each, call.site) for each in found), total)


def get_webhook(call: Call) -> Reply:
    """Return a webhook."""
    webhook_id = call.ids["id"]
    message = "ID is invalid." if webhook_id else "Invalid ID."  # as on the original
    return Reply(_found(webhook_id, call.site, message=message))


def create_webhook(call: Call) -> Reply:
    """Create a webhook. It is active, whatever status was sent."""
    call.require_no_id("shop_webhook")
    given = call.given
    _require_topic(given["topic"], "Webhook topic is required and must be valid.")
    moment = datetime.now(UTC)
    data = {
        "name": given.get("name") or f"Webhook created on {moment:%b %-d, %Y @ %I:%M %p}",
        "status": WebhookStatus.ACTIVE,
        "topics": [given["topic"]],
        "delivery_url": given["delivery_url"],
        "secret": given.get("secret") or secrets.token_urlsafe(37),
    }
    form = WebhookFormat.LEGACY

    def work(_: Any) -> Object:
        created = writes.create_webhook(call.actor, data, form, is_bare=True)
        return _found(created["id"], call.site)

    return Reply(_written(work), 201)


def update_webhook(call: Call) -> Reply:
    """Change a webhook. Fields that are empty keep their values."""
    webhook_id = call.ids["id"]
    check = call.precondition(lambda record_id: _found(record_id, call.site))
    data = {name: value for name, value in call.given.items() if value}
    if topic := data.pop("topic", None):
        _require_topic(topic, "Webhook topic must be valid.")
        data["topics"] = [topic]

    def work(_: Any) -> Object:
        _found(webhook_id, call.site, 400)
        writes.update_webhook(call.actor, webhook_id, data, check, BARE_ONLY)
        return _found(webhook_id, call.site)

    return Reply(_written(work))


def delete_webhook(call: Call) -> Reply:
    """Delete a webhook permanently."""
    webhook_id = call.ids["id"]
    check = call.precondition(lambda record_id: _found(record_id, call.site))
    call.require_force("Webhooks")

    def work(_: Any) -> Object:
        shown = _found(webhook_id, call.site, message="Invalid ID.")
        writes.delete_webhook(call.actor, webhook_id, check, BARE_ONLY)
        return shown

    return Reply(run_in_transaction(work))


def _require_topic(topic: str, message: str) -> None:
    if topic not in HOOKS:
        raise RestError("woocommerce_rest_shop_webhook_invalid_topic", message)


def _written(work: Any) -> Object:
    """Write a webhook, with the error of this dialect for a URL that is not one."""
    try:
        return run_in_transaction(work)
    except ShopError as error:
        if error.code != "shop_api_invalid_webhook_delivery_url" or "not allowed" in error.message:
            raise
        code = "woocommerce_rest_shop_webhook_invalid_delivery_url"
        message = "Webhook delivery URL must be a valid URL starting with http:// or https://."
        raise RestError(code, message) from None


ROUTES = resource_routes(
    "webhook",
    (list_webhooks, create_webhook, get_webhook, update_webhook, delete_webhook),
    (Capability.MANAGE_WEBHOOKS,) * 5,
    listed={
        **collection("date", "id", "title", times=("after", "before")),
        "status": {"type": "string", "default": "all", "enum": ["all", *_STATUSES]},
    },
    created={
        **FIELDS,
        "topic": {**arg.TEXT, "required": True},
        "delivery_url": {**arg.TEXT, "required": True},
    },
    edited=FIELDS,
)
