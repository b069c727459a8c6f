"""Bulk requests for the tests of coupons."""

import json

import pytest

TAKEN = "shop_api_coupon_code_already_exists"


@pytest.fixture(params=["POST", "PUT"])
def bulk(request, admin):
    """Return a function: the results of items, sent by each of the two methods."""

    def send(*items, client=None):
        response = (client or admin).request(
            request.param, "/coupons/bulk", json={"coupons": list(items)}
        )
        assert response.status_code == 200, response.get_json()
        body = json.loads(response.data)  # keeps the digits of an id beyond 64 bits
        assert list(body) == ["coupons"]
        return body["coupons"]

    return send


def read(client, coupon_id):
    return client.get(f"/coupons/{coupon_id}").get_json()["coupon"]


def shop_codes(client):
    """The codes of the published coupons, by id."""
    listed = client.get("/coupons", {"fields": "id,code"}).get_json()["coupons"]
    return {coupon["id"]: coupon["code"] for coupon in listed}


def refused(result):
    """The ID and the code of a failed item, without its message."""
    assert set(result) == {"id", "error"}
    assert set(result["error"]) == {"code", "message"}
    assert isinstance(result["error"]["message"], str)
    assert result["error"]["message"]
    return result["id"], result["error"]["code"]
