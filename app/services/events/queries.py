"""The rules for reading events: the feed, and one event (events 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import repeat

from orjson import Fragment
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
from app.db.read_pool import MAX_SELECTS, fetch
from app.db.records import WANTED, Columns, NamedColumns, Row, as_printed, select_where
from app.db.sql.functions import is_selected
from app.db.sql.types import Id, UtcDateTime
from app.errors import InvalidParams, Sentence, ShopError
from app.models import API_KEYS, EVENT_FEED, EVENTS, USERS
from app.services.common.erased import IS_ANY, IS_HIDDEN
from app.services.common.filtering import ListQuery
from app.services.common.pagination import default_page_size
from app.services.common.plans import FEW
from app.services.events.erasure import hidden_data
from app.services.events.sequence import number_events

COLUMNS: NamedColumns = {
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

# The same objects for each query, so that a page is selected by the same statement.
_IS_WANTED: Mapping[str, ColumnElement[bool]] = {
    "created_at_min": EVENTS.c.created_at >= bindparam("created_at_min", type_=UtcDateTime),
    "created_at_max": EVENTS.c.created_at <= bindparam("created_at_max", type_=UtcDateTime),
    "type": EVENTS.c.type.in_(bindparam("type", expanding=True)),
    "resource": EVENTS.c.resource.in_(bindparam("resource", expanding=True)),
    "user_id": EVENTS.c.user_id == bindparam("user_id", type_=Id),
    "request_id": EVENTS.c.request_id == bindparam("request_id"),
    "resource_id": EVENTS.c.resource_id == bindparam("resource_id", type_=Id),
}
_IS_RARE = and_(EVENTS.c.resource.in_(bindparam("rare", expanding=True)), EVENTS.c.id.is_not(None))
_NUMBER_OF_RARE = select(func.count()).select_from(
    select(EVENTS.c.id).where(_IS_RARE).limit(FEW + 1).subquery()
)

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
    values = _values_of(query)
    if rare := rare_resources(query):
        conditions, values = [*conditions, _IS_RARE], values | {"rare": rare}
    size, after = query.limit or default_page_size(), min(query.after or 0, INT64_MAX)
    since, until = ids_between(query)
    if query.before is not None:
        until = min(until, query.before)
    values |= {"after": max(after, since), "until": until, "size": size + 1}
    selected = partial(_page, tuple(columns), tuple(conditions), descending=descending)
    rows = fetch(selected(is_hidden=IS_ANY), values)
    if any(row.is_hidden for row in rows):  # rare, and PostgreSQL plans it for longer than it reads
        rows = fetch(selected(is_hidden=IS_HIDDEN), values)
    removed_id = rows[0].removed_id
    if query.after is not None and after < removed_id:
        raise ShopError("shop_api_events_expired", removed_id=removed_id)
    found = [row for row in rows if row.id is not None]
    hidden = [row.id for row in found if row.is_hidden]
    events = _without_hidden(columns, [row[:-2] for row in found], hidden)
    return EventPage(events[:size], has_more=len(events) > size)


@lru_cache(MAX_SELECTS)
def _page(
    columns: tuple[ColumnElement[object], ...],
    conditions: tuple[ColumnElement[bool], ...],
    *,
    descending: bool,
    is_hidden: ColumnElement[bool],
) -> Select[object]:
    """Return a select of a page of events and of the last event without data.

    It is one statement: between two, the events after the cursor could be removed.
    """
    shown = [as_printed(column).label(f"column_{i}") for i, column in enumerate(columns)]
    if not descending:
        is_kept = EVENTS.c.id > select(_REMOVED.c.removed_id).scalar_subquery()
        conditions = (*conditions, is_kept)
    after, until = (bindparam(name, type_=BigInteger) for name in ("after", "until"))
    page = (
        select(*shown, EVENTS.c.id, is_hidden.label("is_hidden"))
        .where(EVENTS.c.id > after, EVENTS.c.id < until, *conditions)
        .order_by(EVENTS.c.id.desc() if descending else EVENTS.c.id)
        .limit(bindparam("size", type_=BigInteger))
        .subquery()
    )
    return (
        select(*page.c, _REMOVED.c.removed_id)
        .select_from(_REMOVED.outerjoin(page, true()))
        .order_by(page.c.id.desc() if descending else page.c.id)
    )


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
    found = select_where((*columns, IS_HIDDEN), EVENTS.c.id, _HAS_ID)
    rows: Sequence[Row] = fetch(found, {WANTED: event_id})
    if not rows:
        removed_id = fetch(select(_REMOVED))[0][0]
        if 0 < event_id <= removed_id:
            raise ShopError("shop_api_events_expired", removed_id=removed_id)
        raise ShopError("shop_api_invalid_event_id")
    actor.require("shop_api_user_cannot_read_event")
    *values, is_hidden, _ = rows[0]
    return _without_hidden(columns, [(*values, event_id)], [event_id] if is_hidden else [])[0]


def _without_hidden(columns: Columns, rows: Sequence[Row], hidden: Sequence[int]) -> Sequence[Row]:
    """Return rows of selected columns and the ID, without the personal data of some events."""
    if not hidden:
        return rows
    stored = fetch(select(EVENTS).where(EVENTS.c.id.in_(hidden)))
    shown = {event.id: hidden_data(event.data, event.changes) for event in stored}

    def value(column: ColumnElement[object], row: Row, found: object) -> object:
        for name, text in shown.get(row[-1], {}).items():
            if column is COLUMNS[name]:
                return None if text is None else Fragment(text)
        return found

    return [(*map(value, columns, repeat(row), row), row[-1]) for row in rows]


def conditions_of(query: EventQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of an ``EventQuery`` without its cursor.

    Raises:
        InvalidParams: a type or a resource is unknown.
    """
    catalog = current_catalog()
    for name, wanted, choices in (
        ("type", query.type, list(catalog.event_types)),
        ("resource", query.resource, catalog.event_resources),
    ):
        if wanted is None:
            continue
        for value in wanted:
            if value not in choices:
                reason = Sentence(
                    "unknown {0} {1}. Known {0}s: {2}.", name, repr(value), ", ".join(choices)
                )
                raise InvalidParams({f"filter[{name}]": reason})
    conditions = [_IS_WANTED[name] for name in _values_of(query)]
    if query.resource_id is not None and not query.resource:
        conditions.append(HAS_ANY_RESOURCE)
    return conditions


