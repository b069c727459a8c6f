"""Input rules of a coupon, at a create and at an update (spec 2.1; decisions 3, 4, 13).

Each conversion has tests of its own in ``tests/conversions``. The rows here show which of them each
field uses. A row has the values that are read alike.
"""

import calendar
from datetime import UTC, date, datetime, timedelta

import pytest

from app.conversions.numbers import MAX_COUNT
from tests.api_client import refused_params, reply
from tests.coupons.input import (
    AMOUNTS,
    COUNTS,
    FLAGS,
    IDS,
    MAX,
    TEXTS,
    Raw,
    assert_rejected,
    assert_stored,
    stored,
)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("summer", ["summer", "SUMMER", "  summer  ", "\tsummer\n"]),
        ("summer", ["sum\u0001\u0007\u001b\u007fmer", "sum\u009fmer", "<b>Summer</b>"]),
        ("summer", ["sum<br/>mer", "summer<!-- now -->", '<a href="x">summer</a>']),
        ("summer", ["<scr<b>ipt>summer", "&lt;b&gt;summer"]),
        ("big summer", ["big  summer", "big\t\n\r\fsummer", "big\u00a0\u2003summer"]),
        ("a < b", ["a < b"]),
        ("1<2", ["1<2"]),
        ("<3", ["<3"]),
        ("a & b", ["a & b", "a &amp; b"]),
        ("a b", ["a&nbsp;b"]),
        ("<", ["&amp;lt;"]),
        ("abc", ["&#65;bc"]),
        ("caf\u00e9", ["caf&eacute;", "cafe\u0301", "CAFE\u0301"]),
        ("äöü", ["ÄÖÜ"]),
        ("strasse", ["STRASSE"]),
        ("straße", ["Straße"]),
        ("οδο\u03c2", ["ΟΔΟΣ"]),
        ("дядя", ["ДЯДЯ"]),
        ("50% a_b-c.d/e > 🎉", ["50% a_b-c.d/e > 🎉"]),
        ("'; drop table coupons; --", ["'; DROP TABLE coupons; --"]),
        ("0", [0, "0"]),
        ("-5", [-5]),
        ("1.5", [1.5]),
        ("🎉" * 200, ["🎉" * 200]),
    ],
)
def test_code_is_normalized(admin, make_coupon, code, given):
    assert_stored(admin, make_coupon, {"code": code}, "before", given)


@pytest.mark.parametrize(
    "given",
    [
        ["", "  blanks stay  ", "two\nlines\r\n\tand a tab", "\\ \" ' % _", "x" * 65_536],
        ["<b>bold</b> &amp; more", "cafe\u0301", "\u0001\u007f\u0085", "\u200b\ufeff\uffff"],
        ["日本語 🎉 עברית"],
    ],
    ids=["blanks", "signs", "scripts"],
)
def test_description_is_returned_as_sent(admin, make_coupon, given):
    for text in given:
        assert_stored(admin, make_coupon, {"description": text}, "before", [text])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Raw(r'"\ud83c\udf89"'), "🎉"),
        (Raw(r'"a\/b\u0041"'), "a/bA"),
        (-7, "-7"),
        (1.5, "1.5"),
        (Raw("1.0"), "1.0"),
        (Raw("12345678901234567.123"), "12345678901234567.123"),
        (MAX + 1, str(MAX + 1)),
        (-(10**300), str(-(10**300))),
    ],
)
def test_description_keeps_the_digits_of_numbers(admin, make_coupon, given, text):
    assert_stored(admin, make_coupon, {"description": text}, "before", [given])


@pytest.mark.parametrize(
    ("flag", "given"),
    [
        (True, [True]),
        (False, [False, "true", "yes", "1", "", "\0"]),
        (False, [1, 1.0, 0, 10**30, [], [True], {}, {"a": True}]),
    ],
)
def test_flag_is_true_for_true_only(admin, make_coupon, flag, given):
    assert_stored(admin, make_coupon, dict.fromkeys(FLAGS, flag), True, given)


@pytest.mark.parametrize(
    ("ids", "given"),
    [
        ([], [[], [None], [0, "0", "", "abc", None, False, 0.5]]),
        ([1], [[True], [0, "0", "", "abc", None, False, 0.5, 1]]),
        ([3, 1, 2], [[3, 1, 2]]),
        ([1, 1], [[1, 1]]),
        ([5, 6, 7, 8], [["5", " 6 ", "7x", "8.9"]]),
        ([5, -5], [[5.9, -5.9]]),
        ([-3, -4], [[-3, "-4x"]]),
        ([MAX, -MAX - 1], [[MAX, -MAX - 1]]),
        (list(range(1, 1001)), [list(range(1, 1001))]),
    ],
)
def test_ids(admin, make_coupon, ids, given):
    assert_stored(admin, make_coupon, dict.fromkeys(IDS, ids), [77], given)


