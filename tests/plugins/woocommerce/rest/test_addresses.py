"""Addresses and signatures of shops without permalinks and without TLS (wc-v3, surface 1 and 2)."""

from urllib.parse import urlencode

import pytest
from oauthlib.oauth1 import SIGNATURE_TYPE_AUTH_HEADER, SIGNATURE_TYPE_BODY, SIGNATURE_TYPE_QUERY
from oauthlib.oauth1 import Client as Signer

from tests.plugins.woocommerce.rest.recorded_shop import KEYS
from tests.plugins.woocommerce.rest.seed import reset

pytestmark = pytest.mark.one_database

PAIR = (KEYS["admin_rw"]["consumer_key"], KEYS["admin_rw"]["consumer_secret"])
FORM = "application/x-www-form-urlencoded"
ORIGIN = "http://shop.example"
ADDRESSES = (
    "/wp-json/wc/v3{}?",
    "/index.php/wp-json/wc/v3{}?",
    "/?rest_route=/wc/v3{}&",
    "/index.php?rest_route=%2Fwc%2Fv3{}&",
    "/?per_page=5&rest%5Froute=wc/v3{}/&",
)


@pytest.fixture
def http(app):
    reset(app)
    return app.test_client()


def with_tls(http, method, address, body=None):
    options = {"auth": PAIR, "base_url": "https://shop.example"}
    return http.open(address, method=method, json=body, **options)


@pytest.mark.parametrize("address", ADDRESSES)
def test_all_methods_work_at_all_addresses(http, address):
    listed = with_tls(http, "GET", address.format("/coupons") + "include=16&_fields=id")
    assert (listed.status_code, listed.get_json()) == (200, [{"id": 16}])
    assert listed.headers["X-WP-Total"] == "1"
    created = with_tls(http, "POST", address.format("/coupons"), {"code": "without-permalinks"})
    assert created.status_code == 201
    path = f"/coupons/{created.get_json()['id']}"
    assert created.headers["Location"].endswith(f"/wp-json/wc/v3{path}")
    changed = with_tls(http, "PUT", address.format(path), {"amount": "3"})
    assert changed.get_json()["amount"] == "3.00"
    overridden = with_tls(http, "POST", address.format(path) + "_method=PUT", {"amount": "4"})
    assert overridden.get_json()["amount"] == "4.00"
    assert with_tls(http, "HEAD", address.format(path)).status_code == 200
    assert with_tls(http, "OPTIONS", address.format(path)).get_json()["namespace"] == "wc/v3"
    batch = with_tls(http, "POST", address.format("/coupons/batch"), {"delete": [16]})
    assert [each["id"] for each in batch.get_json()["delete"]] == [16]
    deleted = with_tls(http, "DELETE", address.format(path) + "force=true")
    assert (deleted.status_code, deleted.get_json()["id"]) == (200, created.get_json()["id"])


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("kind", [SIGNATURE_TYPE_QUERY, SIGNATURE_TYPE_AUTH_HEADER])
def test_signatures_cover_the_address_that_was_sent(http, address, kind):
    signer = Signer(*PAIR, signature_type=kind)
    signed, headers, _ = signer.sign(f"{ORIGIN}{address.format('/coupons')}search=a%20b", "GET")
    response = http.get(signed.removeprefix(ORIGIN), headers=headers, base_url=ORIGIN)
    assert response.status_code == 200, response.get_json()
    other = signed.replace("coupons", "orders").removeprefix(ORIGIN)
    assert http.get(other, headers=headers, base_url=ORIGIN).status_code == 401


def test_addresses_below_a_prefix(app_with, app):
    reset(app)
    http = app_with(SHOP_URL_PREFIX="/shop").test_client()
    for start in ("/shop/?rest_route=/wc/v3", "/shop/index.php/wp-json/wc/v3"):
        assert with_tls(http, "GET", f"{start}/coupons/16").get_json()["id"] == 16
    assert with_tls(http, "GET", "/?rest_route=/wc/v3/coupons/16").status_code == 404


def test_other_values_of_rest_route(http, app_with):
    assert "namespaces" in with_tls(http, "GET", "/?rest_route=/").get_json()
    unknown = with_tls(http, "GET", "/?rest_route=/wp/v2/posts")
    assert (unknown.status_code, unknown.get_json()["code"]) == (404, "rest_no_route")
    native = with_tls(http, "GET", "/").get_json()
    assert with_tls(http, "GET", "/?rest_route=").get_json() == native
    assert with_tls(http, "GET", "/?rest_routes=/wc/v3/coupons").get_json() == native
    without = app_with(SHOP_WC_V3=False).test_client()
    assert with_tls(without, "GET", "/?rest_route=/wc/v3/coupons").get_json() == native


def test_the_pages_of_a_list_lead_to_each_other(http):
    first = with_tls(http, "GET", "/?rest_route=/wc/v3/coupons&per_page=3&orderby=id")
    address = first.headers["Link"].partition(">")[0].removeprefix("<https://shop.example")
    assert address == "/wp-json/wc/v3/coupons?per_page=3&orderby=id&page=2"
    assert len(with_tls(http, "GET", address).get_json()) == 3


