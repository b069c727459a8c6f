"""Parsing of dates and timestamps, in less than a millisecond.

Text that is longer than any date is rejected first.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from dateutil import parser as dateutil_parser
from dateutil.relativedelta import relativedelta
from dateutil.tz import tzoffset

from app.conversions.numbers import int_if_integral

_DATE_MAX_LENGTH = 64  # the longest RFC 2822 date has 37 characters
# Without a time zone, because the text can contain its own.
_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 2, 2))  # noqa: DTZ001  # see above
_LEAP_SECOND = re.compile(r"([T ][0-9]{2}:[0-9]{2}:)60")
_ZERO = "must be a date such as 2030-12-31. 0 is not a date."
# Time zone names (RFC 2822, 4.3).
_ZONES = {
    "UT": 0,
    "GMT": 0,
    "UTC": 0,
    "Z": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}


def parse_timestamp(value: object) -> datetime:
    """Parse an ISO date, an ISO date-time or Unix seconds into a UTC date-time (decisions 6).

    A date means midnight. A time without a time zone is UTC.
    """
    text = _short(value)
    # Digits are Unix seconds, except four digits, which are a year and not a time in 1970, and
    # eight digits that are an ISO date.
    if re.fullmatch(r"@?-?[0-9]{1,13}", text) and not re.fullmatch(r"[0-9]{4}", text):
        iso = _iso(text) if re.fullmatch(r"[0-9]{8}", text) else None
        return iso or _since_epoch(int(text.lstrip("@")))
    if (found := _iso(with_plus(text))) is None:
        raise ValueError(
            "must be a date-time such as 2026-11-20T09:38:00Z, a date such as 2026-11-20, or Unix "
            "seconds."
        )
    return found


def with_plus(value: object) -> Any:
    """Return a date-time with the ``+`` of its offset, and other values as they are.

    A ``+`` that a client did not percent-encode arrives as a blank.
    """
    if not isinstance(value, str) or "T" not in value.upper():
        return value
    return re.sub(r"(?<=[0-9]) (?=[0-9]{2}:?[0-9]{2}$)", "+", value)


def _iso(text: str) -> datetime | None:
    """Parse ISO 8601 and RFC 3339, which allows lower case. A leap second ends a minute."""
    text, leap_seconds = _LEAP_SECOND.subn(r"\g<1>59", text.upper())
    try:
        return _utc(datetime.fromisoformat(text)) + timedelta(seconds=leap_seconds)
    except (ValueError, OverflowError):
        return None


def parse_date(value: object, today: date) -> date | None:
    """Parse the UTC date of ``parse_moment``. Returns None for empty text.

    Args:
        today: the UTC date that ``tomorrow`` and ``+1 month`` are relative to.
    """
    found = parse_moment(value, datetime.combine(today, time.min, UTC))
    return found.date() if found else None


def parse_moment(value: object, now: datetime) -> datetime | None:
    """Parse a UTC date-time from text or a number of Unix seconds. Returns None for empty text.

    Args:
        value: any form of decisions 4: ISO, RFC 2822, ``31 December 2030``, ``12/31/2030``,
            ``tomorrow``, ``+1 month``, Unix seconds. A date means midnight. A date-time with an
            offset is converted to UTC. 0, as a number or a string, is an error, because programs
            send it to mean "no date" and not 1970 (decisions 14).
        now: the time in UTC that ``tomorrow`` and ``+1 month`` are relative to.
    """
    value = int_if_integral(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value == 0:
            raise ValueError(_ZERO)
        return _since_epoch(value)
    text = _short(value)
    if not text:
        return None
    if re.fullmatch(r"@?[+-]?0+", text):
        raise ValueError(_ZERO)
    for parse in (_parse_relative, _parse_numeric, _parse_iso, _parse_month_name):
        if (found := parse(text, now)) is not None:
            return found
    raise ValueError("must be a date such as 2030-12-31.")


def _short(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a date.")
    text = value.strip()
    if len(text) > _DATE_MAX_LENGTH:
        raise ValueError("is too long for a date.")
    return text


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _since_epoch(seconds: int) -> datetime:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError as error:
        raise ValueError("is out of range for a date.") from error


def _parse_relative(text: str, now: datetime) -> datetime | None:
    if text.lower() == "now":
        return now
    days = {"today": 0, "tomorrow": 1, "yesterday": -1}.get(text.lower())
    found = re.fullmatch(r"([+-]?[0-9]{1,5}) ?(day|week|month|year)s?", text.lower())
    try:
        if days is not None:
            return datetime.combine(now.date() + timedelta(days=days), time.min, UTC)
        if not found:
            return None
        # A step of months to a day that does not exist ends on the last day of the month
        # (decisions 13).
        return now + relativedelta(**{f"{found[2]}s": int(found[1])})  # type: ignore[arg-type]  # the unit is one of four
    except (ValueError, OverflowError) as error:
        raise ValueError("is out of range for a date.") from error


def _parse_numeric(text: str, _: datetime) -> datetime | None:
    """Parse 12/31/2030 month first (decisions 4), and dates with '-' or '.' day first."""
    found = re.fullmatch(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})", text)
    if not found:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    month, day_of_month = (first, second) if found[2] == "/" else (second, first)
    try:
        return datetime(year, month, day_of_month, tzinfo=UTC)
    except ValueError as error:
        raise ValueError("is not a valid date.") from error


def _parse_iso(text: str, _: datetime) -> datetime | None:
    try:
        return parse_timestamp(text.replace("/", "-") if re.match(r"[0-9]{4}/", text) else text)
    except ValueError:
        return None


def _parse_month_name(text: str, _: datetime) -> datetime | None:
    """Parse a date with the name of a month: RFC 2822, 31 December 2030."""
    if not re.search(r"[A-Za-z]{3}", text) or not re.search(r"[0-9]", text):
        return None
    try:
        # Missing parts are taken from the default. If two defaults lead to different results, the
        # text lacks the year, the month or the day ('Jan', '12 May') and is not a date.
        one, other = (
            dateutil_parser.parse(text, default=default, tzinfos=_zone) for default in _DEFAULTS
        )
        return _utc(one) if one == other else None
    except (ValueError, OverflowError, TypeError):
        return None


def _zone(name: str | None, offset: int | None) -> tzoffset | None:
    if name is None and offset is None:
        return None
    if offset is None:
        if name not in _ZONES:
            raise ValueError("has an unknown time zone.")
        offset = _ZONES[name] * 3600
    return tzoffset(name, offset)


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return a time in another zone; beyond the years 1 to 9999, the first or the last time."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        is_first = moment.year == 1
        return datetime.min.replace(tzinfo=zone) if is_first else datetime.max.replace(tzinfo=zone)
