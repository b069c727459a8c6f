"""Conversion of numbers (decisions 3 and 13)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversions import numbers
from tests.conversions.inputs import anything, outcome

INT64 = 2**63 - 1

# --- integers ---


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("007", 7), ("0", 0), ("9" * 19, INT64), ("9" * 5000, INT64), ("0" * 5000 + "7", 7)]
    + [(text, None) for text in ("", " 7", "+7", "-7", "7.0", "7x", "²", "٣")],
)
def test_whole_number(text, number):
    assert numbers.whole_number(text) == number


INTEGERS = [
    (5, 5),
    ("5", 5),
    (" 5 ", 5),
    (Decimal("5.9"), 5),
    (Decimal("-5.9"), -5),
    ("5.9", 5),
    ("12abc", 12),
    ("-7x", -7),
    ("+7", 7),
    ("1e3", 1),
    ("abc", 0),
    ("", 0),
    ("-", 0),
    (False, 0),
    (True, 1),
    ("0" * 5000 + "7", 7),
    (INT64, INT64),
    (-INT64 - 1, -INT64 - 1),
    (str(INT64), INT64),
    (Decimal("1E+18"), 10**18),
    # Python takes digits of other scripts; a number on the wire has ASCII ones
    ("٣", 0),
    (INT64 + 1, ValueError),
    (-INT64 - 2, ValueError),
    (str(INT64 + 1), ValueError),
    ("9" * 5000, ValueError),
    (Decimal("1E+300"), ValueError),
    (None, ValueError),
    ([], ValueError),
    ([5], ValueError),
    ({}, ValueError),
]


@pytest.mark.parametrize(("value", "expected"), INTEGERS)
def test_integer(value, expected):
    assert outcome(numbers.integer, value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (-5, 5),
        ("-7x", 7),
        (Decimal("-5.9"), 5),
        ("abc", 0),
        (True, 1),
        (-(10**15) + 1, 10**15 - 1),
        (-(10**15), ValueError),  # has more than 15 digits
        ([], ValueError),
    ],
)
def test_count(value, expected):
    assert outcome(numbers.count, value) == expected


@given(anything)
def test_numbers_of_any_value(value):
    number, positive = outcome(numbers.integer, value), outcome(numbers.count, value)
    assert number is ValueError or (type(number) is int and -INT64 - 1 <= number <= INT64)
    assert positive is ValueError or (type(positive) is int and 0 <= positive < 10**15)
    assert positive is ValueError or positive == abs(number)


# --- decimals ---

MONEY = [
    ("10", "10.00"),
    (10, "10.00"),
    ("10.555", "10.56"),
    ("-10.555", "-10.56"),
    ("10.554999", "10.55"),
    ("1.005", "1.01"),  # on the decimal text: as a float it would be 1.00
    (Decimal("1.005"), "1.01"),
    (Decimal("0.125"), "0.13"),
    ("-5", "-5.00"),
    ("+5", "5.00"),
    (".5", "0.50"),
    ("5.", "5.00"),
    (" 5 ", "5.00"),
    ("1e3", "1000.00"),
    ("1E-2", "0.01"),
    ("-0", "0.00"),
    ("-0.001", "0.00"),
    ("0e9999", "0.00"),
    ("1e-9999", "0.00"),
    ("9999999999999999.99", "9999999999999999.99"),
    (9999999999999999, "9999999999999999.00"),
    ("", None),
    ("  ", None),
    ("9999999999999999.995", ValueError),  # rounds to 17 digits
    ("10000000000000000", ValueError),
    (10**16, ValueError),
    ("1e16", ValueError),
    ("1e99999", ValueError),
    ("9" * 5000, ValueError),
    ("abc", ValueError),
    ("12abc", ValueError),
    ("1.234,56", ValueError),
    ("1,5", ValueError),
    ("1_000", ValueError),
    ("٣", ValueError),
    (".", ValueError),
    ("--5", ValueError),
    ("NaN", ValueError),
    ("Infinity", ValueError),
    (Decimal("NaN"), ValueError),
    (Decimal("Infinity"), ValueError),
    (True, ValueError),
    (False, ValueError),
    (None, ValueError),
    ([], ValueError),
    ({}, ValueError),
]


@pytest.mark.parametrize(("value", "expected"), MONEY)
def test_money(value, expected):
    found = outcome(numbers.money, value)
    assert (str(found) if isinstance(found, Decimal) else found) == expected


@given(anything)
def test_money_of_any_value(value):
    found = outcome(numbers.money, value)
    if isinstance(found, Decimal):
        assert found.as_tuple().exponent == -2
        assert abs(found) < 10**16
        assert numbers.money(str(found)) == found
    else:
        assert found is None or found is ValueError


@given(st.decimals(-(10**15), 10**15, places=4))
def test_money_is_rounded_half_away_from_zero(value):
    kept = numbers.money(value)
    assert abs(kept - value) <= Decimal("0.005")
    assert abs(kept) >= abs(value) or abs(kept - value) < Decimal("0.005")


@pytest.mark.parametrize("text", ["1E+3000000", "-1E+99999999", "1E+20"])
def test_large_decimals_stay_decimals(text):
    assert isinstance(numbers.int_if_integral(Decimal(text)), Decimal)


def test_integral_decimals_become_integers():
    found = [numbers.int_if_integral(Decimal(text)) for text in ("5.0", "-1E+19", "0E+30", "0.5")]
    assert found == [5, -(10**19), 0, Decimal("0.5")]
    assert [type(each) for each in found] == [int, int, int, Decimal]
