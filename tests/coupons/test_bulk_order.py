"""Items of a bulk request that affect later items: codes of coupons (spec 4.3)."""

import pytest

from tests.api_client import failed_item, failure
from tests.coupons.bulk import TAKEN, read, shop_codes


@pytest.mark.both_databases
def test_bulk_same_code_twice(admin, bulk):
    first, *others = bulk({"code": "Summer"}, {"code": "summer"}, {"code": " SUMMER "})
    assert others == [failure(TAKEN)] * 2
    assert shop_codes(admin) == {first["id"]: "summer"}


def test_bulk_failed_create_leaves_its_code_free(admin, bulk):
    _, result = bulk({"code": "summer", "type": "x"}, {"code": "summer"})
    assert shop_codes(admin) == {result["id"]: "summer"}


def test_bulk_rename_frees_the_code_for_a_create(admin, bulk, make_coupon):
    old = make_coupon(code="summer")
    _, new = bulk({"id": old["id"], "code": "winter"}, {"code": "summer"})
    assert shop_codes(admin) == {old["id"]: "winter", new["id"]: "summer"}


def test_bulk_rename_comes_too_late_for_an_earlier_create(admin, bulk, make_coupon):
    old = make_coupon(code="summer")
    result, renamed = bulk({"code": "summer"}, {"id": old["id"], "code": "winter"})
    assert result == failure(TAKEN)
    assert shop_codes(admin) == {old["id"]: "winter"}
    assert renamed["code"] == "winter"


@pytest.mark.both_databases
def test_bulk_rename_frees_the_code_for_a_rename(admin, bulk, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    bulk({"id": one["id"], "code": "three"}, {"id": two["id"], "code": "one"})
    assert shop_codes(admin) == {one["id"]: "three", two["id"]: "one"}


def test_bulk_rename_to_a_code_that_an_earlier_item_took(admin, bulk, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    _, created, *results = bulk(
        {"id": one["id"], "code": "three"},
        {"code": "four"},
        {"id": two["id"], "code": "three"},
        {"id": two["id"], "code": "four"},
        {"code": "three"},
    )
    assert results == [failure(TAKEN, two["id"])] * 2 + [failure(TAKEN)]
    assert shop_codes(admin) == {one["id"]: "three", two["id"]: "two", created["id"]: "four"}


def test_bulk_rejected_rename_keeps_the_old_code_taken(admin, bulk, make_coupon):
    one = make_coupon(code="one")
    results = bulk({"id": one["id"], "code": "two", "type": "x"}, {"code": "one"}, {"code": "two"})
    assert failed_item(results[0]) == (one["id"], "shop_api_invalid_coupon_type")
    assert results[1] == failure(TAKEN)
    assert shop_codes(admin) == {one["id"]: "one", results[2]["id"]: "two"}


def test_bulk_swap_of_codes_needs_a_third(admin, bulk, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    assert bulk({"id": one["id"], "code": "two"}, {"id": two["id"], "code": "one"}) == [
        failure(TAKEN, one["id"]),
        failure(TAKEN, two["id"]),
    ]
    assert shop_codes(admin) == {one["id"]: "one", two["id"]: "two"}
    bulk(
        {"id": one["id"], "code": "between"},
        {"id": two["id"], "code": "one"},
        {"id": one["id"], "code": "two"},
    )
    assert shop_codes(admin) == {one["id"]: "two", two["id"]: "one"}


@pytest.mark.both_databases
def test_bulk_rotation_of_codes(admin, bulk, make_coupon):
    a, b, c = (make_coupon(code=code)["id"] for code in "abc")
    results = bulk(
        {"id": a, "code": "free"},
        {"id": b, "code": "a"},
        {"id": c, "code": "b"},
        {"id": a, "code": "c"},
        {"code": "free"},
    )
    assert shop_codes(admin) == {a: "c", b: "a", c: "b", results[-1]["id"]: "free"}


def test_bulk_rename_there_and_back(admin, bulk, make_coupon):
    coupon = make_coupon(code="one")
    _, taken, _, free = bulk(
        {"id": coupon["id"], "code": "two"},
        {"code": "two"},
        {"id": coupon["id"], "code": "one"},
        {"code": "two"},
    )
    assert taken == failure(TAKEN)
    assert shop_codes(admin) == {coupon["id"]: "one", free["id"]: "two"}


@pytest.mark.both_databases
def test_bulk_same_id_several_times(admin, bulk, make_coupon):
    coupon = make_coupon(usage_limit=1)
    *_, failed, last = bulk(
        {"id": coupon["id"], "amount": 1},
        {"id": str(coupon["id"]), "description": "text"},
        {"id": coupon["id"], "amount": 2, "type": "x"},
        {"id": coupon["id"], "usage_count": 3},
    )
    assert failed_item(failed) == (coupon["id"], "shop_api_invalid_coupon_type")
    expected = {"amount": "1.00", "description": "text", "usage_count": 3}
    assert last == coupon | expected | {"updated_at": last["updated_at"]}
    assert read(admin, coupon["id"]) == last


def test_bulk_update_to_its_own_code(bulk, make_coupon):
    coupon = make_coupon(code="one")
    (result,) = bulk({"id": coupon["id"], "code": " ONE"})
    assert result == coupon | {"updated_at": result["updated_at"]}


def test_bulk_update_without_fields(bulk, make_coupon):
    coupon = make_coupon()
    assert bulk({"id": coupon["id"]}, {"id": coupon["id"], "amount": None}) == [coupon, coupon]
