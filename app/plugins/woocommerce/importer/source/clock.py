"""Conversion of the times of a shop, from UTC columns or from the local time of the shop."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from dateutil import tz

from app.conversions.expiry import end_of_expiry, expiry_at

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of records without one."""

_UNIX = re.compile(r"-?[0-9]{1,12}")
_OFFSET = re.compile(r"[-+]?[0-9]{1,2}(?:\.[0-9]+)?")


class ShopClock:
    """Converts the times of a shop to UTC.

    Args:
        timezone_string: the WordPress option of this name: ``Europe/Berlin``, or empty.
        gmt_offset: the WordPress option of this name, in hours. Used without a time zone.
        expiry_zone: the zone in which expiry dates are last days here; None for midnight UTC.
    """

    def __init__(
        self,
        timezone_string: str | None,
        gmt_offset: str | None,
        expiry_zone: ZoneInfo | None = None,
    ) -> None:
        self.expiry_zone = expiry_zone
        self.zone: tzinfo = UTC
        named = tz.gettz(timezone_string) if timezone_string else None
        if named:
            self.zone = named
        elif gmt_offset and _OFFSET.fullmatch(gmt_offset.strip()):
            self.zone = timezone(timedelta(hours=max(-23.0, min(23.0, float(gmt_offset)))))

    def utc(self, gmt: str | None, local: str | None = None) -> datetime | None:
        """Return a time from its UTC column, or from its local column if the UTC column is zero."""
        if found := _parsed(gmt):
            return found.replace(tzinfo=UTC)
        if found := _parsed(local):
            with suppress(OverflowError):  # in the year 1 or 9999
                return found.replace(tzinfo=self.zone).astimezone(UTC)
        return None

    def moment(self, text: str) -> datetime | None:
        """Return the time in a text: Unix seconds, or a date or time in the zone of the shop."""
        if text.isdecimal():
            return from_unix(text)
        with suppress(ValueError, OverflowError):
            found = datetime.fromisoformat(text).replace(microsecond=0)
            return (found if found.tzinfo else found.replace(tzinfo=self.zone)).astimezone(UTC)
        return None

    def on_day(self, moment: datetime, of_day: time) -> datetime:
        """Return the time of the day, in the zone of the shop, in which a moment is."""
        day = moment.astimezone(self.zone).date()
        return datetime.combine(day, of_day, self.zone).astimezone(UTC)

    def expiry(self, timestamp: datetime) -> tuple[date, bool]:
        """Return the expiry date of a coupon, and whether a time of day is dropped.

        Midnight in the time zone of the shop means this day, although it is another time in UTC.
        Where expiry dates are last days, it means the day before.
        """
        if zone := self.expiry_zone:
            day = expiry_at(timestamp, zone)
            return day, end_of_expiry(day, zone) != timestamp
        with suppress(OverflowError):  # in the year 9999
            local = timestamp.astimezone(self.zone)
            if local.time() == time():
                return local.date(), False
        return timestamp.date(), timestamp.time() != time()


def from_unix(text: str | None) -> datetime | None:
    """Return the time for a number of Unix seconds, or None for 0 and for other text."""
    if not text or not _UNIX.fullmatch(text) or int(text) == 0:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _parsed(text: str | None) -> datetime | None:
    if not text or text.startswith("0000"):
        return None
    try:
        return datetime.fromisoformat(text).replace(microsecond=0, tzinfo=None)
    except ValueError:
        return None
