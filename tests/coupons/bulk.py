"""Bulk requests for the tests of coupons."""

import pytest

from tests.api_client import bulk_results

TAKEN = "shop_api_coupon_code_already_exists"


@pytest.fixture(params=["POST", "PUT"])
def bulk(request, admin):
    """Return a function: the results of items, sent by each of the two methods."""

    def send(*items, client=None):
        return bulk_results(client or admin, "coupon", *items, method=request.param)

    return send


def read(client, coupon_id):
    return client.get(f"/coupons/{coupon_id}").get_json()["coupon"]


def shop_codes(client):
    """The codes of the published coupons, by id."""
    listed = client.get("/coupons", {"fields": "id,code"}).get_json()["coupons"]
    return {coupon["id"]: coupon["code"] for coupon in listed}
