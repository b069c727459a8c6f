"""Conversion of text: strings, names, coupon codes and usernames (decisions 3, 4, 5, 13)."""

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversions import text
from tests.conversions.inputs import anything, markup, outcome

INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as sent", "as sent"),
        ("", ""),
        (" <b>&amp;\t\x01 é \U0001f600 ", " <b>&amp;\t\x01 é \U0001f600 "),
        (5, "5"),
        (-5, "-5"),
        (INT64, str(INT64)),
        (Decimal("5.50"), "5.5"),
        (Decimal("5.0"), "5.0"),
        (Decimal("0.1"), "0.1"),
        # More digits than a double has
        (Decimal("9999999999999999.995"), "9999999999999999.995"),
        (Decimal("12345678901234567.123"), "12345678901234567.123"),
        (Decimal("0.10000000000000000001"), "0.10000000000000000001"),
        (Decimal("1e-400"), "1E-400"),
        (Decimal("1e400"), "1E+400"),
        (True, ValueError),
        (False, ValueError),
        (None, ValueError),
        ([], ValueError),
        ({}, ValueError),
        ("a\0b", ValueError),
        (INT64 + 1, str(INT64 + 1)),
    ],
)
def test_to_string(value, expected):
    assert outcome(text.to_string, value) == expected


@given(anything)
def test_to_string_of_any_value(value):
    found = outcome(text.to_string, value)
    assert found is ValueError or (isinstance(found, str) and "\0" not in found)


# --- names and codes ---

CLEAN = [
    ("", ""),
    ("0", "0"),
    ("Anna", "Anna"),
    # white space is trimmed, runs of it become one space
    ("  Anna \t\r\n  Maria  ", "Anna Maria"),
    ("a\u00a0\u2003b\u3000", "a b"),
    # other control characters vanish
    ("An\x01na\x7f\x9f", "Anna"),
    # tags go, a comparison stays
    ("<b>bold</b>", "bold"),
    ("<script>alert(1)</script>", "alert(1)"),
    ("a<br/>b<!-- no -->c", "abc"),
    ("a < b", "a < b"),
    ("a > b", "a > b"),
    ("a <3 b", "a <3 b"),
    ("1 < 2 > 1", "1 < 2 > 1"),
    ("<<b>b>x", "x"),
    ("<scr<b>ipt>x", "x"),
    # a tag that only appears when a control character is gone is a tag
    ("<\x01b>x", "x"),
    ("<b\x01>x", "x"),
    # complete entities are decoded until nothing changes
    ("Tom &amp; Anna", "Tom & Anna"),
    ("&lt;b&gt;x", "x"),
    ("&amp;lt;b&amp;gt;x", "x"),
    ("x&amp;amp;amp;y", "x&y"),
    ("&am<b>p;lt;b>x", "x"),
    ("&am&#112;;", "&"),
    # entities without a semicolon are text
    ("cut&copy of&reg; &sect 5&notit;", "cut&copy of\u00ae &sect 5&notit;"),
    ("&eacute;&#233;&#xe9;", "ééé"),
    ("a&nbsp;b", "a b"),
    ("&nonsense; &", "&nonsense; &"),
    # a number that no character has is the replacement character
    ("&#99999999;", "\ufffd"),
    ("&#" + "9" * 30 + ";", "\ufffd"),
    ("&#" + "0" * 20 + "65;", "A"),
    ("&#x" + "0" * 20 + ";", "\ufffd"),
    ("&#" + "9" * 500 + ";", "&#" + "9" * 500 + ";"),
    ("&#0A;&#00;", "&#0A;\ufffd"),
]


@pytest.mark.parametrize(("value", "expected"), CLEAN)
def test_clean(value, expected):
    assert outcome(text.clean, value) == expected


@pytest.mark.parametrize(("value", "expected"), CLEAN)
def test_coupon_code_is_plain_and_lower(value, expected):
    assert outcome(text.coupon_code, value) == expected.lower()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("SUMMER-2030", "summer-2030"),
        ("ÉTÉ", "été"),
        ("e\u0301te\u0301", "été"),
        ("ÄRGER", "ärger"),
        # str.lower, no case folding
        ("Straße", "straße"),
        ("STRASSE", "strasse"),
        ("<i></i>", ""),
        (" \t ", ""),
        # capitals of an entity, and the dotted capital I
        ("N&EACUTE;T", "nét"),
        ("n&Eacute;t", "nét"),
        ("\u0130ND\u0130R\u0130M10", "indirim10"),
        ("i\u0307ndi\u0307ri\u0307m10", "indirim10"),
        ("I\u0307ND\u0130R\u0130M10", "indirim10"),
        # compatible letters
        ("\uff53ummer\uff11\u2460", "summer11"),
        ("o\ufb03ce", "office"),
        ("\uff06amp;\uff1cb\uff1ex", "&x"),
        ("夏日", "夏日"),
        # a letter that becomes an ASCII letter makes no tag, either
        ("<\u212a>x", "x"),
    ],
)
def test_coupon_code(value, expected):
    assert text.coupon_code(value) == expected


