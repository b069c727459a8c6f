"""Input rules of a coupon: strings, booleans and arrays (spec 2.1; decisions 3, 4, 13)."""

import pytest

from tests.api_client import refused_params, reply
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

IDS = ["product_ids", "exclude_product_ids", "product_category_ids", "exclude_product_category_ids"]
FLAGS = ["individual_use", "enable_free_shipping", "exclude_sale_items"]
TEXTS = ["code", "type", "description"]


# --- strings ---


@pytest.mark.parametrize(
    ("given", "code"),
    table(
        ("summer", "summer"),
        ("SUMMER", "summer"),
        ("  summer  ", "summer"),
        ("big  summer", "big summer"),
        ("big\t\n\r\fsummer", "big summer"),
        ("\tsummer\n", "summer"),
        ("big\u00a0\u2003summer", "big summer"),
        ("sum\u0001\u0007\u001b\u007fmer", "summer"),
        ("sum\u009fmer", "summer"),
        ("<b>Summer</b>", "summer"),
        ("sum<br/>mer", "summer"),
        ("summer<!-- now -->", "summer"),
        ('<a href="x">summer</a>', "summer"),
        ("<scr<b>ipt>summer", "summer"),
        ("a < b", "a < b"),
        ("a > b", "a > b"),
        ("1<2", "1<2"),
        ("<3", "<3"),
        ("a &amp; b", "a & b"),
        ("a & b", "a & b"),
        ("caf&eacute;", "café"),
        ("&#65;bc", "abc"),
        ("a&nbsp;b", "a b"),
        ("&lt;b&gt;summer", "summer"),
        ("&amp;lt;", "<"),
        ("cafe\u0301", "caf\u00e9"),
        ("CAFE\u0301", "caf\u00e9"),
        ("ÄÖÜ", "äöü"),
        ("STRASSE", "strasse"),
        ("Straße", "straße"),
        ("ΟΔΟΣ", "οδο\u03c2"),
        ("ДЯДЯ", "дядя"),
        ("50%", "50%"),
        ("a_b-c.d/e", "a_b-c.d/e"),
        ("'; DROP TABLE coupons; --", "'; drop table coupons; --"),
        ("🎉", "🎉"),
        ("0", "0"),
        (0, "0"),
        (2030, "2030"),
        (-5, "-5"),
        (1.5, "1.5"),
        ("a" * 200, "a" * 200),
        ("🎉" * 200, "🎉" * 200),
    ),
)
def test_code_is_normalized(admin, make_coupon, given, code):
    assert both(admin, make_coupon, ["code"], given, "before") == twice(["code"], code)


@pytest.mark.parametrize(
    ("given", "description"),
    table(
        ("", ""),
        ("Plain", "Plain"),
        ("  blanks stay  ", "  blanks stay  "),
        ("two\nlines\r\n\tand a tab", "two\nlines\r\n\tand a tab"),
        ("<b>bold</b> &amp; more", "<b>bold</b> &amp; more"),
        ("cafe\u0301", "cafe\u0301"),
        ("\u0001\u007f\u0085", "\u0001\u007f\u0085"),
        ("\u200b\ufeff\uffff", "\u200b\ufeff\uffff"),
        ("日本語 🎉 עברית", "日本語 🎉 עברית"),
        (Raw(r'"\ud83c\udf89"'), "🎉"),
        (Raw(r'"a\/b\u0041"'), "a/bA"),
        ("\\ \" ' % _", "\\ \" ' % _"),
        (5, "5"),
        (-7, "-7"),
        (1.5, "1.5"),
        (Raw("1.0"), "1.0"),
        (Raw("12345678901234567.123"), "12345678901234567.123"),
        (MAX, str(MAX)),
        (MAX + 1, str(MAX + 1)),
        (-(10**300), str(-(10**300))),
        ("x" * 65_536, "x" * 65_536),
    ),
)
def test_description_is_returned_as_sent(admin, make_coupon, given, description):
    stored = both(admin, make_coupon, ["description"], given, "before")
    assert stored == twice(["description"], description)


@pytest.mark.parametrize(
    "value", values(True, False, [], ["a"], {}, {"a": 1}, "\0", "a\0b", "\0" * 3, "<b\0>")
)
def test_string_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, TEXTS, value)


