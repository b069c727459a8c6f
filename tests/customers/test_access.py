"""A request that names a customer requires a key for customers or orders (decisions 2)."""

import pytest

from tests.api_client import codes, reply
from tests.api_keys.calls import REJECTED

REASON = (
    "This API key is not valid for the resource customers or orders. A customer_id requires one of "
    "them."
)


def evaluate(client, **cart):
    return client.post("/coupons/evaluate", {"cart": {"items": [], "coupons": ["secret"]} | cart})


def redeem(client, **fields):
    redemption = {"code": "secret", "reference": "cart-1"} | fields
    return client.post("/redemptions", {"redemption": redemption})


NAMING = [(evaluate, "coupons"), (redeem, "redemptions")]


@pytest.mark.parametrize(("call", "resource"), NAMING)
def test_customers_are_not_revealed(limited, make_coupon, make_customer, call, resource):
    """Known and unknown IDs have the same response, regardless of the coupon."""
    make_coupon(code="secret", customer_emails=["a*@example.com"])
    known = make_customer(email="ann@example.com")["id"]
    client = limited(resources=frozenset({resource, "events", "keys"}))
    responses = [
        call(client, customer_id=customer_id, **more)
        for customer_id in (known, str(known), 999, 2**62)
        for more in ({}, {"email": "ann@example.com"})
    ]
    assert {codes(response) for response in responses} == {REJECTED}
    bodies = [response.get_json() for response in responses]
    assert all(body == bodies[0] for body in bodies)
    assert REASON in bodies[0]["errors"][0]["message"]


@pytest.mark.parametrize("allowed", ["customers", "orders"])
@pytest.mark.parametrize(("call", "resource"), NAMING)
def test_keys_for_customers_or_orders_can_name_them(
    limited, make_coupon, make_customer, call, resource, allowed
):
    make_coupon(code="secret")
    customer = make_customer(email="ann@example.com")["id"]
    client = limited(resources=frozenset({resource, allowed}))
    assert call(client, customer_id=customer).status_code in {200, 201}
    assert codes(call(client, customer_id=999)) == (400, "shop_api_invalid_customer_id")


@pytest.mark.parametrize(("call", "resource"), NAMING)
def test_guests_need_no_other_resource(limited, make_coupon, call, resource):
    make_coupon(code="secret", customer_emails=["ann@example.com"])
    client = limited(resources=frozenset({resource}))
    for customer_id in (0, None, "0"):
        response = call(client, customer_id=customer_id, email="ann@example.com")
        assert response.status_code in {200, 201}


def test_a_missing_capability_is_reported_first(limited):
    client = limited("eve", role="customer", resources=frozenset({"coupons", "redemptions"}))
    assert codes(evaluate(client, customer_id=7)) == (401, "shop_api_user_cannot_read_coupons")
    assert reply(redeem(client, customer_id=7))[1]["errors"][0]["code"] == (
        "shop_api_user_cannot_create_redemption"
    )
