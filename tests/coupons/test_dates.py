"""Input rules of the expiry date of a coupon (spec 2.1; decisions 4, 13)."""

import calendar
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.coupons.input import MAX, Raw, assert_rejected, both, table, twice, values


@pytest.mark.parametrize(
    ("given", "day"),
    table(
        ("2030-12-31", "2030-12-31"),
        ("2028-02-29", "2028-02-29"),
        ("2030-12-31T23:59:59", "2030-12-31"),
        ("2030-12-31 23:59:59", "2030-12-31"),
        ("2030-12-31T23:59:59Z", "2030-12-31"),
        ("2030-12-31T23:59:59.999Z", "2030-12-31"),
        ("2030-12-31T23:30:00-05:00", "2031-01-01"),
        ("2030-12-31T00:30:00+02:00", "2030-12-30"),
        ("2030-12-31T00:30:00+0200", "2030-12-30"),
        ("Tue, 31 Dec 2030 10:00:00 +0000", "2030-12-31"),
        ("Tue, 31 Dec 2030 23:30:00 -0500", "2031-01-01"),
        ("Tue, 31 Dec 2030 23:30:00 EST", "2031-01-01"),
        ("Tue, 31 Dec 2030 23:30:00 GMT", "2030-12-31"),
        ("31 Dec 2030 10:00 +0000", "2030-12-31"),
        ("31 December 2030", "2030-12-31"),
        ("1 may 2030", "2030-05-01"),
        ("12/31/2030", "2030-12-31"),
        ("1/2/2030", "2030-01-02"),
        ("01/02/2030", "2030-01-02"),
        (1924992000, "2031-01-01"),
        (1924991999, "2030-12-31"),
        ("1924991999", "2030-12-31"),
        (86400, "1970-01-02"),
        (86400.0, "1970-01-02"),
        (Raw("1.9249919990e9"), "2030-12-31"),
        ("1970-01-01", "1970-01-01"),
        (-1, "1969-12-31"),
        ("0001-01-01", "0001-01-01"),
        ("9999-12-31", "9999-12-31"),
        ("", None),
    ),
)
def test_expiry_date(admin, make_coupon, given, day):
    output = None if day is None else f"{day}T00:00:00Z"
    stored = both(admin, make_coupon, ["expiry_date"], given, "2029-09-09")
    assert stored == twice(["expiry_date"], output)


def month_on(day):
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


@pytest.mark.parametrize(
    ("given", "reckon"),
    table(
        ("tomorrow", lambda today: today + timedelta(days=1)),
        ("Tomorrow", lambda today: today + timedelta(days=1)),
        ("+1 month", month_on),
    ),
)
def test_expiry_date_from_today(admin, make_coupon, given, reckon):
    before = datetime.now(UTC).date()
    stored = both(admin, make_coupon, ["expiry_date"], given, "2029-09-09")
    after = datetime.now(UTC).date()
    possible = {f"{reckon(today)}T00:00:00Z" for today in (before, after)}
    assert {coupon["expiry_date"] for coupon in stored} <= possible


@pytest.mark.parametrize(
    "value",
    values(
        "abc",
        "never",
        "2030-02-30",
        "2029-02-29",
        "2030-13-01",
        "2030-00-10",
        "2030-12-32",
        "02/30/2030",
        "31/12/2030",
        "31 February 2030",
        "31 Foobar 2030",
        "2030-12-31T25:00:00",
        "2030-12-31T10:61:00",
        "2030-12-31 nonsense",
        "nonsense 2030-12-31",
        "2030-12-31\0",
        "0000-00-00",
        "9999-12-31T23:59:59-05:00",
        "0001-01-01T00:00:00+05:00",
        "+999999 years",
        "+99999 years",
        0,
        0.0,
        "0",
        "9" * 30,
        "1" * 5000,
        10**15,
        MAX,
        10**30,
        -(10**15),
        1.5,
        Raw("1e308"),
        Raw("1e-308"),
        True,
        False,
        [],
        ["2030-12-31"],
        {},
    ),
)
def test_expiry_date_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, ["expiry_date"], value)
