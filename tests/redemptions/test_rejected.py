"""Requests for redemptions that are rejected (redemptions 4 and 6)."""

import pytest

from tests.api_client import refusal, refused_params, reply
from tests.redemptions.calls import post, reserve


@pytest.mark.parametrize("body", [None, {}, {"redemption": None}, {"cart": {}}])
def test_missing_redemption(admin, body):
    expected = refusal("shop_api_missing_redemption_data")
    assert reply(admin.post("/redemptions", body)) == expected


@pytest.mark.parametrize("code", [None, "", " <b> "])
def test_missing_code(admin, code):
    assert reply(post(admin, code)) == refusal("shop_api_missing_coupon_code")


@pytest.mark.parametrize(
    "over",
    [
        {"reference": None},
        {"reference": ""},
        {"reference": " "},
        {"reference": "x" * 192},
        {"reference": "order-1"},
        {"reference": ["a"]},
        {"expires_in": 59},
        {"expires_in": 604_801},
        {"amount": "a"},
        {"amount": "-5.00"},
        {"customer_id": "ada"},
        {"email": "x" * 255},
    ],
)
def test_input_that_cannot_be_understood(admin, make_coupon, over):
    make_coupon(code="summer")
    assert refused_params(post(admin, **over)) == [f"redemption.{name}" for name in over]


@pytest.mark.parametrize("customer_id", [-1, 999_999])
def test_unknown_customer(admin, make_coupon, customer_id):
    make_coupon(code="summer")
    _, body = refusal("shop_api_invalid_customer_id", param="redemption.customer_id")
    assert reply(post(admin, customer_id=customer_id)) == (400, body)


def test_capabilities(admin, client_for, make_coupon):
    make_coupon(code="summer")
    redemption = reserve(admin)
    nobody = client_for("customer")
    path = f"/redemptions/{redemption['id']}"
    assert reply(post(nobody, None)) == refusal("shop_api_user_cannot_create_redemption")
    for action in ("confirm", "release"):
        expected = refusal("shop_api_user_cannot_edit_redemption")
        assert reply(nobody.post(f"{path}/{action}")) == expected
    assert reply(nobody.get(path)) == refusal("shop_api_user_cannot_read_redemption")
    assert reply(nobody.get("/redemptions")) == (200, {"redemptions": []})
    assert nobody.get("/redemptions").headers["X-Total"] == "0"
    expected = refusal("shop_api_user_cannot_read_redemptions_count")
    assert reply(nobody.get("/redemptions/count")) == expected


@pytest.mark.parametrize("redemption_id", ["999999", "9" * 30])
def test_unknown_id(admin, redemption_id):
    expected = refusal("shop_api_invalid_redemption_id")
    assert reply(admin.get(f"/redemptions/{redemption_id}")) == expected
    for action in ("confirm", "release"):
        assert reply(admin.post(f"/redemptions/{redemption_id}/{action}")) == expected


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_redemptions_are_native_only(admin, version):
    assert admin.get(f"/wc-api/{version}/redemptions").status_code == 404


def test_idempotency_key(admin, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    body = {"redemption": {"code": "summer", "reference": "1"}}
    first = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    again = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    assert (first.status_code, reply(again)) == (201, reply(first))
    assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(
    "email", ["x", "ada@", "ada@example", "a b@example.com", "ada@example..com"]
)
def test_email_that_is_no_address(admin, make_coupon, email):
    make_coupon(code="summer", usage_limit_per_user=1)
    response = post(admin, email=email)
    assert response.status_code == 400
    (error,) = response.get_json()["errors"]
    assert (error["code"], error["param"]) == ("shop_api_invalid_param", "redemption.email")
    assert admin.get("/redemptions/count").get_json()["count"] == 0
    for valid in ("", " Ada@Example.com ", "max@münchen.example", "ada@shop.test"):
        assert post(admin, email=valid, reference=valid or "none").status_code == 201
