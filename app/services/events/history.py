"""The history of a record: its latest events, and the users who caused them (admin 2)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.auth.principals import Capability, Principal
from app.db.read_pool import fetch
from app.db.records import Columns, Row, as_printed
from app.models import EVENTS, USERS
from app.services.events.sequence import number_events


def latest_events(
    actor: Principal, resource: str, resource_id: int, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the latest events of a record, newest first, each with the name of its user.

    Args:
        actor: the principal of the request.
        resource: the type of the record.
        resource_id: its ID.
        columns: what to select. The username follows, or None.
        limit: the maximum number of events.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_events", Capability.READ_EVENTS)
    number_events()
    selected = [as_printed(column).label(f"column_{i}") for i, column in enumerate(columns)]
    return fetch(
        select(*selected, USERS.c.username)
        .outerjoin(USERS, USERS.c.id == EVENTS.c.user_id)
        .where(
            EVENTS.c.resource == resource,
            EVENTS.c.resource_id == resource_id,
            EVENTS.c.id.is_not(None),
        )
        .order_by(EVENTS.c.id.desc())
        .limit(limit)
    )
