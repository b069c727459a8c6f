"""Webhooks of wc/v3: reads (wc-v3, surface 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import fetch_by_ids
from app.models import WEBHOOKS
from app.services.common.filtering import Matching
from app.services.common.plans import fetch_page
from app.services.common.records import (
    Record,
    RecordQuery,
    as_records,
    conditions_of,
    sort_key_of,
)
from app.services.webhooks.queries import BARE_ONLY, has_form

_COLUMNS = tuple(
    WEBHOOKS.c[name]
    for name in ("id", "name", "status", "topics", "delivery_url", "created_at", "updated_at",
                 "is_bare")
)  # fmt: skip
_KEYS = {"date": WEBHOOKS.c.created_at, "id": WEBHOOKS.c.id, "title": WEBHOOKS.c.name}


def list_records(
    actor: Principal, query: RecordQuery, status: str | None
) -> tuple[list[Record], int]:
    """Return a page of webhooks and the number of all that match."""
    conditions = [has_form(BARE_ONLY), *conditions_of(query, WEBHOOKS.c, WEBHOOKS.c.id)]
    if status is not None:
        conditions.append(WEBHOOKS.c.status == status)
    if query.search:
        name = func.lower(WEBHOOKS.c.name)
        conditions.append(name.contains(query.search.lower(), autoescape=True))
    page = fetch_page(
        _COLUMNS,
        WEBHOOKS.c.id,
        Matching(WEBHOOKS.c.id, conditions),
        query.window,
        key=sort_key_of(query, _KEYS, WEBHOOKS.c.id),
        may_read=actor.can(Capability.MANAGE_WEBHOOKS),
    )
    rows: Any = page.rows
    return as_records(_COLUMNS, rows), page.total or 0


def records_by_id(ids: Sequence[int]) -> list[Record]:
    """Return webhooks in the order of ``ids``."""
    wanted = [min(each, INT64_MAX) for each in ids]
    rows = fetch_by_ids(fetch, _COLUMNS, WEBHOOKS.c.id, wanted)
    return [each for each in as_records(_COLUMNS, rows) if each["is_bare"]]
