"""The rules for reading events: the feed, and one event (events 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, case, func, select, true

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, Row, as_printed, select_where
from app.errors import InvalidParams, ShopError
from app.models import API_KEYS, EVENT_FEED, EVENTS, USERS
from app.services.common.filtering import between
from app.services.common.pagination import default_page_size
from app.services.common.plans import FEW
from app.services.events.places import HAS_ANY_RESOURCE, ids_between
from app.services.events.sequence import number_events

COLUMNS: Mapping[str, ColumnElement[Any]] = {
    name: EVENTS.c[name]
    for name in (
        "id",
        "type",
        "resource",
        "resource_id",
        "created_at",
        "data",
        "request_id",
        "user_id",
        "changes",
    )
} | {
    "actor_user_id": EVENTS.c.user_id,
    "actor_username": select(USERS.c.username)
    .where(USERS.c.id == EVENTS.c.user_id)
    .scalar_subquery(),
    "actor_key_id": EVENTS.c.key_id,
    "actor_key_description": select(API_KEYS.c.description)
    .where(API_KEYS.c.id == EVENTS.c.key_id)
    .scalar_subquery(),
    "actor_origin": case(
        (EVENTS.c.session_id.is_not(None), "page"),
        (EVENTS.c.request_id.is_not(None), "api"),
        else_="command",
    ),
}

# One row, also without a row in the table.
_HAS_ID = EVENTS.c.id == bindparam(WANTED)
_REMOVED = select(
    func.coalesce(func.max(EVENT_FEED.c.removed_id), 0).label("removed_id")
).subquery()


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of the feed: the selected columns of each event, and its ID."""

    rows: Sequence[Row]
    has_more: bool


def list_events(actor: Principal, query: Mapping[str, Any], columns: Columns) -> EventPage:
    """Return the events that match, in the order of the query. Numbers committed events first.

    The oldest first, they begin after the last one without data.

    Args:
        query: a loaded ``EventListQuery``.

    Raises:
        ShopError: the capability is missing, a filter is invalid, or the data of events after
            ``filter[after]`` has been removed because of its age.
    """
    conditions, descending = conditions_of(query), query["order"] == "desc"
    _require_cursor(query, descending=descending)
    actor.require("shop_api_user_cannot_read_events")
    number_events()
    conditions += rare_resources(query)
    size, after = query["limit"] or default_page_size(), min(query["after"] or 0, INT64_MAX)
    since, until = ids_between(query)
    if query["before"] is not None:
        until = min(until, query["before"])
    if not descending:
        conditions.append(EVENTS.c.id > select(_REMOVED.c.removed_id).scalar_subquery())
    columns = [as_printed(column).label(f"column_{i}") for i, column in enumerate(columns)]
    page = (
        select(*columns, EVENTS.c.id)
        .where(EVENTS.c.id > bindparam("after", type_=BigInteger), EVENTS.c.id < until, *conditions)
        .order_by(EVENTS.c.id.desc() if descending else EVENTS.c.id)
        .limit(bindparam("size", type_=BigInteger))
        .subquery()
    )
    # One statement: between two, the events after the cursor could be removed.
    rows = fetch(
        select(*page.c, _REMOVED.c.removed_id)
        .select_from(_REMOVED.outerjoin(page, true()))
        .order_by(page.c.id.desc() if descending else page.c.id),
        {"after": max(after, since), "size": size + 1},
    )
    removed_id = rows[0].removed_id
    if query["after"] is not None and after < removed_id:
        raise ShopError("shop_api_events_expired", removed_id=removed_id)
    events = [row[:-1] for row in rows if row[-2] is not None]
    return EventPage(events[:size], has_more=len(events) > size)


def _require_cursor(query: Mapping[str, Any], *, descending: bool) -> None:
    if descending and query["after"] is not None:
        raise InvalidParams({"filter[after]": "has no effect with filter[order]=desc."})
    if not descending and query["before"] is not None:
        raise InvalidParams({"filter[before]": "requires filter[order]=desc."})


def get_event(actor: Principal, event_id: int, columns: Columns) -> Row:
    """Return the event with this ID.

    Raises:
        ShopError: the event does not exist, it has been removed because of its age, or the
            capability is missing.
    """
    number_events()
    return known_event(actor, event_id, columns)


def known_event(actor: Principal, event_id: int, columns: Columns) -> Row:
    """Do the same as ``get_event`` for an ID that the client has read, without numbering events."""
    found = select_where(tuple(columns), EVENTS.c.id, _HAS_ID)
    rows: Sequence[Row] = fetch(found, {WANTED: event_id})
    if not rows:
        removed_id = fetch(select(_REMOVED))[0][0]
        if 0 < event_id <= removed_id:
            raise ShopError("shop_api_events_expired", removed_id=removed_id)
        raise ShopError("shop_api_invalid_event_id")
    actor.require("shop_api_user_cannot_read_event")
    return rows[0]


def conditions_of(query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of a loaded ``EventListQuery`` without its cursor.

    Raises:
        InvalidParams: a type or a resource is unknown.
    """
    catalog = current_catalog()
    conditions = between({"created_at": EVENTS.c.created_at}, query)
    for name, choices in (
        ("type", list(catalog.event_types)),
        ("resource", catalog.event_resources),
    ):
        wanted = query[name]
        if wanted is None:
            continue
        for value in wanted:
            if value not in choices:
                reason = f"unknown {name} {value!r}. Known {name}s: {', '.join(choices)}."
                raise InvalidParams({f"filter[{name}]": reason})
        conditions.append(EVENTS.c[name].in_(wanted))
    if query["user_id"] is not None:
        conditions.append(EVENTS.c.user_id == min(query["user_id"], INT64_MAX))
    if query["request_id"] is not None:
        conditions.append(EVENTS.c.request_id == query["request_id"])
    if (resource_id := query["resource_id"]) is not None:
        conditions.append(EVENTS.c.resource_id == min(resource_id, INT64_MAX))
        resources = query["resource"]
        conditions.append(EVENTS.c.resource.in_(resources) if resources else HAS_ANY_RESOURCE)
    return conditions


def rare_resources(query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the condition on the resource of the wanted events, if an index finds only a few."""
    types = query["type"] or ()
    resources = query["resource"] or sorted({each.partition(".")[0] for each in types})
    if not resources or query["resource_id"] is not None:
        return []
    has_resource = and_(EVENTS.c.resource.in_(resources), EVENTS.c.id.is_not(None))
    some = select(EVENTS.c.id).where(has_resource).limit(FEW + 1).subquery()
    return [has_resource] if fetch(select(func.count()).select_from(some))[0][0] <= FEW else []
