"""Serialized values of PHP, compared with PHP's own functions where it is installed."""

import base64
import json
import math
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.plugins.woocommerce.importer.source.php_values import (
    MAX_DEPTH,
    Unconverted,
    UnreadableValue,
    keys_of,
    list_of,
    unserialized,
)
from tests.dumps.shop import php

needs_php = pytest.mark.skipif(
    not shutil.which("php"), reason="php is not installed: PHP's own functions are not compared"
)
OBJECT = 'O:8:"stdClass":2:{s:1:"a";i:1;s:1:"b";O:3:"Old":1:{s:6:"\0*\0own";R:2;}}'
KEYS = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5).filter(lambda key: not is_int(key))
"""Keys of arrays. PHP stores the text of an integer as an integer."""
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def is_int(text):
    return text.removeprefix("-").isdecimal()


def values(*leaves):
    leaf = st.one_of(st.none(), st.booleans(), INTEGERS, st.text(), *leaves)
    return st.recursive(leaf, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N;", None),
        ("b:1;", True),
        ("b:0;", False),
        ("i:-7;", -7),
        ("i:9223372036854775808;", 2**63 - 1),
        ("d:0.1;", 0.1),
        ("d:1.0E+25;", 1e25),
        ("d:-INF;", -math.inf),
        ('s:0:"";', ""),
        ('s:7:"Grüße";', "Grüße"),
        ('s:8:"";s:1:"x";', '";s:1:"x'),
        ('a:2:{i:0;s:1:"a";s:1:"k";a:0:{}}', {0: "a", "k": {}}),
        ("i:1;rest", 1),
        (OBJECT, Unconverted(OBJECT)),
        ('C:3:"Set":5:{1}{2}}', Unconverted('C:3:"Set":5:{1}{2}}')),
        ('E:11:"Suit:Hearts";', Unconverted('E:11:"Suit:Hearts";')),
        ("a:2:{i:0;i:5;i:1;R:2;}", {0: 5, 1: Unconverted("R:2;")}),
    ],
)
def test_value(text, expected):
    value = unserialized(text)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    "text",
    [
        "", "i:", "i:1", "i:x;", "i:1_0;", "b:2;", "d:;", "d:x;", "N", "x:1;", "S:1:\"a\";",
        's:2:"a";', 's:1:"ab";', 's:-1:"";', 's:1:"a"', 's:99:"x";', 's:1:"ä";',
        "a:1:{}", "a:0:{", "a:2:{i:0;", "a:-1:{}", "a:1:{i:0;i:1;i:2;}", "a:1:{b:1;i:1;}",
        "a:1:{a:0:{}i:1;}", "a:1:{N;i:1;}", "a:99999999999:{}", "a:1:{" * 5000,
        'O:1:"x":1:{', 'O:9:"x":0:{}', 'O:1:"x":0:{', 'C:1:"x":3:{}', 'E:3:"x";',
        "\ud800",
    ],
)  # fmt: skip
def test_damaged_value_is_rejected(text):
    for read in (unserialized, keys_of):
        with pytest.raises(UnreadableValue):
            read(text or "-")


def test_depth_is_limited():
    def nested(levels):
        return "a:1:{i:0;" * (levels - 1) + "a:0:{}" + "}" * (levels - 1)

    unserialized(nested(MAX_DEPTH))
    with pytest.raises(UnreadableValue, match="too many levels"):
        unserialized(nested(MAX_DEPTH + 1))
    with pytest.raises(UnreadableValue, match="too many levels"):
        unserialized('O:1:"x":1:{i:0;' * 5000)


def test_lists():
    assert list_of(php(["ä", "b"])) == ["ä", "b"]
    assert list_of(php([3, 4])) == ["3", "4"]
    assert list_of(php([3, [4]])) == ["3"]
    assert list_of("i:5;") == ["5"]
    assert list_of("1,2") == ["1", "2"]
    assert list_of("") == list_of(None) == []
    assert list_of(f"a:2:{{i:0;i:7;i:1;{OBJECT}}}") == ["7", OBJECT]
    for unreadable in (OBJECT, "O:", "r:1;", "a:1:{i:0;"):
        with pytest.raises(UnreadableValue):
            list_of(unreadable)


