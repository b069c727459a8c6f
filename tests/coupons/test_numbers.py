"""Input rules of the decimals and integers of a coupon (spec 2.1; decisions 3, 13)."""

import pytest

from app.conversions.numbers import MAX_COUNT
from tests.coupons.input import (
    AMOUNTS,
    COUNTS,
    MAX,
    Raw,
    assert_rejected,
    both,
    table,
    twice,
    values,
)

NULL_WHEN_0 = {"usage_limit", "usage_limit_per_user"}


# --- decimals ---


@pytest.mark.sample(5)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("given", "amount"),
    table(
        ("10", "10.00"),
        (" 10 ", "10.00"),
        ("\t10\n", "10.00"),
        (10, "10.00"),
        (0, "0.00"),
        (10.5, "10.50"),
        ("10.555", "10.56"),
        ("10.554999", "10.55"),
        ("0.005", "0.01"),
        ("0.0049", "0.00"),
        ("-5", "-5.00"),
        (-5, "-5.00"),
        ("-10.555", "-10.56"),
        ("-0.005", "-0.01"),
        ("-0.004", "0.00"),
        ("-0", "0.00"),
        (Raw("-0.0"), "0.00"),
        ("+5", "5.00"),
        (".5", "0.50"),
        ("-.5", "-0.50"),
        ("5.", "5.00"),
        ("1e3", "1000.00"),
        ("1E3", "1000.00"),
        ("1.5e+2", "150.00"),
        ("25e-1", "2.50"),
        ("1e-99", "0.00"),
        (Raw("1e3"), "1000.00"),
        (Raw("1.005"), "1.01"),
        (Raw("2.675"), "2.68"),
        (Raw("1.115"), "1.12"),
        (Raw("1e-99"), "0.00"),
        ("0007", "7.00"),
        ("9999999999999999.99", "9999999999999999.99"),
        (Raw("9999999999999999.99"), "9999999999999999.99"),
        ("-9999999999999999.99", "-9999999999999999.99"),
        (9999999999999999, "9999999999999999.00"),
        ("0" * 40 + "5", "5.00"),
        ("0." + "3" * 200, "0.33"),
        ("0e99", "0.00"),
        ("", "0.00"),
        ("  ", "0.00"),
    ),
)
def test_decimal(admin, make_coupon, given, amount):
    assert both(admin, make_coupon, AMOUNTS, given, "77.77") == twice(AMOUNTS, amount)


@pytest.mark.parametrize(
    "value",
    values(
        "abc",
        "1.234,56",
        "1,5",
        "1 000",
        "10 EUR",
        "$10",
        "1_000",
        "--5",
        "+-5",
        "5-",
        ".",
        "-",
        "e3",
        "1e",
        "1e3.5",
        "0x10",
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "١٢",
        "10\0",
        True,
        False,
        [],
        [10],
        {},
        10**16,
        -(10**16),
        "10000000000000000",
        "9999999999999999.995",
        "1e16",
        "1e9999",
        "1e99999",
        "9" * 5000,
    ),
)
def test_decimal_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, AMOUNTS, value)


# --- integers ---


@pytest.mark.parametrize(
    ("given", "number"),
    table(
        (5, 5),
        ("5", 5),
        (" 5 ", 5),
        ("\t5\n", 5),
        (5.9, 5),
        ("5.9", 5),
        (0.9, 0),
        (-5, 5),
        ("-5", 5),
        (-5.9, 5),
        ("-7x", 7),
        ("+5", 5),
        ("12abc", 12),
        ("1e3", 1),
        (Raw("1e3"), 1000),
        ("0x1f", 0),
        ("1,000", 1),
        ("abc", 0),
        ("x5", 0),
        ("- 5", 0),
        ("", 0),
        (" ", 0),
        ("٣", 0),
        (0, 0),
        ("007", 7),
        (False, 0),
        (True, 1),
        (MAX_COUNT, MAX_COUNT),
        (-MAX_COUNT, MAX_COUNT),
        (str(MAX_COUNT), MAX_COUNT),
        ("0" * 50 + "7", 7),
        (Raw("900719925474099.9"), 900719925474099),
        (Raw("1e14"), 10**14),
        (Raw("0e30"), 0),
    ),
)
def test_count(admin, make_coupon, given, number):
    output = dict.fromkeys(COUNTS, number) | dict.fromkeys(NULL_WHEN_0, number or None)
    assert both(admin, make_coupon, COUNTS, given, 77) == [output, output]


@pytest.mark.parametrize(
    "value",
    values(
        [],
        [5],
        {},
        {"a": 1},
        MAX_COUNT + 1,
        -MAX_COUNT - 1,
        MAX,
        MAX + 1,
        -MAX - 2,
        str(MAX_COUNT + 1),
        str(-MAX - 1),
        10**30,
        Raw("1e19"),
        Raw("1e30"),
        "9" * 5000,
        "5\0",
    ),
)
def test_count_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, COUNTS, value)
