"""A compiled serializer writes the same JSON as its schema, in the order of the specification."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import marshmallow as ma
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.representations import ORDER
from app.api.serializers import Serializer
from app.models import Coupon
from app.schemas.coupons.coupon import CouponSchema
from app.schemas.fields.output import on_request
from tests.coupons.calls import DEFAULTS

ON_REQUEST = on_request(CouponSchema)
COLUMNS = dict(Coupon.__table__.columns)
COUPON = Serializer(CouponSchema, COLUMNS)

# spec 2.1, in the order of its table
NAMES = ["id", "code", "type", "created_at", "updated_at", *list(DEFAULTS)[1:]]

int64 = st.integers(-(2**63), 2**63 - 1)
count = st.integers(0, 2**63 - 1)
cents = st.integers(-(10**18) + 1, 10**18 - 1).map(lambda number: Decimal(number).scaleb(-2))
timestamp = st.datetimes(timezones=st.just(UTC))


IDS = ["product_ids", "exclude_product_ids", "product_category_ids", "exclude_product_category_ids"]


LIMITS = ["usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count"]


FLAGS = ["individual_use", "enable_free_shipping", "exclude_sale_items"]
VALUES = {
    **dict.fromkeys(["id", *LIMITS], count),
    **dict.fromkeys(["code", "type", "description"], st.text()),
    **dict.fromkeys(["created_at", "updated_at"], timestamp),
    **dict.fromkeys(["amount", "minimum_amount", "maximum_amount"], st.none() | cents),
    **dict.fromkeys(FLAGS, st.booleans()),
    **dict.fromkeys(IDS, st.lists(int64)),
    "expiry_date": st.none() | st.dates(),
    "customer_emails": st.lists(st.text()),
}
records = st.fixed_dictionaries(VALUES)

EXAMPLE = {
    "id": 7,
    "code": "summer",
    "type": "percent",
    "created_at": datetime(2026, 11, 20, 9, 38, tzinfo=UTC),
    "updated_at": datetime(2026, 11, 20, 9, 38, 1, tzinfo=UTC),
    "amount": Decimal("10.50"),
    "individual_use": True,
    "product_ids": [1, -2],
    "exclude_product_ids": [],
    "usage_limit": 0,
    "usage_limit_per_user": 3,
    "limit_usage_to_x_items": 0,
    "usage_count": 0,
    "expiry_date": date(2030, 12, 31),
    "enable_free_shipping": False,
    "product_category_ids": [],
    "exclude_product_category_ids": [],
    "exclude_sale_items": False,
    "minimum_amount": None,
    "maximum_amount": Decimal("9999999999999999.99"),
    "customer_emails": ["*@example.com"],
    "description": "é",
}
PRINTED = EXAMPLE | {
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:01Z",
    "amount": "10.50",
    "usage_limit": None,
    "expiry_date": "2030-12-31T00:00:00Z",
    "minimum_amount": "0.00",
    "maximum_amount": "9999999999999999.99",
}


def text(value):
    """JSON as Python's own library writes it, without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_coupon_has_the_fields_of_the_specification_in_their_order():
    assert list(CouponSchema().fields) == [*NAMES, *ON_REQUEST, "metadata"]
    assert COUPON.names == NAMES
    assert COUPON.columns == tuple(COLUMNS[name] for name in NAMES)


def test_coupon_prints_as_the_specification_says():
    assert COUPON.record(EXAMPLE) == PRINTED
    assert list(COUPON.record(EXAMPLE)) == NAMES


@given(records)
def test_serializer_prints_what_the_schema_dumps(record):
    dumped = text(CouponSchema(exclude=ON_REQUEST).dump(record))
    row = [record[name] for name in COUPON.names]
    assert orjson.dumps(COUPON.row(row)) == dumped
    assert orjson.dumps(COUPON.record(record)) == dumped


@given(st.lists(records, max_size=3))
def test_serializer_prints_a_list_as_the_schema_does(several):
    rows = [[record[name] for name in COUPON.names] for record in several]
    assert orjson.dumps(COUPON.rows(rows)) == text(
        CouponSchema(many=True, exclude=ON_REQUEST).dump(several)
    )


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (None, NAMES),
        ({}, []),
        ({"code": None}, ["code"]),
        # the order is the schema's, not the client's
        ({"description": None, "amount": None, "id": None}, ["id", "amount", "description"]),
        # unknown names select nothing
        ({"nonsense": None, "code": None}, ["code"]),
        # a part of what has no parts selects nothing
        ({"code": {"first": None}, "id": None}, ["id"]),
        ({"code": {}}, []),
    ],
)
def test_selection_has_fewer_keys_and_columns(selection, names):
    view = COUPON.only(selection)
    assert view.names == names
    assert view.columns == tuple(COLUMNS[name] for name in names)
    assert view.record(EXAMPLE) == {name: PRINTED[name] for name in names}
    assert list(view.record(EXAMPLE)) == names


@given(records, st.sets(st.sampled_from(NAMES)))
def test_selection_is_a_part_of_the_whole(record, chosen):
    view = COUPON.only(dict.fromkeys(chosen))
    whole = COUPON.record(record)
    assert orjson.dumps(view.row([record[name] for name in view.names])) == text(
        {name: whole[name] for name in NAMES if name in chosen}
    )


@pytest.mark.parametrize(
    ("selection", "same"),
    [
        ({"code": None, "nonsense": None}, {"code": None}),
        ({"nonsense": {"a": None}, "code": None}, {"code": None}),
        ({"id": None, "code": None}, {"code": None, "id": None}),
        ({"line_items": {"x": None}}, {"line_items": {}}),
        ({"billing_address": {"x": {}, "city": None}}, {"billing_address": {"city": None}}),
        ({"billing_address": {"x": None}}, {"billing_address": {}}),
    ],
)
def test_unknown_names_read_no_more_columns(selection, same):
    assert ORDER.only(selection).columns == ORDER.only(same).columns


def test_field_that_is_not_an_output_field_is_rejected():
    class Wrong(ma.Schema):
        code = ma.fields.String()

    with pytest.raises(TypeError, match=r"^Wrong\.code is not an output field$"):
        Serializer(Wrong, COLUMNS)
