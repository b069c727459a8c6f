"""Webhooks of wc/v3: reads (wc-v3, surface 11)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, asc, desc, func, select

from app.auth.principals import Capability, Principal
from app.db.read_pool import snapshot
from app.db.records import as_printed
from app.models import WEBHOOKS
from app.models.webhook import WebhookFormat
from app.plugins.woocommerce.rest.stored import (
    Record,
    RecordListQuery,
    as_records,
    conditions_of,
    records_with_ids,
)
from app.services.webhooks.queries import has_form

BARE_ONLY = (WebhookFormat.BARE,)

_COLUMNS = tuple(
    WEBHOOKS.c[name]
    for name in (
        "id",
        "name",
        "status",
        "topics",
        "delivery_url",
        "created_at",
        "updated_at",
        "is_bare",
    )
)
_KEYS: Mapping[str, ColumnElement[object]] = {
    "date": WEBHOOKS.c.created_at,
    "id": WEBHOOKS.c.id,
    "title": WEBHOOKS.c.name,
}


def list_records(
    actor: Principal, query: RecordListQuery, status: str | None
) -> tuple[list[Record], int]:
    """Return a page of webhooks and the number of all that match.

    Webhooks with equal keys are in the order of their IDs in both directions, as in WooCommerce.
    """
    conditions = [has_form(BARE_ONLY), *conditions_of(query, WEBHOOKS.c, WEBHOOKS.c.id)]
    if status is not None:
        conditions.append(WEBHOOKS.c.status == status)
    if query.search:
        name = func.lower(WEBHOOKS.c.name)
        conditions.append(name.contains(query.search.lower(), autoescape=True))
    if not actor.can(Capability.MANAGE_WEBHOOKS):
        return [], 0
    window = query.window
    direction = asc if window.order == "asc" else desc
    found = (
        select(*map(as_printed, _COLUMNS))
        .where(*conditions)
        .order_by(direction(_KEYS[query.orderby]), WEBHOOKS.c.id)
        .limit(query.size)
        .offset(window.offset or query.size * (window.page - 1))
    )
    number = select(func.count()).select_from(WEBHOOKS).where(*conditions)
    with snapshot() as fetch:
        return as_records(_COLUMNS, fetch(found)), fetch(number)[0][0]


def records_by_id(ids: Sequence[int]) -> list[Record]:
    """Return webhooks in the order of ``ids``."""
    return [each for each in records_with_ids(_COLUMNS, WEBHOOKS.c.id, ids) if each["is_bare"]]
