"""Requests for redemptions that are rejected (redemptions 4 and 6)."""

import pytest

from tests.api_client import refusal, refused_params, reply
from tests.redemptions.calls import post


def test_a_missing_capability_precedes_a_missing_code(client_for):
    nobody = client_for("customer")
    assert reply(post(nobody, None)) == refusal("shop_api_user_cannot_create_redemption")


@pytest.mark.parametrize("body", [None, {}, {"redemption": None}, {"cart": {}}])
def test_missing_redemption(admin, body):
    expected = refusal("shop_api_missing_redemption_data")
    assert reply(admin.post("/redemptions", body)) == expected


@pytest.mark.parametrize("code", [None, "", " <b> "])
def test_missing_code(admin, code):
    assert reply(post(admin, code)) == refusal("shop_api_missing_coupon_code")


def test_input_that_cannot_be_understood(admin, make_coupon):
    make_coupon(code="summer")
    for name, values in (
        ("reference", [None, "", " ", "x" * 192, "order-1", ["a"]]),
        ("expires_in", [59, 604_801]),
        ("amount", ["a", "-5.00"]),
        ("customer_id", ["ada"]),
        ("email", ["x" * 255, "x", "ada@", "ada@example", "a b@example.com", "ada@example..com"]),
    ):
        for value in values:
            response = post(admin, **{name: value})
            assert refused_params(response) == [f"redemption.{name}"], value
    assert admin.get("/redemptions/count").get_json()["count"] == 0


def test_email_of_any_domain_or_none(admin, make_coupon):
    make_coupon(code="summer", usage_limit_per_user=1)
    for email in ("", " Ada@Example.com ", "max@münchen.example", "ada@shop.test"):
        assert post(admin, email=email, reference=email or "none").status_code == 201


@pytest.mark.parametrize("customer_id", [-1, 999_999])
def test_unknown_customer(admin, make_coupon, customer_id):
    make_coupon(code="summer")
    _, body = refusal("shop_api_invalid_customer_id", param="redemption.customer_id")
    assert reply(post(admin, customer_id=customer_id)) == (400, body)


@pytest.mark.parametrize("redemption_id", ["999999", "9" * 30])
def test_unknown_id(admin, redemption_id):
    expected = refusal("shop_api_invalid_redemption_id")
    assert reply(admin.get(f"/redemptions/{redemption_id}")) == expected
    for action in ("confirm", "release"):
        assert reply(admin.post(f"/redemptions/{redemption_id}/{action}")) == expected


def test_idempotency_key(admin, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    body = {"redemption": {"code": "summer", "reference": "1"}}
    first = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    again = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    assert (first.status_code, reply(again)) == (201, reply(first))
    assert again.headers["Idempotent-Replayed"] == "true"