@given(markup)
def test_coupon_code_of_any_text(value):
    code = outcome(text.coupon_code, value)
    if code is ValueError:
        return
    assert code == " ".join(code.split())
    assert code == unicodedata.normalize("NFC", code) == unicodedata.normalize("NFC", code.lower())
    assert not any(unicodedata.category(char) == "Cc" for char in code)


INVISIBLE = (
    "\u200b\ufeff\u2060\u00ad\u200e\u200f\u202a\u202c\u200c\u200d\u2066\u2069\ufe0f\u034f\u3164\u180e\ufffc"
    "\u115f\u1160\uffa0\U000e0041\U000e0100\u061c\u17b4"
)


@pytest.mark.parametrize("sign", INVISIBLE)
def test_invisible_characters(sign):
    for code in (f"{sign}summer", f"summer{sign}", f"sum{sign}mer", f"{sign}SUM{sign}MER{sign} "):
        assert text.coupon_code(code) == "summer"
    assert text.clean(sign * 2) == text.clean(f" {sign} ") == text.coupon_code(sign) == ""
    assert text.searchable(f"An{sign}na") == "anna"


def test_every_format_character_is_invisible():
    characters = map(chr, range(0x110000))
    shown = [c for c in characters if unicodedata.category(c) == "Cf" and text.visible(c)]
    assert shown == []


def test_clean_keeps_joiners():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f"
    assert text.clean(family) == family


def is_changed(character):
    """Whether a conversion of text or of its letter case can change a character."""
    forms = character.lower(), character.casefold(), character.upper()
    normal = {unicodedata.normalize(form, character) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    is_mark = unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Mc", "Me"}
    return is_mark or {*forms, *normal} != {character} or ord(character) & 0xFFFE == 0xFFFE


def is_assigned(character):
    """Or a noncharacter, or a tag, which can be invisible without being assigned."""
    is_known = unicodedata.category(character) not in {"Cn", "Co"}
    return is_known or ord(character) & 0xFFFE == 0xFFFE or ord(character) >> 16 == 14


@pytest.mark.parametrize(
    ("last", "selected"),
    [
        (0x20000, is_changed),  # further planes have characters of Han, and no letters
        pytest.param(0x110000, is_assigned, marks=pytest.mark.slow, id="all"),
    ],
)
def test_coupon_code_of_each_character(last, selected):
    characters = (chr(code) for code in range(1, last) if not 0xD800 <= code < 0xE000)
    codes = [text.coupon_code(f"a{char}b") for char in characters if selected(char)]
    assert len(codes) > 5_000
    assert [code for code in codes if text.coupon_code(code) != code] == []


@given(markup | st.text() | st.text(st.sampled_from("&<>ampltgb;#38/ i\u0307\u0130\u200d")))
def test_coupon_code_of_a_code_is_that_code(value):
    code = text.coupon_code(value)
    assert text.coupon_code(code) == code


@given(markup | st.text(st.sampled_from("&<>ampltgb;#38/ \u200d")))
def test_clean_of_clean_text_is_that_text(value):
    cleaned = text.clean(value)
    assert text.clean(cleaned) == cleaned


# --- usernames ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("anna", True),
        ("a", True),
        ("Anna Maria", True),
        ("anna_b.c-d@e9", True),
        ("änna夏", True),
        ("a" * 60, True),
        ("a" * 61, False),
        ("", False),
        (" anna", False),
        ("anna ", False),
        ("anna  maria", False),
        ("anna\tmaria", False),
        ("anna\n", False),
        ("anna/b", False),
        ("<b>", False),
        ("anna\0", False),
    ],
)
def test_is_username(value, expected):
    assert text.is_username(value) is expected


# --- normalization ---

MARKS = "\u0301\u0323\u0345\u0f71\u0f73\u0344\u1dfa\u3099\u0338"


@given(st.text() | st.text(st.sampled_from(MARKS + "e\u1ec7a-\u1100\u1161\u11a8"), max_size=300))
def test_nfc_is_that_of_unicode(value):
    """Sorting long runs of combining marks beforehand does not change the result."""
    for string in (value, value * 40):
        assert text.nfc(string) == unicodedata.normalize("NFC", string)
