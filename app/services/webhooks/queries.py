"""The rules for reading webhooks and their deliveries (events 2 and 3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, case, literal, select

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import Columns, Row, as_printed
from app.errors import ShopError
from app.models import WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookFormat
from app.services.common.filtering import Matching
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page
from app.services.webhooks.topics import can_read

BARE = "bare"
"""The form of the webhooks of wc/v3."""

ALL_FORMATS: Sequence[str] = (*WebhookFormat, BARE)
LEGACY_ONLY: Sequence[str] = (WebhookFormat.LEGACY,)
BARE_ONLY: Sequence[str] = (BARE,)
"""Each mount shows only webhooks of its own form. Native webhooks can have several topics."""

_FORM: ColumnElement[str] = case((WEBHOOKS.c.is_bare, BARE), else_=WEBHOOKS.c.format)

_NO_RESPONSE = literal("").label("response_body")


def has_form(formats: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a webhook has one of some forms."""
    return _FORM.in_(formats)


def list_webhooks(
    actor: Principal,
    query: Mapping[str, Any],
    columns: Columns,
    formats: Sequence[str] = ALL_FORMATS,
) -> Page:
    """Return a page of the webhooks that match, newest first unless ``query`` says otherwise.

    The page is empty without the capability (decisions 13).

    Args:
        query: a loaded ``WebhookListQuery``.
        formats: the forms of deliveries to include.
    """
    matching = _matching(query, formats)
    return fetch_page(
        columns, matching, query, key=WEBHOOKS.c.id, may_read=actor.can(Capability.MANAGE_WEBHOOKS)
    )


def count_webhooks(
    actor: Principal, query: Mapping[str, Any], formats: Sequence[str] = ALL_FORMATS
) -> int:
    """Return the number of webhooks that match, or raise ShopError without the capability."""
    actor.require("shop_api_user_cannot_read_webhooks_count")
    matching = _matching(query, formats)
    return count(matching)


def get_webhook(
    actor: Principal, webhook_id: int, columns: Columns, formats: Sequence[str] = ALL_FORMATS
) -> Row:
    """Return the webhook with this ID, or raise ShopError if it or the capability is missing."""
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), WEBHOOKS.c.id).where(
            WEBHOOKS.c.id == min(webhook_id, INT64_MAX), has_form(formats)
        )
    )
    if not rows:
        raise ShopError("shop_api_invalid_webhook_id")
    actor.require("shop_api_user_cannot_read_webhook")
    return rows[0]


def list_deliveries(
    actor: Principal,
    webhook_id: int,
    query: Mapping[str, Any],
    columns: Columns,
    *,
    formats: Sequence[str] = ALL_FORMATS,
) -> Page:
    """Return a page of the deliveries of a webhook, newest first unless ``query`` differs.

    A receiver can repeat what it was sent. Responses are empty for a key that may not read it.

    Args:
        query: a loaded ``WebhookDeliveryListQuery``.
    """
    columns = _shown(actor, webhook_id, columns, formats)
    conditions = [WEBHOOK_DELIVERIES.c.webhook_id == webhook_id]
    if query["state"] is not None:
        conditions.append(WEBHOOK_DELIVERIES.c.state == query["state"])
    if query["event_id"] is not None:
        conditions.append(WEBHOOK_DELIVERIES.c.event_id == min(query["event_id"], INT64_MAX))
    matching = Matching(WEBHOOK_DELIVERIES.c.id, conditions)
    return fetch_page(columns, matching, query, key=WEBHOOK_DELIVERIES.c.id, may_read=True)


def get_delivery(
    actor: Principal,
    webhook_id: int,
    delivery_id: int,
    columns: Columns,
    formats: Sequence[str] = ALL_FORMATS,
) -> Row:
    """Return a delivery of a webhook. Its response can be empty as in ``list_deliveries``.

    Raises:
        ShopError: the webhook or the delivery does not exist, or the capability is missing.
    """
    columns = _shown(actor, webhook_id, columns, formats)
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), WEBHOOK_DELIVERIES.c.id).where(
            WEBHOOK_DELIVERIES.c.id == min(delivery_id, INT64_MAX),
            WEBHOOK_DELIVERIES.c.webhook_id == webhook_id,
        )
    )
    if not rows:
        raise ShopError("shop_api_invalid_webhook_delivery_id")
    return rows[0]


def _shown(actor: Principal, webhook_id: int, columns: Columns, formats: Sequence[str]) -> Columns:
    """Return the columns of the deliveries of a webhook that an actor may read."""
    topics = get_webhook(actor, webhook_id, (WEBHOOKS.c.topics,), formats)[0]
    if can_read(actor, topics):
        return columns
    response = WEBHOOK_DELIVERIES.c.response_body
    return [_NO_RESPONSE if column is response else column for column in columns]


def _matching(query: Mapping[str, Any], formats: Sequence[str]) -> Matching:
    conditions: list[ColumnElement[bool]] = [has_form(formats)]
    if query["status"] is not None:
        conditions.append(WEBHOOKS.c.status == query["status"])
    return Matching(WEBHOOKS.c.id, conditions)
