"""The rules for reading events: the feed, and one event (events 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    select,
    true,
)

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, Row, as_printed, select_where
from app.db.sql.types import UtcDateTime
from app.errors import InvalidParams, ShopError
from app.models import API_KEYS, EVENT_FEED, EVENTS, USERS
from app.services.common.filtering import ListQuery, between
from app.services.common.pagination import default_page_size
from app.services.common.plans import FEW
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


@dataclass(frozen=True, kw_only=True)
class EventQuery(ListQuery):
    """What the feed of events may ask (events 1). It has cursors in place of pages."""

    order: str = "asc"
    after: int | None = None
    before: int | None = None
    type: Sequence[str] | None = None
    resource: Sequence[str] | None = None
    resource_id: int | None = None
    user_id: int | None = None
    request_id: str | None = None


def list_events(actor: Principal, query: EventQuery, columns: Columns) -> EventPage:
    """Return the events that match, in the order of the query. Numbers committed events first.

    The oldest first, they begin after the last one without data.

    Raises:
        ShopError: the capability is missing, a filter is invalid, or the data of events after
            ``filter[after]`` has been removed because of its age.
    """
    conditions, descending = conditions_of(query), query.order == "desc"
    _require_cursor(query, descending=descending)
    actor.require("shop_api_user_cannot_read_events")
    number_events()
    conditions += rare_resources(query)
    size, after = query.limit or default_page_size(), min(query.after or 0, INT64_MAX)
    since, until = ids_between(query)
    if query.before is not None:
        until = min(until, query.before)
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
    if query.after is not None and after < removed_id:
        raise ShopError("shop_api_events_expired", removed_id=removed_id)
    events = [row[:-1] for row in rows if row[-2] is not None]
    return EventPage(events[:size], has_more=len(events) > size)


def _require_cursor(query: EventQuery, *, descending: bool) -> None:
    if descending and query.after is not None:
        raise InvalidParams({"filter[after]": "has no effect with filter[order]=desc."})
    if not descending and query.before is not None:
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


def conditions_of(query: EventQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of an ``EventQuery`` without its cursor.

    Raises:
        InvalidParams: a type or a resource is unknown.
    """
    catalog = current_catalog()
    conditions = between({"created_at": EVENTS.c.created_at}, query)
    for name, wanted, choices in (
        ("type", query.type, list(catalog.event_types)),
        ("resource", query.resource, catalog.event_resources),
    ):
        if wanted is None:
            continue
        for value in wanted:
            if value not in choices:
                reason = f"unknown {name} {value!r}. Known {name}s: {', '.join(choices)}."
                raise InvalidParams({f"filter[{name}]": reason})
        conditions.append(EVENTS.c[name].in_(wanted))
    if query.user_id is not None:
        conditions.append(EVENTS.c.user_id == min(query.user_id, INT64_MAX))
    if query.request_id is not None:
        conditions.append(EVENTS.c.request_id == query.request_id)
    if (resource_id := query.resource_id) is not None:
        conditions.append(EVENTS.c.resource_id == min(resource_id, INT64_MAX))
        resources = query.resource
        conditions.append(EVENTS.c.resource.in_(resources) if resources else HAS_ANY_RESOURCE)
    return conditions


def rare_resources(query: EventQuery) -> list[ColumnElement[bool]]:
    """Return the condition on the resource of the wanted events, if an index finds only a few."""
    types = query.type or ()
    resources = query.resource or sorted({each.partition(".")[0] for each in types})
    if not resources or query.resource_id is not None:
        return []
    has_resource = and_(EVENTS.c.resource.in_(resources), EVENTS.c.id.is_not(None))
    some = select(EVENTS.c.id).where(has_resource).limit(FEW + 1).subquery()
    return [has_resource] if fetch(select(func.count()).select_from(some))[0][0] <= FEW else []


MARGIN = timedelta(hours=1)
"""How much earlier than a lower ID an event can have been created: transactions take different
times, and the clocks of machines differ."""

_AT: BindParameter[datetime] = bindparam("at", type_=UtcDateTime)


def _first_since() -> Select[Any]:
    """Return a select that halves the range of IDs until it finds the first since a time."""
    is_numbered = EVENTS.c.id.is_not(None)
    ids = select(EVENTS.c.id).where(is_numbered).limit(1)
    first, last = (
        func.coalesce(ids.order_by(order).scalar_subquery(), 0, type_=BigInteger)
        for order in (EVENTS.c.id.asc(), EVENTS.c.id.desc())
    )
    halves = select(first.label("low"), (last + 1).label("high")).cte("halves", recursive=True)
    low, high = halves.c
    middle = (low + high) // 2
    created_at = select(EVENTS.c.created_at).where(EVENTS.c.id >= middle).order_by(EVENTS.c.id)
    is_before = created_at.limit(1).correlate(halves).scalar_subquery() < _AT
    half = select(
        case((is_before, middle + 1), else_=low), case((is_before, high), else_=middle)
    ).where(low < high)
    halves = halves.union_all(half)
    return select(halves.c.low).where(halves.c.low >= halves.c.high)


def _resources() -> Select[Any]:
    """Return a select of the distinct resources of all events, one index lookup for each."""
    least = select(func.min(EVENTS.c.resource)).where(EVENTS.c.id.is_not(None))
    found = select(least.scalar_subquery().label("resource")).cte("resources", recursive=True)
    following = least.where(EVENTS.c.resource > found.c.resource).correlate(found)
    found = found.union_all(
        select(following.scalar_subquery()).where(found.c.resource.is_not(None))
    )
    return select(found.c.resource).where(found.c.resource.is_not(None))


_FIRST_SINCE = _first_since()
HAS_ANY_RESOURCE: ColumnElement[bool] = EVENTS.c.resource.in_(_resources())
"""Always true. With this condition, events of a ``resource_id`` alone are found in their index."""


def ids_between(query: EventQuery) -> tuple[int, int]:
    """Return the IDs between which all events of a period are, both exclusive.

    IDs ascend with time, except within MARGIN.

    Args:
        query: ``created_at_min`` and ``created_at_max``, or None.
    """
    after, before = 0, INT64_MAX
    if (earliest := query.created_at_min) is not None:
        after = _first(earliest, -MARGIN) - 1
    if (latest := query.created_at_max) is not None:
        before = _first(latest, MARGIN)
    return after, before


def _first(timestamp: datetime, margin: timedelta) -> int:
    try:
        at = timestamp + margin
    except OverflowError:
        at = timestamp
    return int(fetch(_FIRST_SINCE, {"at": at})[0][0])
