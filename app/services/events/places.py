"""Finding events by time, and by their record, without reading the others."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, case, func, select

from app.conversions.numbers import INT64_MAX
from app.db.read_pool import fetch
from app.db.sql.types import UtcDateTime
from app.models import EVENTS

MARGIN = timedelta(hours=1)
"""How much earlier than a lower ID an event can have been created: transactions take different
times, and the clocks of machines differ."""

_AT: Any = bindparam("at", type_=UtcDateTime)


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


def ids_between(query: Mapping[str, Any]) -> tuple[int, int]:
    """Return the IDs between which all events of a period are, both exclusive.

    IDs ascend with time, except within MARGIN.

    Args:
        query: ``created_at_min`` and ``created_at_max``, or None.
    """
    after, before = 0, INT64_MAX
    if (earliest := query["created_at_min"]) is not None:
        after = _first(earliest, -MARGIN) - 1
    if (latest := query["created_at_max"]) is not None:
        before = _first(latest, MARGIN)
    return after, before


def _first(timestamp: datetime, margin: timedelta) -> int:
    try:
        at = timestamp + margin
    except OverflowError:
        at = timestamp
    return int(fetch(_FIRST_SINCE, {"at": at})[0][0])