# --- booleans ---


@pytest.mark.parametrize(
    ("given", "flag"),
    table(
        (True, True),
        (False, False),
        ("true", False),
        ("yes", False),
        ("1", False),
        ("", False),
        (1, False),
        (1.0, False),
        (0, False),
        ([], False),
        ([True], False),
        ({}, False),
        ({"a": True}, False),
        (10**30, False),
        ("\0", False),
    ),
)
def test_flag_is_true_for_true_only(admin, make_coupon, given, flag):
    assert both(admin, make_coupon, FLAGS, given, before=True) == twice(FLAGS, flag)


# --- arrays ---


@pytest.mark.parametrize(
    ("given", "ids"),
    table(
        ([], []),
        ([1, 2, 3], [1, 2, 3]),
        ([3, 1, 2], [3, 1, 2]),
        ([1, 1], [1, 1]),
        (["5", " 6 ", "7x", "8.9"], [5, 6, 7, 8]),
        ([5.9, -5.9], [5, -5]),
        ([-3, "-4x"], [-3, -4]),
        ([0, "0", "", "abc", None, False, 0.5, 1], [1]),
        ([True], [1]),
        ([None], []),
        ([MAX, -MAX - 1], [MAX, -MAX - 1]),
        (list(range(1, 1001)), list(range(1, 1001))),
    ),
)
def test_ids(admin, make_coupon, given, ids):
    assert both(admin, make_coupon, IDS, given, [77]) == twice(IDS, ids)


@pytest.mark.parametrize(
    "value",
    values(
        "",
        "1,2",
        5,
        0,
        True,
        False,
        {},
        {"0": 1},
        [[]],
        [1, [2]],
        [{}],
        [MAX + 1],
        [-MAX - 2],
        [str(MAX + 1)],
        ["5\0"],
        [1, "\0"],
    ),
)
def test_ids_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, IDS, value)


@pytest.mark.parametrize(
    ("given", "emails"),
    table(
        ([], []),
        (["ann@example.com"], ["ann@example.com"]),
        (["b@example.com", "a@example.com"], ["b@example.com", "a@example.com"]),
        ([" ann@example.com\n"], ["ann@example.com"]),
        (["Ann@EXAMPLE.Com"], ["Ann@example.com"]),
        (["an n@example.com"], ["ann@example.com"]),
        (["ann(x)@example.com"], ["annx@example.com"]),
        (["ann+tag@example.com"], ["ann+tag@example.com"]),
        (["o'neil@example.com"], ["o'neil@example.com"]),
        (["*@example.com"], ["*@example.com"]),
        (["*.smith@example.com"], ["*.smith@example.com"]),
        (["ann@shop.test", "ann@shop.local"], ["ann@shop.test", "ann@shop.local"]),
        (["jos\u00e9@example.com"], ["jos\u00e9@example.com"]),
        (["", " ", None, "ann", "ann@", "@example.com", "@", "ann@localhost", 5, 1.5], []),
        (["ann.@example.com", "ann..b@example.com", "ann@example..com"], []),
        (["ann@-example.com"], []),
        (["a" * 65 + "@example.com"], []),
        (["ann@" + "b" * 64 + ".com"], []),
        (["x", "ann@example.com", ""], ["ann@example.com"]),
    ),
)
def test_emails(admin, make_coupon, given, emails):
    stored = both(admin, make_coupon, ["customer_emails"], given, ["z@example.com"])
    assert stored == twice(["customer_emails"], emails)


@pytest.mark.parametrize(
    "value",
    values(
        "",
        "ann@example.com",
        5,
        True,
        False,
        {},
        {"0": "ann@example.com"},
        [["ann@example.com"]],
        [{}],
        [True],
        [False],
        ["ann\0@example.com"],
        ["ann@example.com", "\0"],
    ),
)
def test_emails_rejected(admin, make_coupon, value):
    assert_rejected(admin, make_coupon, ["customer_emails"], value)


# --- all of them ---

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


@pytest.mark.parametrize("field", [*WRONG, *FLAGS])
def test_null_on_update_changes_nothing(admin, make_coupon, field):
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
    response = admin.put(f"/coupons/{coupon['id']}", {"coupon": {field: None}})
    assert reply(response) == (200, {"coupon": coupon})
