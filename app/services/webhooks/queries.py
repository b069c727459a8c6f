"""The rules for reading webhooks and their deliveries (events 2 and 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, exists, literal, select, text, type_coerce

from app.auth.principals import Capability, Principal
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import Columns, NamedColumns, Row, as_printed
from app.errors import ShopError
from app.models import EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import FORM, WebhookFormat
from app.services.common.erased import IS_HIDDEN
from app.services.common.filtering import ListQuery, Matching
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page
from app.services.webhooks.topics import can_read

Forms = Sequence[str] | None
"""Forms of webhooks, or None for those that this service can send."""

_NO_RESPONSE = literal("").label("response_body")
# Also without what an event of a deleted account contained.
_IS_HIDDEN = exists().where(EVENTS.c.id == WEBHOOK_DELIVERIES.c.event_id, IS_HIDDEN)
_RESPONSES: NamedColumns = {
    name: type_coerce(
        case((_IS_HIDDEN, empty), else_=WEBHOOK_DELIVERIES.c[name]), WEBHOOK_DELIVERIES.c[name].type
    ).label(name)
    for name, empty in (("response_body", literal("")), ("response_headers", text("'{}'")))
}


def has_form(forms: Forms = None) -> ColumnElement[bool]:
    """Return the condition that a webhook has one of some forms."""
    known = WebhookFormat.STANDARD, *current_catalog().webhook_forms
    return FORM.in_(known if forms is None else forms)


@dataclass(frozen=True, kw_only=True)
class WebhookQuery(ListQuery):
    """What a list of webhooks may ask (events 2)."""

    status: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeliveryQuery(ListQuery):
    """What a list of the deliveries of a webhook may ask (events 3)."""

    state: str | None = None
    event_id: int | None = None


def list_webhooks(
    actor: Principal, query: WebhookQuery, columns: Columns, forms: Forms = None
) -> Page:
    """Return a page of the webhooks that match, newest first unless ``query`` says otherwise.

    The page is empty without the capability (decisions 13).

    Args:
        forms: the forms of deliveries to include.
    """
    matching = _matching(query, forms)
    return fetch_page(
        columns, matching, query, key=WEBHOOKS.c.id, may_read=actor.can(Capability.MANAGE_WEBHOOKS)
    )


def count_webhooks(actor: Principal, query: WebhookQuery, forms: Forms = None) -> int:
    """Return the number of webhooks that match, or raise ShopError without the capability."""
    actor.require("shop_api_user_cannot_read_webhooks_count")
    matching = _matching(query, forms)
    return count(matching).number


def get_webhook(actor: Principal, webhook_id: int, columns: Columns, forms: Forms = None) -> Row:
    """Return the webhook with this ID, or raise ShopError if it or the capability is missing."""
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), WEBHOOKS.c.id).where(
            WEBHOOKS.c.id == min(webhook_id, INT64_MAX), has_form(forms)
        )
    )
    if not rows:
        raise ShopError("shop_api_invalid_webhook_id")
    actor.require("shop_api_user_cannot_read_webhook")
    return rows[0]


def list_deliveries(
    actor: Principal,
    webhook_id: int,
    query: DeliveryQuery,
    columns: Columns,
    *,
    forms: Forms = None,
) -> Page:
    """Return a page of the deliveries of a webhook, newest first unless ``query`` differs.

    A receiver can repeat what it was sent. Responses are empty for a key that may not read it.
    """
    columns = _shown(actor, webhook_id, columns, forms)
    conditions = [WEBHOOK_DELIVERIES.c.webhook_id == webhook_id]
    if query.state is not None:
        conditions.append(WEBHOOK_DELIVERIES.c.state == query.state)
    if query.event_id is not None:
        conditions.append(WEBHOOK_DELIVERIES.c.event_id == min(query.event_id, INT64_MAX))
    matching = Matching(WEBHOOK_DELIVERIES.c.id, conditions)
    return fetch_page(columns, matching, query, key=WEBHOOK_DELIVERIES.c.id, may_read=True)


def get_delivery(
    actor: Principal, webhook_id: int, delivery_id: int, columns: Columns, forms: Forms = None
) -> Row:
    """Return a delivery of a webhook. Its response can be empty as in ``list_deliveries``.

    Raises:
        ShopError: the webhook or the delivery does not exist, or the capability is missing.
    """
    columns = _shown(actor, webhook_id, columns, forms)
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), WEBHOOK_DELIVERIES.c.id).where(
            WEBHOOK_DELIVERIES.c.id == min(delivery_id, INT64_MAX),
            WEBHOOK_DELIVERIES.c.webhook_id == webhook_id,
        )
    )
    if not rows:
        raise ShopError("shop_api_invalid_webhook_delivery_id")
    return rows[0]


def _shown(actor: Principal, webhook_id: int, columns: Columns, forms: Forms) -> Columns:
    """Return the columns of the deliveries of a webhook that an actor may read."""
    topics = get_webhook(actor, webhook_id, (WEBHOOKS.c.topics,), forms)[0]
    shown = {**_RESPONSES}
    if not can_read(actor, topics):
        shown["response_body"] = _NO_RESPONSE
    return [shown.get(column.name, column) for column in columns]


def _matching(query: WebhookQuery, forms: Forms) -> Matching:
    conditions: list[ColumnElement[bool]] = [has_form(forms)]
    if query.status is not None:
        conditions.append(WEBHOOKS.c.status == query.status)
    return Matching(WEBHOOKS.c.id, conditions)
