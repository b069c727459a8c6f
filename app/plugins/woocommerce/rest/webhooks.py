"""Webhooks of this dialect: objects and operations (wc-v3, surface 11)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from flask import Response
from sqlalchemy import ColumnElement, asc, desc, func, select

from app.auth.principals import Capability, Principal
from app.db.read_pool import snapshot
from app.db.records import as_printed
from app.errors import ShopError
from app.models import WEBHOOKS
from app.models.webhook import WebhookFormat, WebhookStatus
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import lists, schemas
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.operations import Call
from app.plugins.woocommerce.rest.resources import Resource
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.plugins.woocommerce.topics import HOOKS as LEGACY_HOOKS
from app.schemas.base import Base
from app.services.common.pagination import Total
from app.services.webhooks import writes
from app.services.webhooks.queries import has_form

BARE_ONLY = (WebhookFormat.BARE,)

_COLUMNS = tuple(WEBHOOKS.c)
_KEYS: Mapping[str, ColumnElement[object]] = {
    "date": WEBHOOKS.c.created_at,
    "id": WEBHOOKS.c.id,
    "title": WEBHOOKS.c.name,
}


def list_records(
    actor: Principal, query: lists.RecordListQuery, status: str | None
) -> tuple[list[Object], int]:
    """Return a page of webhooks and the number of all that match.

    Webhooks with equal keys are in the order of their IDs in both directions, as in WooCommerce.
    """
    conditions = [has_form(BARE_ONLY), *lists.conditions_of(query, WEBHOOKS.c)]
    if status is not None:
        conditions.append(WEBHOOKS.c.status == status)
    if query.search:
        name = func.lower(WEBHOOKS.c.name)
        conditions.append(name.contains(query.search.lower(), autoescape=True))
    if not actor.can(Capability.MANAGE_WEBHOOKS):
        return [], 0
    direction = asc if query.order == "asc" else desc
    found = (
        select(*map(as_printed, _COLUMNS))
        .where(*conditions)
        .order_by(direction(_KEYS[query.orderby]), WEBHOOKS.c.id)
        .limit(query.limit)
        .offset(query.offset or (query.limit or 0) * (query.page - 1))
    )
    number = select(func.count()).select_from(WEBHOOKS).where(*conditions)
    with snapshot() as fetch:
        return lists.as_records(_COLUMNS, fetch(found)), fetch(number)[0][0]


HOOKS: Mapping[str, list[str]] = {
    **LEGACY_HOOKS,
    "order.created": ["woocommerce_new_order"],
    "order.updated": ["woocommerce_update_order", "woocommerce_order_refunded"],
    "order.deleted": ["wp_trash_post", "woocommerce_trash_order"],
    "order.restored": ["untrashed_post", "woocommerce_untrash_order"],
    "product.created": [
        "woocommerce_process_product_meta",
        "woocommerce_new_product",
        "woocommerce_new_product_variation",
    ],
    "product.updated": [
        "woocommerce_process_product_meta",
        "woocommerce_update_product",
        "woocommerce_update_product_variation",
    ],
    "product.deleted": ["wp_trash_post"],
    "product.restored": ["untrashed_post"],
}
"""The topics that are accepted, each with what the original shows as ``hooks``."""

_STATUSES = list(WebhookStatus)
FIELDS: arg.Arguments = {
    "name": arg.NAME,
    "status": arg.choice("WebhookStatus", _STATUSES),
    "topic": arg.TEXT,
    "secret": arg.Argument("string", maxLength=255),
    "delivery_url": arg.TEXT,
}


class RestWebhook(Base):
    """Webhook."""

    id = schemas.Integer()
    name = status = schemas.Text()
    topic = schemas.Text("topics", lambda topics, _: topics[0])
    resource = schemas.Text("topics", lambda topics, _: topics[0].partition(".")[0])
    event = schemas.Text("topics", lambda topics, _: topics[0].partition(".")[2])
    hooks = schemas.Texts("topics", lambda topics, _: HOOKS.get(topics[0], []))
    delivery_url = schemas.Text()
    date_created, date_created_gmt = schemas.times("created_at")
    date_modified, date_modified_gmt = schemas.times(
        lambda webhook, _: (
            None if webhook["updated_at"] == webhook["created_at"] else webhook["updated_at"]
        ),
        allow_none=True,
    )
    _links = schemas.links(lambda record, site: site.links("webhooks", record["id"]))


class Webhooks(Resource):
    """The webhooks of this dialect. Those of the native API are not shown."""

    noun, kind, result = "webhook", "shop_webhook", RestWebhook
    table, columns = WEBHOOKS, _COLUMNS
    needs = (Capability.MANAGE_WEBHOOKS,) * 4
    listed = {
        **lists.collection("Webhook", "date", "id", "title", times=("after", "before")),
        "status": arg.choice("WebhookListStatus", ["all", *_STATUSES], default="all"),
    }
    created = {**FIELDS, "topic": arg.NEEDED, "delivery_url": arg.NEEDED}
    edited = FIELDS

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        return [each for each in records if each["is_bare"]]

    def unknown(self, call: Call, status: int) -> RestError:
        error = super().unknown(call, status)
        if (call.ids["id"] or status == 400) and "force" not in call.args:  # as on the original
            error.body["message"] = "ID is invalid."
        return error

    def page(self, call: Call) -> Response:
        query, status = lists.query_of(call), call.args.get("status")
        query = replace(query, include=tuple(filter(None, query.include)))
        wanted = None if status in {None, "all"} else status
        found, total = list_records(call.actor, query, wanted)
        return lists.page(call, self.make(found, call.site, call.wanted), Total(total))

    def data(self, call: Call) -> Object:
        """Return the fields of a webhook. Those of a change that are empty keep their values."""
        if not call.ids:
            return _new(call.given)
        data = {name: value for name, value in call.given.items() if value}
        if topic := data.pop("topic", None):
            _require_topic(topic, "Webhook topic must be valid.")
            data["topics"] = [topic]
        return data

    def write_one(self, call: Call, data: Object) -> int:
        if call.ids and not self.records([call.ids["id"]], call.site):
            raise self.unknown(call, 400)
        try:
            webhook = (
                writes.update_webhook(call.actor, call.ids["id"], data, call.check, BARE_ONLY)
                if call.ids
                else writes.create_webhook(call.actor, data, WebhookFormat.BARE)
            )
        except ShopError as error:
            is_invalid = error.code == "shop_api_invalid_webhook_delivery_url"
            if not is_invalid or "refused" in error.details:
                raise
            code = "woocommerce_rest_shop_webhook_invalid_delivery_url"
            message = "Webhook delivery URL must be a valid URL starting with http:// or https://."
            raise RestError(code, message) from None
        return int(webhook["id"])

    def require_deletable(self, call: Call) -> None:
        self.require_force(call, "Webhooks do")

    def remove(self, call: Call, shown: Object) -> None:
        writes.delete_webhook(call.actor, shown["id"], call.check, BARE_ONLY)


ROUTES = Webhooks().routes


def _new(given: Record) -> Object:
    """Return the fields of a new webhook. It is active, whatever status was sent."""
    _require_topic(given["topic"], "Webhook topic is required and must be valid.")
    moment = datetime.now(UTC)
    return {
        "name": given.get("name") or f"Webhook created on {moment:%b %-d, %Y @ %I:%M %p}",
        "status": WebhookStatus.ACTIVE,
        "topics": [given["topic"]],
        "delivery_url": given["delivery_url"],
        "secret": given.get("secret") or secrets.token_urlsafe(37),
    }


def _require_topic(topic: str, message: str) -> None:
    if topic not in HOOKS:
        raise RestError("woocommerce_rest_shop_webhook_invalid_topic", message)
