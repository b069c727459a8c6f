"""Routes and methods that do not exist (decisions 1, 13)."""

from itertools import product

import pytest

from tests.api.error_requests import NO_ROUTE
from tests.api_client import refusal, reply, without_suggestion
from tests.conversions.inputs import steps

pytestmark = pytest.mark.one_database


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_no_route(admin, anonymous, method):
    words = ("/nothing", "/coupon", "/Coupons", "/coupons/abc", "/coupons.json", "/" + "a" * 10_000)
    below = ("/1/2", "/1/orders", "/code", "/code/", "/code/a/b", "/bulk/1", "/%00")
    for path in (*words, *(f"/coupons{path}" for path in below), "/%F0%9F%8E%89", "/%ff%fe"):
        for client in (admin, anonymous):
            response = client.request(method, path)
            assert without_suggestion(response) == NO_ROUTE, path[:30]
            assert response.content_type == "application/json"


ONE = {"GET", "HEAD", "PUT", "DELETE"}


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("/coupon", "Did you mean /coupons?"),
        ("/order/5", "Did you mean /orders/{id}?"),
        ("/orders/5/note/", "Did you mean /orders/{id}/notes?"),
        ("/coupons/cuont", "Did you mean /coupons/count?"),
    ],
)
def test_unknown_path_has_a_suggestion(anonymous, path, suggestion):
    words = f"No route matches this path. {suggestion}"
    assert reply(anonymous.get(path)) == refusal("shop_api_no_route", words=words)


AT_SHOP = (
    "The API is located at /shop, for example /shop/orders, and the legacy API at /shop/wc-api/v3."
)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"SHOP_URL_PREFIX": "/shop"}, AT_SHOP),
        (
            {"SHOP_WC_V3": False},
            "The API is located at /, for example /orders, and the legacy API at /wc-api/v3.",
        ),
        (
            {"SHOP_WC_V3": False, "SHOP_LEGACY_API": False},
            "The API is located at /, for example /orders.",
        ),
    ],
)
def test_suggestion_follows_the_settings(make_app, given, sentence):
    response = make_app(**given).test_client().get("/wp-json/wc/v3/orders")
    words = f"No route matches this path. {sentence}"
    assert reply(response) == refusal("shop_api_no_route", words=words)


@pytest.mark.parametrize(
    ("path", "allowed", "methods"),
    [
        ("/coupons", {"GET", "HEAD", "POST"}, ["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"]),
        ("/coupons/count", {"GET", "HEAD"}, ["POST"]),
        ("/coupons/1", ONE, ["POST", "PATCH"]),
        ("/coupons/code/x", {"GET", "HEAD"}, ["PUT", "DELETE"]),
        ("/coupons/bulk", {"POST", "PUT"}, ["GET", "HEAD", "DELETE"]),
        ("/", {"GET", "HEAD"}, ["POST"]),
        ("/healthz", {"GET", "HEAD"}, ["DELETE"]),
    ],
)
def test_method_not_allowed(admin, anonymous, path, allowed, methods):
    for method, client in product(methods, (admin, anonymous)):
        response = client.request(method, path)
        assert response.status_code == 405
        assert set(response.headers["Allow"].split(", ")) - {"OPTIONS"} == allowed
        assert response.content_type == "application/json"
        if method != "HEAD":
            assert reply(response) == refusal(
                "shop_api_method_not_allowed", method=method, allowed=response.headers["Allow"]
            )


@pytest.mark.parametrize(
    "path", ["/coupons", "/coupons/count", "/coupons/{id}", "/coupons/code/{code}"]
)
def test_trailing_slash(admin, make_coupon, path):
    path = path.format_map(make_coupon())
    assert reply(admin.get(f"{path}/")) == reply(admin.get(path))
    assert admin.get(f"{path}/").status_code == 200


def test_trailing_slash_of_writes(admin, make_coupon):
    coupon = make_coupon()
    path = f"/coupons/{coupon['id']}/"
    assert admin.post("/coupons/", {"coupon": {"code": "x"}}).status_code == 201
    assert admin.put(path, {"coupon": {"amount": 1}}).status_code == 200
    assert admin.post("/coupons/bulk/", {"coupons": []}).status_code == 200
    assert admin.put("/coupons/bulk/", {"coupons": []}).status_code == 200
    assert admin.delete(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/coupons//{id}",
        "/coupons///{id}//",
        "/wc-api//v3///coupons//{id}",
        "/wp-json//wc/v3//coupons/{id}",
        "/index.php//wp-json/wc/v3/coupons/{id}",
    ],
)
def test_several_slashes_are_one(app, admin, make_coupon, path):
    sent = path.format_map(make_coupon())
    pair = (admin.key.consumer_key, admin.key.consumer_secret)
    response = app.test_client().get(f"https://localhost{sent}", auth=pair)
    assert response.status_code == 200


def test_slashes_of_an_email_address_stay(admin, make_customer):
    customer = make_customer(email="a//b@example.com")
    response = admin.get("/customers//email/a//b@example.com")
    assert response.get_json()["customer"]["id"] == customer["id"]
    assert admin.get("/customers/email/a/b@example.com").status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/coupons", "/docs", "/wc-api/v3/coupons"])
def test_upgrade_is_ignored(admin, path):
    headers = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket"}
    assert admin.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs"])
def test_trailing_slash_of_open_routes(anonymous, path):
    assert anonymous.get(path).status_code == 200
    assert anonymous.get(f"{path}/").status_code == 200


def test_head_answers_as_get_without_a_body(admin, make_coupon):
    coupon = make_coupon()
    native = (
        "/coupons",
        "/coupons/count",
        "/coupons/{id}",
        "/coupons/code/{code}",
        "/coupons?page=0",
    )
    others = ("/", "/healthz", "/readyz", "/openapi.json", "/docs/", "/coupons/999", "/nothing")
    for path in (each.format_map(coupon) for each in native + others):
        get, head = admin.get(path), admin.request("HEAD", path)
        assert head.status_code == get.status_code, path
        assert head.data == b""
        for name in ("Content-Type", "Content-Length", "X-Total", "X-TotalPages", "Link"):
            assert head.headers.get(name) == get.headers.get(name), (path, name)


def test_functions_for_urls_are_compiled_when_they_are_needed(make_app):
    (rule,) = make_app().url_map.iter_rules("coupons.get_coupon")
    first, second = (steps(rule.build, {"coupon_id": number}) for number in (1, 2))
    assert first > 5 * second
    assert rule.build({"coupon_id": 3}) == ("", "/coupons/3")
