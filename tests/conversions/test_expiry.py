"""When an expiry date ends: at midnight UTC, or at the end of the last day in a time zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.conversions.expiry import end_of_expiry, expiry_at, expiry_before, last_day, latest_expired

ENDS = {
    (None, "2030-11-03"): "2030-11-03T00:00",
    ("UTC", "2030-11-03"): "2030-11-04T00:00",
    ("America/New_York", "2030-01-31"): "2030-02-01T05:00",
    # Days with 23 and 25 hours
    ("America/New_York", "2030-03-09"): "2030-03-10T05:00",
    ("America/New_York", "2030-03-10"): "2030-03-11T04:00",
    ("America/New_York", "2030-11-03"): "2030-11-04T05:00",
    ("Europe/Berlin", "2030-03-31"): "2030-03-31T22:00",
    ("Europe/Berlin", "2030-10-27"): "2030-10-27T23:00",
    # The clocks skip midnight, or show the last hour of the day twice
    ("Africa/Cairo", "2026-04-23"): "2026-04-23T22:00",
    ("Africa/Cairo", "2026-10-29"): "2026-10-29T22:00",
    # A zone without 30 December 2011, and the ends of the calendar
    ("Pacific/Apia", "2011-12-29"): "2011-12-30T10:00",
    ("Etc/GMT-9", "0001-01-02"): "0001-01-02T15:00",
    ("America/New_York", "9999-12-30"): "9999-12-31T05:00",
}


@pytest.mark.parametrize(("name", "day"), ENDS)
def test_the_last_instant_of_an_expiry_date(name, day):
    zone, expiry = name and ZoneInfo(name), date.fromisoformat(day)
    end = end_of_expiry(expiry, zone)
    assert f"{end.isoformat()[:16]}" == ENDS[name, day]
    assert latest_expired(end, zone) >= expiry > latest_expired(end - timedelta.resolution, zone)


def test_the_end_of_the_calendar_never_expires():
    tokyo, end = ZoneInfo("Asia/Tokyo"), datetime.max.replace(tzinfo=UTC)
    assert end_of_expiry(date.max, tokyo) == end
    assert latest_expired(end, tokyo) < date.max
    assert expiry_at(datetime.min.replace(tzinfo=UTC), ZoneInfo("UTC")) == date.min
    assert expiry_before(date.min, tokyo) == last_day(date.min, None) == date.min


@pytest.mark.parametrize(("name", "day"), [key for key in ENDS if key[0] and key[1] > "2012"])
def test_a_time_means_the_day_that_it_ends(name, day):
    zone, expiry = ZoneInfo(name), date.fromisoformat(day)
    end = end_of_expiry(expiry, zone)
    one = timedelta(seconds=1)
    for moment, found in (end, 0), (end - one, 0), (end - 9000 * one, 0), (end + one, 1):
        assert expiry_at(moment, zone) == expiry + timedelta(days=found)


def test_a_day_of_the_specification_and_a_last_day():
    day, zone = date(2030, 12, 1), ZoneInfo("Europe/Berlin")
    assert (last_day(day, None), last_day(day, zone)) == (date(2030, 11, 30), day)
    assert (expiry_before(day, None), expiry_before(day, zone)) == (day, date(2030, 11, 30))