@pytest.mark.parametrize(
    ("emails", "given"),
    [
        (["b@example.com", "a@example.com"], [["b@example.com", "a@example.com"]]),
        (["ann@example.com"], [[" ann@example.com\n"], ["an n@example.com"]]),
        (["ann@example.com"], [["x", "ann@example.com", ""]]),
        (["Ann@example.com"], [["Ann@EXAMPLE.Com"]]),
        (["annx@example.com"], [["ann(x)@example.com"]]),
        (["ann+tag@example.com", "o'neil@example.com"], None),
        (["*@example.com", "*.smith@example.com"], None),
        (["ann@shop.test", "ann@shop.local", "jos\u00e9@example.com"], None),
        ([], [[], ["", " ", None, "ann", "ann@", "@example.com", "@", "ann@localhost", 5, 1.5]]),
        ([], [["ann.@example.com", "ann..b@example.com", "ann@example..com", "ann@-example.com"]]),
        ([], [["a" * 65 + "@example.com"], ["ann@" + "b" * 64 + ".com"]]),
    ],
)
def test_emails(admin, make_coupon, emails, given):
    """None stands for the addresses that are stored."""
    given = given or [emails]
    assert_stored(admin, make_coupon, {"customer_emails": emails}, ["z@example.com"], given)


@pytest.mark.sample(5)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("amount", "given"),
    [
        ("10.00", ["10", " 10 ", "\t10\n", 10]),
        ("0.01", ["0.005"]),
        ("-0.01", ["-0.005"]),
        (
            "0.00",
            [0, "", "  ", "-0", Raw("-0.0"), "0.0049", "-0.004", "1e-99", Raw("1e-99"), "0e99"],
        ),
        ("9999999999999999.99", ["9999999999999999.99", Raw("9999999999999999.99")]),
        ("-9999999999999999.99", ["-9999999999999999.99"]),
        ("2.68", [Raw("2.675")]),
        ("10.50", [10.5]),
        ("10.56", ["10.555"]),
        ("10.55", ["10.554999"]),
        ("-10.56", ["-10.555"]),
        ("5.00", ["+5", "5.", "0" * 40 + "5"]),
        ("-5.00", ["-5", -5]),
        ("0.50", [".5"]),
        ("-0.50", ["-.5"]),
        ("1000.00", ["1e3", "1E3", Raw("1e3")]),
        ("150.00", ["1.5e+2"]),
        ("2.50", ["25e-1"]),
        ("1.01", [Raw("1.005")]),
        ("1.12", [Raw("1.115")]),
        ("7.00", ["0007"]),
        ("9999999999999999.00", [9999999999999999]),
        ("0.33", ["0." + "3" * 200]),
    ],
)
def test_decimal(admin, make_coupon, amount, given):
    assert_stored(admin, make_coupon, dict.fromkeys(AMOUNTS, amount), "77.77", given)


@pytest.mark.parametrize(
    ("number", "given"),
    [
        (5, [5, "5", " 5 ", "\t5\n", 5.9, "5.9", "+5", -5, "-5", -5.9]),
        (0, [0, 0.9, "0x1f", "abc", "x5", "- 5", "", " ", "٣", False, Raw("0e30")]),
        (1, [True, "1e3", "1,000"]),
        (7, ["007", "-7x", "0" * 50 + "7"]),
        (12, ["12abc"]),
        (1000, [Raw("1e3")]),
        (10**14, [Raw("1e14")]),
        (900719925474099, [Raw("900719925474099.9")]),
        (MAX_COUNT, [MAX_COUNT, -MAX_COUNT, str(MAX_COUNT)]),
    ],
)
def test_count(admin, make_coupon, number, given):
    limits = dict.fromkeys(("usage_limit", "usage_limit_per_user"), number or None)
    assert_stored(admin, make_coupon, dict.fromkeys(COUNTS, number) | limits, 77, given)


@pytest.mark.parametrize(
    ("day", "given"),
    [
        ("2030-12-31", ["2030-12-31", "2030-12-31T23:59:59", "2030-12-31 23:59:59"]),
        ("2030-12-31", ["2030-12-31T23:59:59Z", "2030-12-31T23:59:59.999Z"]),
        ("2030-12-31", ["Tue, 31 Dec 2030 10:00:00 +0000", "Tue, 31 Dec 2030 23:30:00 GMT"]),
        ("2030-12-31", ["31 Dec 2030 10:00 +0000", "31 December 2030", "12/31/2030"]),
        ("2030-12-31", [1924991999, "1924991999", Raw("1.9249919990e9")]),
        ("2031-01-01", ["2030-12-31T23:30:00-05:00", "Tue, 31 Dec 2030 23:30:00 -0500"]),
        ("2031-01-01", ["Tue, 31 Dec 2030 23:30:00 EST", 1924992000]),
        ("2030-12-30", ["2030-12-31T00:30:00+02:00", "2030-12-31T00:30:00+0200"]),
        ("2028-02-29", ["2028-02-29"]),
        ("2030-05-01", ["1 may 2030"]),
        ("2030-01-02", ["1/2/2030", "01/02/2030"]),
        ("1970-01-02", [86400, 86400.0]),
        ("1970-01-01", ["1970-01-01"]),
        ("1969-12-31", [-1]),
        ("0001-01-01", ["0001-01-01"]),
        ("9999-12-31", ["9999-12-31"]),
        (None, [""]),
    ],
)
def test_expiry_date(admin, make_coupon, day, given):
    expected = {"expiry_date": day and f"{day}T00:00:00Z"}
    assert_stored(admin, make_coupon, expected, "2029-09-09", given)


