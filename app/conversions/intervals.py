"""Intervals of a calendar in a time zone: hours, days, weeks, months and years (reports 4).

The functions are pure. A day begins with the first instant whose local date is that day, so days
can have 23 or 25 hours, and a day that a time zone skipped is empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

HOUR, DAY, WEEK, MONTH, YEAR = "hour", "day", "week", "month", "year"
INTERVALS = (HOUR, DAY, WEEK, MONTH, YEAR)

_ONE_DAY, _ONE_HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a calendar, or the part of it that lies within a period.

    Attributes:
        start: the first instant of the whole interval, in UTC.
        label: local name, such as ``2026-11-01``, ``2026-11-01T01:00-05:00``, ``2026-W44``,
            ``2026-11`` or ``2026``.
        since: the first instant within the period.
        until: the instant after the last one within the period. Equals ``since`` if the interval is
            empty.
    """

    start: datetime
    label: str
    since: datetime
    until: datetime


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a local date, in UTC.

    The first instant of a date that does not exist is that of the next date.
    """
    midnight = datetime.combine(day, time())
    instant = midnight.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == midnight:
        return instant
    # Clocks skipped midnight. The offset after the change gives an instant before it.
    before, after = midnight.replace(tzinfo=zone, fold=1).astimezone(UTC), instant
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).replace(tzinfo=None) < midnight:
            before = middle
        else:
            after = middle
    return after


def intervals(first: date, last: date, interval: str, zone: ZoneInfo) -> Iterator[Interval]:
    """Yield the intervals (of INTERVALS) from a local date to another, which is included."""
    if interval == HOUR:
        yield from _hours(first, last, zone)
        return
    begin, end = start_of_day(first, zone), start_of_day(last + _ONE_DAY, zone)
    day = _first_day(first, interval)
    start = start_of_day(day, zone)
    while day <= last:
        following = _next(day, interval)
        until = start_of_day(following, zone)
        yield Interval(start, _label(day, interval), max(start, begin), min(until, end))
        day, start = following, until


def _hours(first: date, last: date, zone: ZoneInfo) -> Iterator[Interval]:
    """Yield hours of 60 minutes from local midnight. The last one of a day can be shorter."""
    begin = start_of_day(first, zone)
    day = first
    while day <= last:
        day += _ONE_DAY
        end = start_of_day(day, zone)
        while begin < end:
            until = min(begin + _ONE_HOUR, end)
            label = begin.astimezone(zone).isoformat(timespec="minutes")
            yield Interval(begin, label, begin, until)
            begin = until


def _first_day(day: date, interval: str) -> date:
    """Return the first day of the interval that contains a day."""
    if interval == WEEK:
        return day - timedelta(days=day.weekday())
    if interval == MONTH:
        return day.replace(day=1)
    return day.replace(month=1, day=1) if interval == YEAR else day


def _next(day: date, interval: str) -> date:
    """Return the first day of the next interval."""
    if interval == DAY:
        return day + _ONE_DAY
    if interval == WEEK:
        return day + timedelta(days=7)
    if interval == MONTH:
        return (day + timedelta(days=31)).replace(day=1)
    return day.replace(year=day.year + 1)


def _label(day: date, interval: str) -> str:
    if interval == WEEK:
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    return day.isoformat()[: {DAY: 10, MONTH: 7, YEAR: 4}[interval]]