def _values_of(query: EventQuery) -> dict[str, object]:
    """Return the values of the conditions of a query, by the names of _IS_WANTED."""
    found = {name: getattr(query, name) for name in _IS_WANTED}
    return {
        name: min(value, INT64_MAX) if name in {"user_id", "resource_id"} else value
        for name, value in found.items()
        if value is not None
    }


def rare_resources(query: EventQuery) -> list[str]:
    """Return the resources of the wanted events, if an index finds only a few events of them."""
    types = query.type or ()
    resources = query.resource or sorted({each.partition(".")[0] for each in types})
    if not resources or query.resource_id is not None:
        return []
    is_rare = fetch(_NUMBER_OF_RARE, {"rare": list(resources)})[0][0] <= FEW
    return list(resources) if is_rare else []


MARGIN = timedelta(hours=1)
"""How much earlier than a lower ID an event can have been created: transactions take different
times, and the clocks of machines differ."""

_AT: BindParameter[datetime] = bindparam("at", type_=UtcDateTime)


def _first_since() -> Select[object]:
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


def _resources() -> Select[object]:
    """Return a select of the distinct resources of all events, one index lookup for each."""
    least = select(func.min(EVENTS.c.resource)).where(EVENTS.c.id.is_not(None))
    found = select(least.scalar_subquery().label("resource")).cte("resources", recursive=True)
    following = least.where(EVENTS.c.resource > found.c.resource).correlate(found)
    found = found.union_all(
        select(following.scalar_subquery()).where(found.c.resource.is_not(None))
    )
    return select(found.c.resource).where(found.c.resource.is_not(None))


_FIRST_SINCE = _first_since()
HAS_ANY_RESOURCE: ColumnElement[bool] = is_selected(
    EVENTS.c.resource, _resources().scalar_subquery()
)
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
