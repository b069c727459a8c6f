"""Parsing of dates and timestamps (decisions 4, 6, 13 and 14)."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversions import dates
from tests.conversions.inputs import anything, outcome, steps

TODAY = date(2026, 11, 20)

DATES = [
    # ISO date and date-time; with an offset it is taken to UTC first
    ("2030-12-31", date(2030, 12, 31)),
    (" 2030-12-31 ", date(2030, 12, 31)),
    ("20301231", date(2030, 12, 31)),
    ("2030-12-31T23:59:59", date(2030, 12, 31)),
    ("2030-12-31 23:59:59", date(2030, 12, 31)),
    ("2030-12-31T23:59:59Z", date(2030, 12, 31)),
    ("2030-12-31T23:59:59.999Z", date(2030, 12, 31)),
    ("2030-12-31T23:30:00-01:00", date(2031, 1, 1)),
    ("2031-01-01T00:30:00+01:00", date(2030, 12, 31)),
    ("2028-02-29", date(2028, 2, 29)),
    # RFC 2822
    ("Tue, 31 Dec 2030 12:00:00 +0000", date(2030, 12, 31)),
    ("Tue, 31 Dec 2030 23:30:00 -0200", date(2031, 1, 1)),
    ("31 Dec 2030 23:30:00 EST", date(2031, 1, 1)),
    ("31 Dec 2030 12:00 GMT", date(2030, 12, 31)),
    # words
    ("31 December 2030", date(2030, 12, 31)),
    ("December 31, 2030", date(2030, 12, 31)),
    ("31 dec 2030", date(2030, 12, 31)),
    # month first
    ("12/31/2030", date(2030, 12, 31)),
    ("1/2/2030", date(2030, 1, 2)),
    # reckoned from today
    ("tomorrow", date(2026, 11, 21)),
    ("Tomorrow", date(2026, 11, 21)),
    ("+1 month", date(2026, 12, 20)),
    ("+2 weeks", date(2026, 12, 4)),
    ("+10 days", date(2026, 11, 30)),
    ("+1 year", date(2027, 11, 20)),
    # Unix seconds
    (1924905600, date(2030, 12, 31)),
    (1924991999, date(2030, 12, 31)),
    (1, date(1970, 1, 1)),
    (-1, date(1969, 12, 31)),
    ("1924905600", date(2030, 12, 31)),
    ("1924991999", date(2030, 12, 31)),
    # no expiry
    ("", None),
    ("  ", None),
    # days that no calendar has
    ("2030-02-30", ValueError),
    ("2029-02-29", ValueError),
    ("2030-13-01", ValueError),
    ("31/12/2030", ValueError),
    ("30 February 2030", ValueError),
    ("Tue, 31 Feb 2030 12:00:00 +0000", ValueError),
    # unintelligible, or half a date
    ("never", ValueError),
    ("2030", ValueError),
    ("December", ValueError),
    ("12 May", ValueError),
    ("December 2030", ValueError),
    ("31 December 2030 12:00 XYZ", ValueError),
    ("+1 fortnight", ValueError),
    ("+99999 years", ValueError),
    # what programs write for no date, not 1970
    (0, ValueError),
    (0.0, ValueError),
    ("0", ValueError),
    (" 00 ", ValueError),
    ("-0", ValueError),
    ("@0", ValueError),
    (10**12, ValueError),
    (10**30, ValueError),
    (-(10**30), ValueError),
    ("9" * 65, ValueError),
    (Decimal("1924905600.5"), ValueError),
    (True, ValueError),
    (False, ValueError),
    (None, ValueError),
    ([], ValueError),
    ({}, ValueError),
]


@pytest.mark.parametrize(("value", "expected"), DATES)
def test_parse_date(value, expected):
    assert outcome(dates.parse_date, value, TODAY) == expected


@pytest.mark.parametrize(
    ("today", "value", "expected"),
    [
        (date(2026, 1, 31), "+1 month", date(2026, 2, 28)),
        (date(2028, 1, 31), "+1 month", date(2028, 2, 29)),
        (date(2026, 8, 31), "+1 month", date(2026, 9, 30)),
        (date(2028, 2, 29), "+1 year", date(2029, 2, 28)),
        (date(2026, 12, 31), "tomorrow", date(2027, 1, 1)),
    ],
)
def test_parse_date_reckoned_stops_at_the_end_of_the_month(today, value, expected):
    assert dates.parse_date(value, today) == expected


datelike = st.text(st.sampled_from("0123456789-/.:+TZ ,adfinortuyJMe"), max_size=40)


@given(anything | datelike)
def test_parse_date_of_any_value(value):
    found = outcome(dates.parse_date, value, TODAY)
    assert found is None or found is ValueError or type(found) is date


@given(st.dates())
def test_parse_date_is_read_as_it_is_written(value):
    written = [
        value.isoformat(),
        f"{value.isoformat()}T12:00:00Z",
        f"{value.month}/{value.day}/{value.year:04}",
    ]
    assert [dates.parse_date(text, TODAY) for text in written] == [value] * 3


TIMESTAMPS = [
    ("2026-11-20T09:38:00Z", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    ("2026-11-20T09:38:00", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    ("2026-11-20 09:38:00", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    ("2026-11-20T09:38Z", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    ("2026-11-20T09:38:00+01:00", datetime(2026, 11, 20, 8, 38, tzinfo=UTC)),
    # a '+' that the client forgot to encode
    ("2026-11-20T09:38:00 01:00", datetime(2026, 11, 20, 8, 38, tzinfo=UTC)),
    ("2026-11-20T09:38:00.5Z", datetime(2026, 11, 20, 9, 38, 0, 500000, tzinfo=UTC)),
    ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
    ("1795167480", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    # RFC 3339 allows lower case and leap seconds
    ("2026-11-20t09:38:00z", datetime(2026, 11, 20, 9, 38, tzinfo=UTC)),
    ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
    ("2017-01-01T05:29:60.5+05:30", datetime(2017, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
    ("9999-12-31T23:59:60Z", ValueError),
    ("2016-12-31T23:59:61Z", ValueError),
    ("yesterday", ValueError),
    ("2026-02-30", ValueError),
    ("2026-11-20T25:00:00Z", ValueError),
    ("0001-01-01T00:00:00+01:00", ValueError),
    ("9999-12-31T23:59:59-01:00", ValueError),
    ("999999999999", ValueError),
    ("2026", ValueError),
    ("", ValueError),
    ("9" * 65, ValueError),
]


@pytest.mark.parametrize(("value", "expected"), TIMESTAMPS)
def test_parse_timestamp(value, expected):
    assert outcome(dates.parse_timestamp, value) == expected


@given(anything | datelike)
def test_parse_timestamp_of_any_value(value):
    found = outcome(dates.parse_timestamp, value)
    assert found is ValueError or found.tzinfo is UTC


# Pieces that dates are made of, and what could keep their readers busy.
date_like = st.lists(
    st.sampled_from(
        ["2030", "-", "12", "31", "T", ":", "+", " ", ",", ".", "/", "GMT", "Mon", "May", "am", "1"]
    )
    | st.text(max_size=4),
    max_size=70,
).map("".join)


@given(date_like)
def test_date_costs_a_bounded_number_of_steps(value):
    """A step is a line of Python, of python-dateutil too; 5,000 of them take half a millisecond."""
    dates.parse_date("31 December 2030", TODAY)  # the first call compiles patterns, too
    assert steps(lambda text: dates.parse_date(text, TODAY), value) < 5000
    assert steps(dates.parse_timestamp, value) < 5000
