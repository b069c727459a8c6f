"""The latest events, of a record or of all, and the users who caused them (admin 2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select

from app.auth.principals import Principal
from app.db.read_pool import fetch
from app.db.records import Columns, Row, as_printed
from app.models import API_KEYS, EVENTS, USERS
from app.services.events.queries import conditions_of, rare_resources
from app.services.events.sequence import number_events


def latest_events(
    actor: Principal, resource: str, resource_id: int, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the latest events of a record, newest first, each with its user, key and session.

    Args:
        columns: what to select. The username, the description of the key, and the IDs of the key
            and of the session follow, or None.

    Raises:
        ShopError: the capability is missing.
    """
    of_record = (EVENTS.c.resource == resource, EVENTS.c.resource_id == resource_id)
    return _newest_first(actor, of_record, columns, limit)


def recent_events(
    actor: Principal, query: Mapping[str, Any], before: int, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the latest events that match, newest first, each with the name of its user.

    Args:
        query: a loaded ``EventListQuery``, without its cursor.
        before: only events with a lower ID; 0 for all.
        columns: what to select. Who made the change follows, as in ``latest_events``.

    Raises:
        InvalidParams: a type or a resource is unknown.
        ShopError: the capability is missing.
    """
    conditions = [*conditions_of(query), *rare_resources(query)]
    if before:
        conditions.append(EVENTS.c.id < before)
    return _newest_first(actor, conditions, columns, limit)


def _newest_first(
    actor: Principal, conditions: Sequence[ColumnElement[bool]], columns: Columns, limit: int
) -> Sequence[Row]:
    actor.require("shop_api_user_cannot_read_events")
    number_events()
    selected = [as_printed(column).label(f"column_{i}") for i, column in enumerate(columns)]
    return fetch(
        select(
            *selected,
            USERS.c.username,
            API_KEYS.c.description,
            EVENTS.c.key_id,
            EVENTS.c.session_id,
        )
        .outerjoin(USERS, USERS.c.id == EVENTS.c.user_id)
        .outerjoin(API_KEYS, API_KEYS.c.id == EVENTS.c.key_id)
        .where(*conditions, EVENTS.c.id.is_not(None))
        .order_by(EVENTS.c.id.desc())
        .limit(limit)
    )
