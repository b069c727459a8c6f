"""Reading dates: the forms in which people and programs write a day or a moment.

The functions take a value as parsed from JSON or a query string. They return the converted value
or raise ValueError with a reason that a client can read. They take less than a millisecond, because
text that is longer than any date is rejected first.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from dateutil import parser as dateutil_parser
from dateutil.relativedelta import relativedelta
from dateutil.tz import tzoffset

from app.numbers import int_if_integral

_DATE_MAX_LENGTH = 64  # the longest RFC 2822 date has 37 characters
# A text may name a zone of its own, so these have none.
_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 2, 2))  # noqa: DTZ001  # see above
# RFC 2822 4.3: the zones that have a name.
_ZERO = "must be a date such as 2030-12-31; 0 is not a date."
_ZONES = {"UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5,
          "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}  # fmt: skip


def parse_timestamp(value: Any) -> datetime:
    """Return a UTC date-time from an ISO date or date-time, or Unix seconds (decisions 6).

    A date is its midnight; a time without a zone is UTC.
    """
    written = _short(value)
    # Digits are Unix seconds, but for a year, of which nobody means half past midnight in 1970,
    # and for eight of them that are an ISO date.
    if re.fullmatch(r"@?-?[0-9]{1,13}", written) and not re.fullmatch(r"[0-9]{4}", written):
        iso = _iso(written) if re.fullmatch(r"[0-9]{8}", written) else None
        return iso or _since_epoch(int(written.lstrip("@")))
    # A '+' that a client forgot to encode arrives as a blank.
    written = (
        re.sub(r"(?<=[0-9]) (?=[0-9]{2}:?[0-9]{2}$)", "+", written) if "T" in written else written
    )
    if (found := _iso(written)) is None:
        raise ValueError("must be a date-time such as 2026-11-20T09:38:00Z.")
    return found


def _iso(written: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        return None


def parse_date(value: Any, today: date) -> date | None:
    """Return the day that a text or a number of Unix seconds means; None for empty text.

    Args:
        value: any form of decisions 4: ISO, RFC 2822, ``31 December 2030``, ``12/31/2030``,
            ``tomorrow``, ``+1 month``, Unix seconds. A date-time with an offset is taken to UTC.
            0, as a number or a text, is an error: programs that send it mean "no date", not 1970
            (decisions 14).
        today: the day on which ``tomorrow`` and ``+1 month`` are reckoned, UTC.
    """
    value = int_if_integral(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value == 0:
            raise ValueError(_ZERO)
        return _since_epoch(value).date()
    written = _short(value)
    if not written:
        return None
    if re.fullmatch(r"@?[+-]?0+", written):
        raise ValueError(_ZERO)
    for read in (_relative_day, _numeric_day, _iso_day, _worded_day):
        if (found := read(written, today)) is not None:
            return found
    raise ValueError("must be a date such as 2030-12-31.")


def _short(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a date.")
    written = value.strip()
    if len(written) > _DATE_MAX_LENGTH:
        raise ValueError("is too long for a date.")
    return written


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _since_epoch(seconds: int) -> datetime:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError as error:
        raise ValueError("is a time outside the calendar.") from error


def _relative_day(written: str, today: date) -> date | None:
    words = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
    if (days := words.get(written.lower())) is not None:
        return today + timedelta(days=days)
    found = re.fullmatch(r"([+-]?[0-9]{1,5}) ?(day|week|month|year)s?", written.lower())
    if not found:
        return None
    try:
        # A month's step that meets no such day stops at the month's end (decisions 13).
        return today + relativedelta(**{f"{found[2]}s": int(found[1])})  # type: ignore[arg-type]  # the unit is a name
    except (ValueError, OverflowError) as error:
        raise ValueError("is a day outside the calendar.") from error


def _numeric_day(written: str, _: date) -> date | None:
    """Read 12/31/2030 month first (decisions 4); with '-' or '.' the day is first, as is usual."""
    found = re.fullmatch(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})", written)
    if not found:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    month, day_of_month = (first, second) if found[2] == "/" else (second, first)
    try:
        return date(year, month, day_of_month)
    except ValueError as error:
        raise ValueError("is a day that no calendar has.") from error


def _iso_day(written: str, _: date) -> date | None:
    try:
        return parse_timestamp(
            written.replace("/", "-") if re.match(r"[0-9]{4}/", written) else written
        ).date()
    except ValueError:
        return None


def _worded_day(written: str, _: date) -> date | None:
    """Read a date with a month's name: RFC 2822, 31 December 2030."""
    if not re.search(r"[A-Za-z]{3}", written) or not re.search(r"[0-9]", written):
        return None
    try:
        # What the text does not say is taken from the default. Two defaults tell: a text that
        # leaves the year, the month or the day open ('Jan', '12 May') is no date.
        one, other = (
            dateutil_parser.parse(written, default=default, tzinfos=_zone) for default in _DEFAULTS
        )
        return _utc(one).date() if one == other else None
    except (ValueError, OverflowError, TypeError):
        return None


def _zone(name: str | None, offset: int | None) -> tzoffset | None:
    if name is None and offset is None:
        return None
    if offset is None:
        if name not in _ZONES:
            raise ValueError("names a time zone that is not known.")
        offset = _ZONES[name] * 3600
    return tzoffset(name, offset)
