"""Patterns of generated codes: size, randomness, and the normalized form of every code."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.conversions.text import coupon_code
from app.errors import ShopError
from app.services.coupons.code_patterns import CodePattern

CHARSET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def parsed(prefix="", pattern="####", charset=CHARSET):
    return CodePattern.parse(prefix, pattern, charset)


@pytest.mark.parametrize(
    ("prefix", "pattern", "charset", "size", "like"),
    [
        ("SPRING-", "####-####", CHARSET, 32**8, "spring-    -    "),
        ("", "####", "0123456789", 10**4, "    "),
        ("", "no", "ab", 1, "no"),
        ("A#", "#", "ab", 2, "a# "),
        ("100%-", "#%s#", "ab", 4, "100%- %s "),
        ("<b>Big</b>  sale ", " ## ", "aAbB", 4, "big sale   "),
        ("", "##<i>##</i>", "ab", 16, "    "),
        ("&lt;script&gt;", "##", "ab", 4, "  "),
        ("Été-", "#", "éÉè", 2, "été- "),
        ("दीवाली-", "#", "०१", 2, "दीवाली- "),
    ],
)
def test_pattern_has_a_size_and_a_form(prefix, pattern, charset, size, like):
    found = parsed(prefix, pattern, charset)
    assert found.size == size
    (code,) = found.random_codes(1)
    filled = iter(found.literals)
    form = next(filled) + "".join(" " * n + next(filled) for n in found.lengths)
    assert form == like
    assert len(code) == len(like)
    assert coupon_code(code) == code


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("charset", ["", "ab-", "a b", "a<", "a\u0308\u0301", "a\u200d", "a" * 501]),
        ("charset", ["".join(map(chr, range(0x4E00, 0x4E00 + 257)))]),
        ("prefix", ["R&D-", "a < b"]),
        # A mark changes the letter before it.
        ("pattern", ["#&##;", "<####", "<###", "\ufdd0##", "#\u0308#"]),
    ],
)
def test_pattern_whose_codes_would_change_is_rejected(name, values):
    for value in values:
        with pytest.raises(ShopError) as refused:
            parsed(**{name: value})
        expected = ("shop_api_invalid_param", f"generate.{name}")
        assert (refused.value.code, refused.value.param) == expected, value


def test_parts_of_hangul_become_one_syllable():
    with pytest.raises(ShopError) as refused:
        parsed(charset="\u1161\u1100", pattern="##")
    expected = ("shop_api_invalid_param", "generate.pattern")
    assert (refused.value.code, refused.value.param) == expected


@pytest.mark.parametrize(
    "over",
    [
        {"pattern": "#" * 501},
        {"prefix": "x" * 497},
        {"prefix": "<" + "x" * 500},  # before it is normalized
        {"prefix": "\ufb01" * 300, "pattern": "#" * 300},
    ],
)
def test_pattern_whose_codes_are_too_long_is_rejected(over):
    with pytest.raises(ShopError) as refused:
        parsed(**over)
    assert refused.value.code == "shop_api_cannot_create_coupon"


@pytest.mark.parametrize(
    ("pattern", "charset", "count", "guessable", "enough"),
    [
        ("######", "0123456789", 1, False, True),
        ("######", "0123456789", 2, False, False),
        ("######", "0123456789", 10_000, True, True),
        ("######", "0123456789", 10_001, True, False),
        ("####-####", CHARSET, 1_000_000, False, True),
        ("fixed", CHARSET, 1, True, False),
        ("#" * 400, "a", 1, True, False),
        ("#" * 400, "aA", 1, True, False),
        ("#" * 500, CHARSET, 10_000, False, True),
    ],
)
def test_pattern_needs_many_times_as_many_codes(pattern, charset, count, guessable, enough):
    found = parsed(pattern=pattern, charset=charset)
    if enough:
        found.require_size(count, guessable=guessable)
        return
    with pytest.raises(ShopError) as refused:
        found.require_size(count, guessable=guessable)
    assert refused.value.code == "shop_api_pattern_too_small"


@pytest.mark.parametrize(
    "charset", ["ab", "abc", CHARSET, "".join(map(chr, range(0x4E00, 0x4E00 + 200)))]
)
def test_characters_are_equally_probable_at_every_position(charset):
    found = parsed(pattern="##", charset=charset)
    number = 300 * len(found.charset)
    codes = found.random_codes(number)
    for position in range(2):
        counts = Counter(code[position] for code in codes)
        assert set(counts) == set(found.charset)
        # Chi-squared with k - 1 degrees of freedom: 8 deviations are beyond any bad luck.
        statistic = sum((count - 300) ** 2 / 300 for count in counts.values())
        freedom = len(found.charset) - 1
        assert statistic < freedom + 8 * (2 * freedom) ** 0.5


TEXT = st.text(
    st.sampled_from(
        "aZ#-_% &<>/;bltİß\u03c2Σ\u0308\u0301\u1100\u1161\u11a8é\u0966\u093e\u200d\t\x07#"
    ),
    max_size=12,
)


@settings(max_examples=500, deadline=None)
@given(TEXT, TEXT, TEXT)
def test_every_code_is_in_the_form_in_which_it_is_looked_up(prefix, pattern, charset):
    try:
        found = parsed(prefix, pattern, charset)
    except ShopError:
        return
    codes = found.random_codes(50)
    assert [coupon_code(code) for code in codes] == codes
    if found.size < 20:
        assert len(set(found.random_codes(2000))) == found.size
