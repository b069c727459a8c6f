"""Bulk requests of coupons, beside what is the same for all records (tests/api/test_bulk.py)."""

import pytest

from tests.api_client import failed_item, failure
from tests.coupons.bulk import TAKEN, read

GONE = "shop_api_invalid_coupon_id"


@pytest.mark.both_databases
def test_bulk_creates_as_the_single_create(admin, bulk, make_coupon):
    single = make_coupon(code="single", amount="5", product_ids=["7", "x"])
    (result,) = bulk({"code": "Several", "amount": "5", "product_ids": ["7", "x"]})
    made = {name: result[name] for name in ("id", "created_at", "updated_at")}
    assert result == single | made | {"code": "several"}
    assert read(admin, result["id"]) == result


@pytest.mark.both_databases
def test_bulk_updates_as_the_single_update(admin, bulk, make_coupon):
    coupon = make_coupon(usage_limit=5)
    (result,) = bulk({"id": coupon["id"], "amount": "5", "description": None})
    assert result == coupon | {"amount": "5.00", "updated_at": result["updated_at"]}
    assert read(admin, coupon["id"]) == result


def test_bulk_results_are_in_the_order_of_the_items(admin, bulk, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    results = bulk(
        {"code": "new 1"},
        {"id": two["id"], "amount": 2},
        "not an object",
        {"code": "new 2"},
        {"id": 999_999, "amount": 3},
        {"code": "one"},
        {"id": one["id"], "amount": 1},
        {"code": "new 3"},
    )
    found = ["new 1", "two", None, "new 2", None, None, "one", "new 3"]
    assert [result.get("code") for result in results] == found
    assert failed_item(results[2]) == (0, "shop_api_invalid_param")
    assert results[4] == failure(GONE, 999_999)
    assert results[5] == failure(TAKEN)
    stored = [result for result in results if "error" not in result]
    assert [read(admin, result["id"]) for result in stored] == stored


@pytest.mark.both_databases
@pytest.mark.parametrize("force", ["false", "true"])
def test_bulk_id_of_a_deleted_coupon(admin, bulk, make_coupon, force):
    coupon = make_coupon()
    admin.delete(f"/coupons/{coupon['id']}", {"force": force})
    assert bulk({"id": coupon["id"], "amount": 1}) == [failure(GONE, coupon["id"])]
