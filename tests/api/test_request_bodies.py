"""Request bodies: JSON, wrapper keys and size (decisions 1, 3, 13)."""

import gzip
import io
from itertools import product

import pytest

from tests.api.error_requests import send
from tests.api_client import Client, codes, refusal, refused_params, reply

pytestmark = pytest.mark.one_database

__all__ = ["send"]  # a fixture

INVALID_JSON = (400, "shop_api_invalid_json")
MISSING = {
    ("POST", "/coupons"): "shop_api_missing_coupon_data",
    ("PUT", "/coupons/{id}"): "shop_api_missing_coupon_data",
    ("POST", "/coupons/bulk"): "shop_api_missing_coupons_data",
    ("PUT", "/coupons/bulk"): "shop_api_missing_coupons_data",
}
BODIES = [pytest.param(*key, id=" ".join(key)) for key in MISSING]


# --- compression ---


@pytest.mark.parametrize("coding", ["gzip", "DEFLATE", "br", "gzip, identity", "x-unknown"])
@pytest.mark.parametrize(
    ("method", "path"), [*BODIES, pytest.param("POST", "/orders", id="POST /orders")]
)
def test_compressed_body(app, admin, make_coupon, method, path, coding):
    path, headers = path.format_map(make_coupon()), {"Content-Encoding": coding}
    body = gzip.compress(b'{"coupon": {"code": "x"}}')
    response = admin.request(method, path, data=body, headers=headers)
    assert reply(response) == refusal(
        "shop_api_unsupported_media_type", "Content-Encoding", coding=coding
    )
    assert response.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_compressed_body_in_other_dialects_and_pages(app, admin, kind):
    options = {
        "auth": (admin.key.consumer_key, admin.key.consumer_secret),
        "base_url": "https://localhost",
        "data": gzip.compress(b'{"code": "x"}'),
        "headers": {"Content-Encoding": "gzip", "Content-Type": kind},
    }
    http = app.test_client()
    words = "The request body has the Content-Encoding 'gzip'. Send it without compression."
    response = http.post("/wc-api/v3/coupons", **options)
    (error,) = response.get_json()["errors"]
    assert (response.status_code, error["message"]) == (415, words)
    assert error["code"] == "woocommerce_api_unsupported_media_type"
    response = http.post("/wp-json/wc/v3/coupons", **options)
    assert (response.status_code, response.get_json()["message"]) == (415, words)
    assert response.get_json()["code"] == "woocommerce_rest_unsupported_media_type"
    if "form" in kind:
        del options["auth"]
        options["headers"]["Origin"] = "https://localhost"
        response = http.post("/admin/sign-in", **options)
        assert response.status_code == 415
        assert "without compression" in response.text


def test_identity_and_requests_without_a_body_are_not_compressed(admin, make_coupon):
    identity, gzipped = {"Content-Encoding": "Identity"}, {"Content-Encoding": "gzip"}
    coupon = {"coupon": {"code": "plain"}}
    assert admin.post("/coupons", coupon, headers=identity).status_code == 201
    assert admin.get("/coupons", headers=gzipped).status_code == 200
    assert reply(admin.request("POST", "/coupons", headers=gzipped)) == refusal(
        "shop_api_missing_coupon_data"
    )


# --- what is JSON ---


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_body_without_its_key(send, method, path):
    others = (b"null", b"true", b"5", b'"coupon"', b"[]", b'[{"coupon": {}}]', b"{}", b'{"": {}}')
    null, case = b'{"coupon": null, "coupons": null}', b'{"Coupon": {}, "COUPONS": []}'
    for body in (b"", b" \r\n\t", *others, null, case):
        assert reply(send(method, path, body)) == refusal(MISSING[method, path]), body


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_wrapper_key_of_the_wrong_type(send, method, path):
    for value in (b"5", b"0", b"1.5", b'"x"', b'""', b"true", b"false"):
        response = send(method, path, b'{"coupon": %s, "coupons": %s}' % (value, value))
        assert refused_params(response) == ["coupons" if "bulk" in path else "coupon"], value


# Values of a coupon beside its code, and of a key that is ignored, that are no JSON.
NO_VALUES = {
    "numbers": [b"NaN", b"Infinity", b"-Infinity", b"01", b"+1", b"1.", b"0x1"],
    "words": [b"True", b"now"],
    "strings": [b'"a\nb"', b'"a\0b"', b'"\\x41"', b'"\\u41"'],
    "surrogates": [b'"\\ud83c"', b'"\\udf89"', b'"\\udf89\\ud83c"'],
    "not UTF-8": [b'"\xff"', '"é"'.encode("latin-1"), b'"\xc0\xaf"', b'"\xed\xa0\xbc"'],
    "deep": [b"[" * 100_000 + b"]" * 100_000],
}


@pytest.mark.parametrize("kind", NO_VALUES)
def test_value_is_not_json(send, kind):
    for value in NO_VALUES[kind]:
        for body in (
            b'{"coupon": {"code": "x", "amount": %s}}' % value,
            b'{"coupon": {"code": %s}}' % value,
            b'{"coupon": {"code": "x", "other": %s}}' % value,
            b'{"coupon": {"code": "x"}, "other": %s}' % value,
        ):
            assert codes(send("POST", "/coupons", body)) == INVALID_JSON, value[:20]


CODE = b'{"coupon": {"code": "x"}}'


