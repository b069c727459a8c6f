"""When coupons with an expiry date stop working (spec 2.1, redemptions 2).

An expiry date is a day without a zone. By the specification, the coupon stops working at midnight
UTC at the beginning of that day. With a zone, the date is the last day on which it works, and the
coupon stops working at the end of that day in the zone, whether it has 23, 24 or 25 hours.
"""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.conversions.dates import in_zone
from app.conversions.intervals import start_of_day

_ONE_DAY = timedelta(days=1)


def latest_expired(moment: datetime, zone: ZoneInfo | None) -> date:
    """Return the latest expiry date with which a coupon no longer works at a moment.

    Args:
        moment: a time with a zone.
        zone: the zone of the last day; None for midnight UTC.
    """
    if zone is None:
        return moment.astimezone(UTC).date()
    return in_zone(moment, zone).date() - _ONE_DAY


def end_of_expiry(expiry: date, zone: ZoneInfo | None) -> datetime:
    """Return the first instant in UTC at which a coupon with an expiry date no longer works."""
    if zone is None:
        return datetime.combine(expiry, time(), UTC)
    try:
        return start_of_day(expiry + _ONE_DAY, zone)
    except OverflowError:  # the end of the year 9999
        return datetime.max.replace(tzinfo=UTC)


def last_day(expiry: date, zone: ZoneInfo | None) -> date:
    """Return the last day on which a coupon with an expiry date works, in UTC or in the zone."""
    return expiry if zone or expiry == date.min else expiry - _ONE_DAY


def expiry_before(day: date, zone: ZoneInfo | None) -> date:
    """Return the expiry date of a coupon that stops working as a day begins, in UTC or the zone."""
    return day if zone is None or day == date.min else day - _ONE_DAY


def expiry_at(moment: datetime, zone: ZoneInfo) -> date:
    """Return the expiry date of a coupon that works until a moment, at least until that moment.

    It is the day of the last instant before it, so both 23:59:59 and midnight after it mean a day.
    """
    try:
        return in_zone(moment - timedelta.resolution, zone).date()
    except OverflowError:  # the beginning of the year 1
        return date.min
