"""Limits of metadata (records 1 and 5)."""

import json

import pytest

from app.db.session import db
from app.models import COUPON_METADATA
from tests.api_client import at_the_same_time
from tests.metadata.calls import created, stored, updated


def rejected(client, coupon_id, metadata):
    """The input that a response names, and its reason."""
    response = client.put(f"/coupons/{coupon_id}", {"coupon": {"metadata": metadata}})
    assert response.status_code == 400, response.get_json()
    (error,) = response.get_json()["errors"]
    assert error["code"] == "shop_api_invalid_metadata"
    return error["param"], error["message"].partition(": ")[2]


@pytest.fixture
def imported(app, admin):
    """Return a function: a coupon with metadata that an import brought, beyond the limits."""

    def make(*pairs):
        coupon_id = created(admin, "coupon")["id"]
        with app.app_context(), db.engine.begin() as connection:
            for key, value in pairs:
                row = {"coupon_id": coupon_id, "key": key, "value": json.dumps(value)}
                connection.execute(COUPON_METADATA.insert().values(row))
        return coupon_id

    return make


def test_record_has_200_entries(admin):
    coupon_id = created(admin, "coupon", metadata={f"k{n}": n for n in range(200)})["id"]
    assert rejected(admin, coupon_id, {"k0": "x", "more": 1}) == (
        "coupon.metadata.more",
        "the record would have more than 200 entries.",
    )
    assert stored(admin, "coupon", coupon_id)["k0"] == 0
    result = updated(admin, "coupon", coupon_id, metadata={"k0": None, "more": 1})["metadata"]
    assert len(result) == 200


def test_number_of_entries_is_checked_before_their_values(admin):
    coupon_id = created(admin, "coupon", metadata={"k0": 1})["id"]
    many = {f"k{n}": 2**64 for n in range(20_000)}
    assert rejected(admin, coupon_id, many) == (
        "coupon.metadata.k200",
        "the record would have more than 200 entries.",
    )
    removed = dict.fromkeys(many) | {"other": 1}
    assert updated(admin, "coupon", coupon_id, metadata=removed)["metadata"] == {"other": 1}


def test_keys_have_1_to_255_characters(admin):
    coupon_id = created(admin, "coupon", metadata={"ü" * 255: 1})["id"]
    reason = "a key must have 1 to 255 characters."
    assert rejected(admin, coupon_id, {"": 1}) == ("coupon.metadata", reason)
    assert rejected(admin, coupon_id, {"ü" * 256: 1}) == (f"coupon.metadata.{'ü' * 256}", reason)


def test_value_has_64_kib_as_json(admin):
    largest = "x" * (65_536 - 2)
    coupon_id = created(admin, "coupon", metadata={"a": largest})["id"]
    reason = "the value is larger than 65,536 bytes."
    assert rejected(admin, coupon_id, {"b": largest + "x"}) == ("coupon.metadata.b", reason)
    assert rejected(admin, coupon_id, {"a": "ü" * 32_768}) == ("coupon.metadata.a", reason)
    updated(admin, "coupon", coupon_id, metadata={"a": "ü" * 32_767})


@pytest.mark.both_databases
def test_values_have_256_kib_together(admin):
    largest = "x" * (65_536 - 2)
    coupon_id = created(admin, "coupon", metadata=dict.fromkeys("abcd", largest))["id"]
    reason = "the values of the record would be larger than 262,144 bytes together."
    assert rejected(admin, coupon_id, {"e": 1}) == ("coupon.metadata.e", reason)
    updated(admin, "coupon", coupon_id, metadata={"a": None, "e": 1})


def test_what_an_import_brought_can_be_made_smaller_but_not_larger(admin, imported):
    coupon_id = imported(*((f"k{n}", n) for n in range(205)), ("y" * 300, 1), ("big", "x" * 70_000))
    assert len(stored(admin, "coupon", coupon_id)) == 207
    assert rejected(admin, coupon_id, {"more": 1})[0] == "coupon.metadata.more"
    assert rejected(admin, coupon_id, {"big": "x" * 70_001})[0] == "coupon.metadata.big"
    updated(admin, "coupon", coupon_id, metadata={"big": "x" * 69_999})
    updated(admin, "coupon", coupon_id, metadata={"y" * 300: 2})
    updated(admin, "coupon", coupon_id, metadata={"k1": "other"})
    updated(admin, "coupon", coupon_id, metadata={"k1": None, "more": 1})
    assert len(stored(admin, "coupon", coupon_id)) == 207


@pytest.mark.both_databases
def test_size_beyond_the_limit_can_shrink(admin, imported):
    coupon_id = imported(*((f"k{n}", "x" * 60_000) for n in range(6)))
    assert rejected(admin, coupon_id, {"more": 1})[0] == "coupon.metadata.more"
    updated(admin, "coupon", coupon_id, metadata={"k0": "x", "more": 1})


def test_limits_are_settings(client_with):
    client = client_with(
        SHOP_METADATA_ENTRIES=2,
        SHOP_METADATA_KEY_LENGTH=3,
        SHOP_METADATA_VALUE_BYTES=4,
        SHOP_METADATA_BYTES=6,
    )
    coupon_id = created(client, "coupon", metadata={"abc": "xy", "b": 12})["id"]
    assert rejected(client, coupon_id, {"c": 1})[0] == "coupon.metadata.c"
    assert rejected(client, coupon_id, {"b": 123})[0] == "coupon.metadata.b"
    assert rejected(client, coupon_id, {"abc": "xyz"})[0] == "coupon.metadata.abc"
    assert rejected(client, coupon_id, {"b": None, "abcd": 1})[0] == "coupon.metadata.abcd"


@pytest.mark.both_databases
def test_limit_holds_exactly_under_concurrent_writes(admin):
    coupon_id = created(admin, "coupon", metadata={f"k{n}": n for n in range(195)})["id"]

    def add(number):
        body = {"coupon": {"metadata": {f"new-{number}": 1}}}
        return admin.put(f"/coupons/{coupon_id}", body).status_code

    assert sorted(at_the_same_time(add, range(8))) == [200] * 5 + [400] * 3
    assert len(stored(admin, "coupon", coupon_id)) == 200


def test_other_rules_of_a_create_come_first(admin):
    created(admin, "coupon", code="taken")
    body = {"coupon": {"code": "taken", "metadata": {"": 1}}}
    (error,) = admin.post("/coupons", body).get_json()["errors"]
    assert error["code"] == "shop_api_coupon_code_already_exists"


def test_metadata_of_items_is_checked_before_that_of_their_order(admin):
    line = {"name": "Mug", "quantity": 1, "total": "5.00", "metadata": {"text": "x" * 65536}}
    order = {"line_items": [line], "metadata": {"text": "x" * 65536}}
    (error,) = admin.post("/orders", {"order": order}).get_json()["errors"]
    assert error["param"] == "order.line_items[0].metadata.text"