def month_on(day):
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


@pytest.mark.parametrize(
    ("given", "reckon"),
    [
        ("tomorrow", lambda today: today + timedelta(days=1)),
        ("Tomorrow", lambda today: today + timedelta(days=1)),
        ("+1 month", month_on),
    ],
)
def test_expiry_date_from_today(admin, make_coupon, given, reckon):
    before = datetime.now(UTC).date()
    coupons = stored(admin, make_coupon, ["expiry_date"], "2029-09-09", given)
    after = datetime.now(UTC).date()
    possible = {f"{reckon(today)}T00:00:00Z" for today in (before, after)}
    assert {coupon["expiry_date"] for coupon in coupons} <= possible


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        (TEXTS, [True, False, [], ["a"], {}, {"a": 1}]),
        (TEXTS, ["\0", "a\0b", "\0" * 3, "<b\0>"]),
        (IDS, ["", "1,2", 5, 0, True, False, {}, {"0": 1}, [[]], [1, [2]], [{}]]),
        (IDS, [[MAX + 1], [-MAX - 2], [str(MAX + 1)], ["5\0"], [1, "\0"]]),
        (
            ["customer_emails"],
            ["", "ann@example.com", 5, True, False, {}, {"0": "ann@example.com"}],
        ),
        (["customer_emails"], [[["ann@example.com"]], [{}], [True], [False]]),
        (["customer_emails"], [["ann\0@example.com"], ["ann@example.com", "\0"]]),
        (AMOUNTS, ["abc", "10 EUR", "$10", "0x10", "NaN", "nan", "Infinity", "-inf", "١٢", "10\0"]),
        (AMOUNTS, ["1.234,56", "1,5", "1 000", "1_000"]),
        (AMOUNTS, ["--5", "+-5", "5-", ".", "-", "e3", "1e", "1e3.5"]),
        (AMOUNTS, [True, False, [], [10], {}]),
        (AMOUNTS, [10**16, -(10**16), "10000000000000000", "9999999999999999.995"]),
        (AMOUNTS, ["1e16", "1e9999", "1e99999", "9" * 5000]),
        (COUNTS, [[], [5], {}, {"a": 1}, "5\0"]),
        (COUNTS, [MAX_COUNT + 1, -MAX_COUNT - 1, MAX, MAX + 1, -MAX - 2, str(MAX_COUNT + 1)]),
        (COUNTS, [str(-MAX - 1), 10**30, Raw("1e19"), Raw("1e30"), "9" * 5000]),
        (["expiry_date"], ["abc", "never", "2030-12-31 nonsense", "nonsense 2030-12-31"]),
        (["expiry_date"], ["2030-02-30", "2029-02-29", "2030-13-01", "2030-00-10", "2030-12-32"]),
        (["expiry_date"], ["02/30/2030", "31/12/2030", "31 February 2030", "31 Foobar 2030"]),
        (["expiry_date"], ["2030-12-31T25:00:00", "2030-12-31T10:61:00", "2030-12-31\0"]),
        (["expiry_date"], ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"]),
        (["expiry_date"], ["+999999 years", "+99999 years", "0000-00-00", "9" * 30, "1" * 5000]),
        (["expiry_date"], [0, 0.0, "0", 10**15, MAX, 10**30, -(10**15), 1.5]),
        (["expiry_date"], [Raw("1e308"), Raw("1e-308"), True, False, [], ["2030-12-31"], {}]),
    ],
)
def test_value_is_rejected(admin, make_coupon, fields, given):
    assert_rejected(admin, make_coupon, fields, given)


WRONG = {
    **{key: [] for key in TEXTS + AMOUNTS + COUNTS},
    **dict.fromkeys([*IDS, "customer_emails"], "x"),
    "expiry_date": "x",
}


def test_every_wrong_field_is_reported_together(admin, make_coupon):
    coupon = make_coupon()
    for method, path in (("POST", "/coupons"), ("PUT", f"/coupons/{coupon['id']}")):
        response = admin.request(method, path, json={"coupon": WRONG})
        assert sorted(refused_params(response)) == sorted(f"coupon.{name}" for name in WRONG)
    assert reply(admin.get("/coupons")) == (200, {"coupons": [coupon]})


def test_null_on_update_changes_nothing(admin, make_coupon):
    coupon = make_coupon(
        code="summer",
        type="percent",
        description="text",
        expiry_date="2030-12-31",
        customer_emails=["ann@example.com"],
        **dict.fromkeys(AMOUNTS, "12.34"),
        **dict.fromkeys(COUNTS, 7),
        **{key: [1, 2] for key in IDS},
        **dict.fromkeys(FLAGS, True),
    )
    for field in (*WRONG, *FLAGS):
        response = admin.put(f"/coupons/{coupon['id']}", {"coupon": {field: None}})
        assert reply(response) == (200, {"coupon": coupon}), field
