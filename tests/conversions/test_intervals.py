"""Intervals of a calendar (reports 4), compared with the local time of each instant."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from app.conversions.intervals import INTERVALS, intervals, start_of_day

ZONES = (
    "UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia",
    "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Monrovia", "Asia/Beirut",
)  # fmt: skip


def listed(first, last, interval, zone):
    return list(
        intervals(date.fromisoformat(first), date.fromisoformat(last), interval, ZoneInfo(zone))
    )


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def hours_of(interval):
    return (interval.until - interval.since) / timedelta(hours=1)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("UTC", "2026-11-01", 24),
        ("America/New_York", "2026-11-01", 25),
        ("America/New_York", "2026-03-08", 23),
        ("Asia/Kathmandu", "2026-03-08", 24),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Pacific/Apia", "2011-12-29", 24),
        ("Pacific/Apia", "2011-12-30", 0),
        ("Pacific/Apia", "2011-12-31", 24),
    ],
)
def test_length_of_a_day(zone, day, hours):
    (found,) = listed(day, day, "day", zone)
    assert (hours_of(found), found.label) == (hours, day)


def test_labels_and_starts_of_each_interval():
    first = {
        interval: listed("2026-11-01", "2026-11-02", interval, "America/New_York")[0]
        for interval in INTERVALS
    }
    assert {name: (each.label, each.start) for name, each in first.items()} == {
        "hour": ("2026-11-01T00:00-04:00", utc("2026-11-01T04:00")),
        "day": ("2026-11-01", utc("2026-11-01T04:00")),
        "week": ("2026-W44", utc("2026-10-26T04:00")),
        "month": ("2026-11", utc("2026-11-01T04:00")),
        "year": ("2026", utc("2026-01-01T05:00")),
    }


def test_repeated_hours_have_their_offset():
    labels = [each.label for each in listed("2026-11-01", "2026-11-01", "hour", "America/New_York")]
    assert labels[:4] == [
        "2026-11-01T00:00-04:00",
        "2026-11-01T01:00-04:00",
        "2026-11-01T01:00-05:00",
        "2026-11-01T02:00-05:00",
    ]
    assert len(labels) == 25


def test_last_hour_of_a_day_can_be_shorter():
    last = listed("2026-04-05", "2026-04-05", "hour", "Australia/Lord_Howe")[-1]
    assert hours_of(last) == 0.5


def test_a_week_is_limited_to_the_period():
    weeks = listed("2026-11-01", "2026-11-03", "week", "UTC")
    assert [(each.label, each.start, each.since, each.until) for each in weeks] == [
        ("2026-W44", utc("2026-10-26"), utc("2026-11-01"), utc("2026-11-02")),
        ("2026-W45", utc("2026-11-02"), utc("2026-11-02"), utc("2026-11-04")),
    ]


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("around", ["2011-12-30", "2026-03-08", "2018-11-04", "1972-01-07"])
def test_intervals_cover_the_period_without_gaps(zone, interval, around):
    day = date.fromisoformat(around)
    first, last = day - timedelta(days=4), day + timedelta(days=4)
    found = list(intervals(first, last, interval, ZoneInfo(zone)))
    assert found[0].since == start_of_day(first, ZoneInfo(zone))
    assert found[-1].until == start_of_day(last + timedelta(days=1), ZoneInfo(zone))
    assert all(before.until == after.since for before, after in pairwise(found))
    assert all(each.since <= each.until for each in found)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("around", ["2011-12-30", "2026-03-08", "2018-11-04", "2026-10-25"])
def test_a_day_contains_the_instants_with_its_local_date(zone, around):
    """In these zones and years, clocks never return to the day before."""
    middle = date.fromisoformat(around)
    days = list(
        intervals(middle - timedelta(days=3), middle + timedelta(days=3), "day", ZoneInfo(zone))
    )
    instant = days[0].since
    while instant < days[-1].until:
        (day,) = (each.label for each in days if each.since <= instant < each.until)
        assert day == instant.astimezone(ZoneInfo(zone)).date().isoformat()
        instant += timedelta(minutes=15)


@pytest.mark.sample(3)
@pytest.mark.parametrize("zone", ZONES)
def test_first_instant_of_a_day_follows_an_earlier_date(zone):
    day = date(1970, 1, 1)
    while day < date(2027, 1, 1):
        first = start_of_day(day, ZoneInfo(zone))
        assert (first - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).date() < day
        assert first.astimezone(ZoneInfo(zone)).date() >= day
        day += timedelta(days=1)