def test_wrapper_keys_that_are_swapped(send):
    assert refused_params(send("POST", "/coupons", b'{"coupon": []}')) == ["coupon"]
    assert refused_params(send("POST", "/coupons", b'{"coupon": [{"code": "x"}]}')) == ["coupon"]
    assert refused_params(send("POST", "/coupons/bulk", b'{"coupons": {}}')) == ["coupons"]
    assert refused_params(send("PUT", "/coupons/{id}", b'{"coupon": []}')) == ["coupon"]


NO_JSON = {
    "parts": [b'{"coupon": {"code": "x"', CODE + b" // now", CODE + b" {}", CODE + b"}", b"NaN"],
    "forms": [
        b"coupon[code]=x",
        b"<coupon/>",
        b"{'coupon': {'code': 'x'}}",
        b"{coupon: {code: x}}",
    ],
    "signs": [b'{"coupon": {"code": "x",}}', b'{"coupon": {"code": "x", "\\ud83c": 1}}', b"\0\0\0"],
    "UTF-16": [CODE.decode().encode("utf-16"), CODE.decode().encode("utf-16-le")],
    "byte order mark": [b"\xef\xbb\xbf", b"\xef\xbb\xbf" + CODE],
    "deep": [
        b"[" * 2_000 + b"]" * 2_000,
        b"[" * 1_000_000,
        b'{"coupon":' * 100_000 + b"1" + b"}" * 100_000,
    ],
}


@pytest.mark.parametrize("kind", NO_JSON)
def test_body_is_not_json(send, kind):
    for body in NO_JSON[kind]:
        for method, path in MISSING:
            response = send(method, path, body)
            assert codes(response) == INVALID_JSON, body[:20]
            assert response.content_type == "application/json"


def test_huge_number_is_rejected(send):
    digits = "9" * 5_000
    numbers = ("1e400", "-1e400", "1e99999999", digits, f"-{digits}", f"0.{digits * 20}e400")
    for number, field in product(numbers, ("amount", "usage_limit", "expiry_date", "code")):
        body = f'{{"coupon": {{"code": "x", "{field}": {number}}}}}'
        status, code = codes(send("POST", "/coupons", body))
        assert status == 400
        assert code in {"shop_api_invalid_json", "shop_api_invalid_param"}


@pytest.mark.parametrize(
    "number", ["1e400", "9" * 30, "9" * 5_000, "1e-400"], ids=lambda number: number[:12]
)
def test_huge_number_in_an_unknown_field_is_no_crash(send, number):
    response = send("POST", "/coupons", f'{{"coupon": {{"code": "x", "other": {number}}}}}')
    assert response.status_code in {201, 400}


def test_body_is_json_whatever_its_content_type(send):
    json = (
        "application/json",
        "application/json; charset=utf-8",
        "application/json; charset=latin-1",
    )
    forms = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for number, given in enumerate(
        (None, *json, *forms, "text/plain", "application/xml", "nonsense")
    ):
        body = f'{{"coupon": {{"code": "é{number}"}}}}'
        response = send("POST", "/coupons", body, content_type=given)
        shown = response.status_code, response.get_json()["coupon"]["code"]
        assert shown == (201, f"é{number}"), given


def test_duplicate_key_the_last_counts(send):
    body = '{"coupon": {"code": "no"}, "coupon": {"code": "a", "code": "b"}}'
    assert send("POST", "/coupons", body).get_json()["coupon"]["code"] == "b"


def test_blanks_around_the_body(send):
    response = send("POST", "/coupons", '\r\n\t {"coupon": {"code": "x"}} \n')
    assert response.status_code == 201


# --- size ---


def body_of(size):
    """A valid body of a coupon with so many bytes."""
    start = b'{"coupon": {"code": "x", "other": "'
    return start + b"x" * (size - len(start) - 3) + b'"}}'


TOO_LARGE = refusal("shop_api_request_entity_too_large", limit=200)


def test_body_over_the_byte_limit(app_with, admin):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200), admin.key)
    assert reply(client.post("/coupons", data=body_of(201))) == TOO_LARGE
    assert reply(client.put("/coupons/1", data=body_of(201))) == TOO_LARGE
    assert reply(client.post("/coupons/bulk", data=body_of(10_000))) == TOO_LARGE
    assert reply(client.post("/coupons", data=b"x" * 201)) == TOO_LARGE
    assert client.post("/coupons", data=body_of(200)).status_code == 201


def test_body_over_the_byte_limit_without_a_length(app_with, admin):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200), admin.key)

    def chunked(size):
        environ = {"wsgi.input_terminated": True}
        stream = io.BytesIO(body_of(size))
        return client.post("/coupons", input_stream=stream, environ_overrides=environ)

    assert reply(chunked(201)) == TOO_LARGE
    assert chunked(200).status_code == 201


def test_body_over_the_byte_limit_stands_behind_credentials(app_with, app):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200))
    response = client.post("/coupons", data=body_of(201))
    assert codes(response) == (401, "shop_api_authentication_error")


def test_body_limit_is_5_mebibytes(admin):
    limit = 5 * 1024 * 1024
    response = admin.post("/coupons", data=body_of(limit + 1))
    assert reply(response) == refusal("shop_api_request_entity_too_large", limit=limit)
    assert admin.post("/coupons", data=body_of(limit)).status_code == 201
