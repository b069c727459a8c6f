"""Two forms of one e-mail address: a domain in Unicode and in ASCII (decisions 13)."""

import pytest

from tests.api_client import codes
from tests.coupons.test_evaluate import reasons
from tests.plugins.woocommerce.rest.test_dialect import shop
from tests.redemptions.calls import post, rejected, reserve

__all__ = ["shop"]  # a fixture

pytestmark = pytest.mark.both_databases

UNICODE, ASCII = "max@münchen.example", "max@xn--mnchen-3ya.example"
OTHERS = ["Max@MÜNCHEN.example", "max@münchen\u3002example", "max@m\uff55\u0308nchen\uff0eexample"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("stored", "typed"), [(UNICODE, ASCII), (ASCII, UNICODE)])
def test_an_address_in_another_form_is_the_same_account(admin, make_customer, stored, typed):
    customer = make_customer(email=stored)
    assert customer["email"] == stored
    for prefix in ("", "/wc-api/v3"):
        for form in (typed, stored, *OTHERS):
            found = admin.get(f"{prefix}/customers/email/{form}")
            assert found.get_json()["customer"]["id"] == customer["id"]
            body = {"customer": {"email": form}}
            assert admin.post(f"{prefix}/customers", body).status_code == 400
    assert codes(admin.post("/customers", body)) == (400, "registration-error-email-exists")
    for word in (typed, stored, *OTHERS, "m*@münchen\uff61example"):
        found = admin.get("/customers", {"q": word}).get_json()["customers"]
        assert [each["id"] for each in found] == [customer["id"]]
    body = {"customer": {"email": typed}}
    changed = admin.put(f"/customers/{customer['id']}", body).get_json()["customer"]
    assert changed["email"] == typed


def test_a_search_knows_the_forms_of_a_domain_below_another_one(admin, make_customer):
    customer = make_customer(email="max@post.münchen.example")
    for word in ("max@post.xn--mnchen-3ya.example", "MAX@Post.XN--mnchen-3ya", "max@post.mü"):
        found = admin.get("/customers", {"q": word}).get_json()["customers"]
        assert [each["id"] for each in found] == [customer["id"]]


def test_uses_and_restrictions_of_an_address_in_another_form(admin, make_coupon):
    make_coupon(code="once", usage_limit_per_user=1)
    reserve(admin, "once", "a", email=UNICODE)
    assert rejected(post(admin, "once", "b", email=ASCII)) == ["usage_limit_per_user"]
    reserve(admin, "once", "c", email="max@munchen.example")
    (found,) = admin.get("/redemptions", {"email": ASCII}).get_json()["redemptions"]
    assert found["email"] == UNICODE
    for entry in (ASCII, UNICODE, "*@xn--mnchen-3ya.example", "m*@MÜNCHEN.example"):
        make_coupon(code="theirs", customer_emails=[entry])
        for form in (ASCII, UNICODE, *OTHERS):
            assert reasons(admin, "theirs", email=form) == []
        assert reasons(admin, "theirs", email="max@munchen.example") == ["email_not_allowed"]
        (coupon,) = admin.get("/coupons?q=theirs").get_json()["coupons"]
        admin.delete(f"/coupons/{coupon['id']}?force=true")


def test_wc_v3_accepts_the_addresses_that_others_accept(shop):
    customer = shop.ok("POST", "/customers", {"email": "jörg@münchen.example"})
    assert customer["email"] == "jörg@münchen.example"
    found = shop.ok("GET", "/customers?email=jörg@xn--mnchen-3ya.example&role=all")
    assert [each["id"] for each in found] == [customer["id"]]
    again = shop.send("POST", "/customers", {"email": "jörg@xn--mnchen-3ya.example"})
    assert (again.status_code, again.get_json()["code"]) == (400, "registration-error-email-exists")
    shown = {"email": customer["email"], "billing": {"email": customer["email"]}}
    changed = shop.ok("PUT", f"/customers/{customer['id']}", shown)
    assert changed["email"] == changed["billing"]["email"] == customer["email"]
    order = shop.ok("POST", "/orders", {"billing": {"email": customer["email"]}})
    again = shop.ok("PUT", f"/orders/{order['id']}", {"billing": order["billing"]})
    assert again["billing"]["email"] == customer["email"]
    coupon = shop.ok("POST", "/coupons", {"code": "x1", "email_restrictions": [customer["email"]]})
    assert coupon["email_restrictions"] == [customer["email"]]