@pytest.mark.parametrize("version", ["v1", "v2", "v4"])
@pytest.mark.parametrize("path", ["", "/coupons", "/orders/1"])
@pytest.mark.parametrize("address", ["/wp-json/wc/{}{}", "/?rest_route=/wc/{}{}"])
def test_other_versions_name_the_one_that_exists(http, address, version, path):
    response = with_tls(http, "GET", address.format(version, path))
    assert (response.status_code, response.get_json()["code"]) == (404, "rest_no_route")
    assert "wc/v3" in response.get_json()["message"]


def signed_form(kind, fields, path="/wp-json/wc/v3/coupons", method="POST"):
    """A signed request with a form as its body."""
    signer = Signer(*PAIR, signature_type=kind)
    headers = {"Content-Type": FORM}
    url, headers, body = signer.sign(f"{ORIGIN}{path}", method, urlencode(fields), headers)
    return {"path": url.removeprefix(ORIGIN), "method": method, "data": body, "headers": headers,
            "base_url": ORIGIN}  # fmt: skip


KINDS = (SIGNATURE_TYPE_QUERY, SIGNATURE_TYPE_AUTH_HEADER, SIGNATURE_TYPE_BODY)
FIELDS = {"code": "x é+/&", "amount": "3", "meta_data[0][key]": "a b", "meta_data[0][value]": ""}


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_of_a_form_are_signed(http, kind):
    request = signed_form(kind, FIELDS)
    response = http.open(**request)
    assert response.status_code == 201, response.get_json()
    assert response.get_json()["code"] == "x é+/&"
    again = http.open(**request).get_json()
    assert again["message"] == "Invalid nonce - nonce has already been used."


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_are_not_signed_are_rejected(http, kind):
    for change in (b"&description=y", b"&amount=100"):
        request = signed_form(kind, {"code": "x", "amount": "3"})
        body = request["data"] or ""
        request["data"] = (body if isinstance(body, bytes) else body.encode()) + change
        response = http.open(**request)
        assert response.status_code == 401, response.get_json()
        assert response.get_json()["message"] == (
            "Invalid signature - provided signature does not match."
        )


def test_a_signature_of_the_address_alone_does_not_cover_a_form(http):
    signer = Signer(*PAIR, signature_type=SIGNATURE_TYPE_QUERY)
    url, headers, _ = signer.sign(f"{ORIGIN}/wp-json/wc/v3/coupons", "POST")
    path, form = url.removeprefix(ORIGIN), {"code": "x", "amount": "3"}
    assert http.post(path, data=form, headers=headers, base_url=ORIGIN).status_code == 401
    url, headers, _ = signer.sign(f"{ORIGIN}/wp-json/wc/v3/coupons", "POST")
    path = url.removeprefix(ORIGIN)  # JSON is not signed
    assert http.post(path, json=form, headers=headers, base_url=ORIGIN).status_code == 201


@pytest.mark.parametrize("is_form_signed", [True, False])
def test_a_form_of_another_method_may_be_signed(http, is_form_signed):
    """PHP reads the fields of POST only, while RFC 5849 signs those of all methods."""
    path = "/wp-json/wc/v3/coupons/16"
    request = signed_form(
        SIGNATURE_TYPE_QUERY, {"amount": "3"} if is_form_signed else {}, path, "PUT"
    )
    request["data"] = "amount=3"
    assert http.open(**request).get_json()["amount"] == "3.00"


@pytest.mark.parametrize("absent", ["oauth_nonce", "oauth_signature"])
def test_a_form_without_a_parameter_of_its_signature(http, absent):
    request = signed_form(SIGNATURE_TYPE_BODY, {"code": "x"})
    body = request["data"].decode() if isinstance(request["data"], bytes) else request["data"]
    request["data"] = "&".join(
        each for each in body.split("&") if not each.startswith(f"{absent}=")
    )
    response = http.open(**request)
    assert (response.status_code, response.get_json()["message"]) == (
        401,
        f"Missing OAuth parameter {absent}",
    )


def test_large_forms_are_rejected_before_the_caller_is_known(http):
    many = signed_form(SIGNATURE_TYPE_QUERY, {f"x{number}": "y" for number in range(300)})
    assert http.open(**many).status_code == 401
    large = signed_form(SIGNATURE_TYPE_QUERY, {"code": "x", "description": "y" * 70_000})
    assert http.open(**large).status_code == 413
    anonymous = {"data": "a=" + "y" * 70_000, "content_type": FORM, "base_url": ORIGIN}
    assert http.post("/wp-json/wc/v3/coupons", **anonymous).status_code == 413
    body = "code=x&unknown=" + "y" * 70_000
    options = {"auth": PAIR, "base_url": "https://shop.example", "content_type": FORM}
    assert http.post("/wp-json/wc/v3/coupons", data=body, **options).status_code == 201
