"""JSON values that the database creates: the same text on both databases as from orjson."""

from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import String, bindparam, literal, select

from app.db.read_pool import fetch
from app.db.sql.functions import is_one_of, json_text, json_tuple, leading_number
from app.db.sql.types import IdList, Money, TextList, UtcDateTime

pytestmark = pytest.mark.both_databases

# Texts that the tables can contain: no U+0000 and no lone surrogates.
stored = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FIRST, SECOND = (bindparam(name, type_=String) for name in ("first", "second"))
OBJECT = select(json_text({"first_name": FIRST, "city": SECOND}))


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(stored, stored)
def test_object_is_the_text_that_orjson_writes(app, first, second):
    with app.app_context():
        ((found,),) = fetch(OBJECT, {"first": first, "second": second})
    assert orjson.dumps(found) == orjson.dumps({"first_name": first, "city": second})


@pytest.mark.parametrize("code", [*range(1, 0x20), 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x2028, 0x1F600])
def test_character_that_json_may_escape_is_written_as_orjson_writes_it(app, code):
    text = f"a{chr(code)}b"
    with app.app_context():
        ((found,),) = fetch(OBJECT, {"first": text, "second": ""})
    assert orjson.dumps(found) == orjson.dumps({"first_name": text, "city": ""})


def test_values_together_are_read_as_answers_print_them(app):
    timestamp = datetime(2026, 11, 20, 9, 38, 1, tzinfo=UTC)
    values = {
        "number": literal(2**62),
        "text": literal('a "b"'),
        "nothing": literal(None, String),
        "amount": literal(Decimal("-0.05"), Money),
        "no_amount": literal(None, Money),
        "timestamp": literal(timestamp, UtcDateTime),
        "no_moment": literal(None, UtcDateTime),
    }
    with app.app_context():
        ((found,),) = fetch(select(json_tuple(values)))
    assert found == [2**62, 'a "b"', None, "-0.05", "0.00", "2026-11-20T09:38:01Z", None]
    assert json_tuple(values).type.names == tuple(values)


@pytest.mark.parametrize(
    ("value", "values", "expected"),
    [
        (literal(2**62), [1, 2**62], True),
        (literal(3), {1: "a", 2: "b"}, False),
        (literal(3), [], False),
        (literal("completed"), ("processing", "completed"), True),
        (literal("complete"), ("processing", "completed"), False),
        (literal('"\n,'), ['"\n,'], True),
    ],
)
def test_value_is_one_of_several(app, value, values, expected):
    kind = TextList if isinstance(value.type, String) else IdList
    with app.app_context():
        ((found,),) = fetch(
            select(is_one_of(value, bindparam("values", type_=kind))), {"values": values}
        )
    assert bool(found) is expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0), ("0", 0), ("007", 7), ("50667", 50667), ("999999999999999", 999999999999999),
        ("12345678901234567890", 1.2345678901234567e19), ("1017 AB", 1017), ("M5H 2N2", 0),
        ("~1", 0), (":1", 0), ("/1", 0), (" 12", 12), ("-3x", -3), ("+4", 4), (".5", 0.5),
        ("1.5e1z", 15), ("é1", 0), ("\u0661", 0), ("x" * 5000, 0), ("1" * 50, 1.111111111111111e49),
        (" +1 512 555", 1), ("2e3", 2000),
    ],
)  # fmt: skip
def test_leading_number_of_a_text(app, text, number):
    with app.app_context():
        found = fetch(select(leading_number(literal(text))))[0][0]
    assert float(found) == pytest.approx(number)