def test_keys():
    assert keys_of(php({"customer": True, "old": False, "ä": True})) == ["customer", "ä"]
    assert keys_of(php(["customer"])) == ["customer"]
    assert keys_of(None) == []
    for unreadable in (OBJECT, "i:1;", "customer"):
        with pytest.raises(UnreadableValue):
            keys_of(unreadable)


@given(values())
def test_serialized_values_are_read(value):
    def without_none(value):
        """``php`` writes no null."""
        if isinstance(value, dict):
            return {key: without_none(held) for key, held in value.items()}
        return False if value is None else value

    value = without_none(value)
    assert unserialized(php(value)) == value


@given(values().map(json.dumps), st.text("aidsbNROCE:;{}\"'0123456789"))
def test_any_text_is_read_or_rejected(text, other):
    for each in (text, other, f"a:1:{{i:0;{other}}}"):
        try:
            unserialized(each)
        except UnreadableValue:
            continue


def run_php(program):
    done = subprocess.run(
        ["php", "-n"], input=program, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def expression(value):
    """The PHP expression of a value."""
    match value:
        case dict():
            pairs = (f"{expression(key)} => {expression(held)}" for key, held in value.items())
            return f"[{', '.join(pairs)}]"
        case str():
            return f"base64_decode('{base64.b64encode(value.encode()).decode()}')"
        case bool() | None:
            return json.dumps(value)
        case int():
            return f"intval('{value}')"
    return f"floatval('{value!r}')"


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.slow
@needs_php
@settings(max_examples=5)
@given(st.lists(values(FINITE), min_size=20, max_size=40))
def test_values_that_php_serializes(batch):
    """Compare reading with the values that PHP has serialized."""
    # As JSON with base64, because the lengths count bytes and JSON has characters.
    texts = run_php(
        f"<?php $values = [{', '.join(map(expression, batch))}];"
        "echo json_encode(array_map(fn($v) => base64_encode(serialize($v)), $values));"
    )
    read = [unserialized(base64.b64decode(text).decode()) for text in texts]
    assert read == batch
    assert list(map(repr, read)) == list(map(repr, batch))


def damaged(text, edits):
    """A serialized text with bytes that are removed, replaced or repeated."""
    for place, how, byte in edits:
        at = place % (len(text) + 1)
        text = text[:at] + ("", byte, text[at : at + 6] * 2)[how] + text[at + 1 :]
    return text


EDITS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from('aidsbN:;{}"0129-+x')),
    max_size=2,
)


@pytest.mark.slow
@needs_php
@settings(max_examples=10)
@given(st.lists(st.tuples(values(), EDITS), min_size=20, max_size=40))
def test_damaged_values_as_in_php(batch):
    """PHP rejects what is rejected here, and reads the same values."""
    texts = [damaged(serialized_or_null(value), edits) for value, edits in batch]
    encoded = ", ".join(f"'{base64.b64encode(text.encode()).decode()}'" for text in texts)
    results = run_php(
        "<?php function read($text) {"
        " $value = @unserialize(base64_decode($text), ['allowed_classes' => false]);"
        " if ($value === false && !str_starts_with(base64_decode($text), 'b:0;')) return null;"
        " return base64_encode(serialize($value)); }"
        f"echo json_encode(array_map('read', [{encoded}]));"
    )
    for text, result in zip(texts, results, strict=True):
        if result is None:
            with pytest.raises(UnreadableValue):
                unserialized(text)
        else:
            again = unserialized(base64.b64decode(result).decode(errors="replace"))
            assert (text, unserialized(text)) == (text, again)


def serialized_or_null(value):
    if value is None:
        return "N;"
    if isinstance(value, dict):
        pairs = (php(key) + serialized_or_null(held) for key, held in value.items())
        return f"a:{len(value)}:{{{''.join(pairs)}}}"
    return php(value)
