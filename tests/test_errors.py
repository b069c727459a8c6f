"""All errors have the same body, independent of their cause (spec 7; decisions 1, 3, 6, 13)."""

import io
import json
import logging
import re

import psycopg
import pytest
from conftest import Client, codes, refusal, refused_params, reply

NO_ROUTE = refusal("shop_api_no_route")
INVALID_JSON = (400, "shop_api_invalid_json")
MISSING = {
    ("POST", "/coupons"): "shop_api_missing_coupon_data",
    ("PUT", "/coupons/{id}"): "shop_api_missing_coupon_data",
    ("POST", "/coupons/bulk"): "shop_api_missing_coupons_data",
    ("PUT", "/coupons/bulk"): "shop_api_missing_coupons_data",
}
BODIES = [pytest.param(*key, id=" ".join(key)) for key in MISSING]


@pytest.fixture
def send(admin, make_coupon):
    """Return a function that sends a body to an operation of a shop with one coupon."""
    coupon = make_coupon(code="only")

    def request(method, path, body, **kwargs):
        response = admin.request(method, path.format_map(coupon), data=body, **kwargs)
        if response.status_code >= 400:
            assert reply(admin.get("/coupons")) == (200, {"coupons": [coupon]})
        return response

    return request


# --- routing ---


@pytest.mark.one_database
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/coupon",
        "/Coupons",
        "/coupons/abc",
        "/coupons/1/2",
        "/coupons/1/orders",
        "/coupons/code",
        "/coupons/code/",
        "/coupons/code/a/b",
        "/coupons/bulk/1",
        "/coupons.json",
        "/coupons/%00",
        "/coupons//1",
        "/%F0%9F%8E%89",
        "/%ff%fe",
        "/" + "a" * 10_000,
    ],
    ids=lambda path: path[:30],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_no_route(admin, anonymous, method, path):
    for client in (admin, anonymous):
        response = client.request(method, path)
        assert reply(response) == NO_ROUTE
        assert response.content_type == "application/json"


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/coupons", {"GET", "HEAD", "POST"}),
        ("DELETE", "/coupons", {"GET", "HEAD", "POST"}),
        ("PATCH", "/coupons", {"GET", "HEAD", "POST"}),
        ("POST", "/coupons/count", {"GET", "HEAD"}),
        ("POST", "/coupons/1", {"GET", "HEAD", "PUT", "DELETE"}),
        ("PATCH", "/coupons/1", {"GET", "HEAD", "PUT", "DELETE"}),
        ("PUT", "/coupons/code/x", {"GET", "HEAD"}),
        ("DELETE", "/coupons/code/x", {"GET", "HEAD"}),
        ("GET", "/coupons/bulk", {"POST", "PUT"}),
        ("HEAD", "/coupons/bulk", {"POST", "PUT"}),
        ("DELETE", "/coupons/bulk", {"POST", "PUT"}),
        ("TRACE", "/coupons", {"GET", "HEAD", "POST"}),
        ("PROPFIND", "/coupons", {"GET", "HEAD", "POST"}),
        ("POST", "/", {"GET", "HEAD"}),
        ("DELETE", "/healthz", {"GET", "HEAD"}),
    ],
)
def test_method_not_allowed(admin, anonymous, method, path, allowed):
    for client in (admin, anonymous):
        response = client.request(method, path)
        assert response.status_code == 405
        assert set(response.headers["Allow"].split(", ")) - {"OPTIONS"} == allowed
        assert response.content_type == "application/json"
        if method != "HEAD":
            assert reply(response) == refusal(
                "shop_api_method_not_allowed", method=method, allowed=response.headers["Allow"]
            )


@pytest.mark.one_database
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


@pytest.mark.one_database
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs"])
def test_trailing_slash_of_open_routes(anonymous, path):
    assert anonymous.get(path).status_code == 200
    assert anonymous.get(f"{path}/").status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize(
    "path",
    [
        "/coupons",
        "/coupons/count",
        "/coupons/{id}",
        "/coupons/code/{code}",
        "/",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/docs/",
        "/coupons/999",
        "/coupons?page=0",
        "/nothing",
    ],
)
def test_head_answers_as_get_without_a_body(admin, make_coupon, path):
    path = path.format_map(make_coupon())
    get, head = admin.get(path), admin.request("HEAD", path)
    assert head.status_code == get.status_code
    assert head.data == b""
    for name in ("Content-Type", "Content-Length", "X-Total", "X-TotalPages", "Link"):
        assert head.headers.get(name) == get.headers.get(name)


# --- what is JSON ---


@pytest.mark.one_database
@pytest.mark.parametrize(("method", "path"), BODIES)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \r\n\t",
        b"null",
        b"true",
        b"5",
        b'"coupon"',
        b"[]",
        b'[{"coupon": {}}]',
        b"{}",
        b'{"coupon": null, "coupons": null}',
        b'{"Coupon": {}, "COUPONS": []}',
        b'{"": {}}',
    ],
)
def test_body_without_its_key(send, method, path, body):
    assert reply(send(method, path, body)) == refusal(MISSING[method, path])


@pytest.mark.one_database
@pytest.mark.parametrize(("method", "path"), BODIES)
@pytest.mark.parametrize("value", [b"5", b"0", b"1.5", b'"x"', b'""', b"true", b"false"])
def test_wrapper_key_of_the_wrong_type(send, method, path, value):
    response = send(method, path, b'{"coupon": %s, "coupons": %s}' % (value, value))
    assert refused_params(response) == ["coupons" if "bulk" in path else "coupon"]


def test_wrapper_keys_that_are_swapped(send):
    assert refused_params(send("POST", "/coupons", b'{"coupon": []}')) == ["coupon"]
    assert refused_params(send("POST", "/coupons", b'{"coupon": [{"code": "x"}]}')) == ["coupon"]
    assert refused_params(send("POST", "/coupons/bulk", b'{"coupons": {}}')) == ["coupons"]
    assert refused_params(send("PUT", "/coupons/{id}", b'{"coupon": []}')) == ["coupon"]


NO_JSON = {
    "truncated": b'{"coupon": {"code": "x"',
    "single quotes": b"{'coupon': {'code': 'x'}}",
    "bare words": b"{coupon: {code: x}}",
    "form": b"coupon[code]=x",
    "xml": b"<coupon/>",
    "trailing comma": b'{"coupon": {"code": "x",}}',
    "comment": b'{"coupon": {"code": "x"}} // now',
    "two documents": b'{"coupon": {"code": "x"}} {}',
    "trailing bracket": b'{"coupon": {"code": "x"}}}',
    "NaN": b'{"coupon": {"code": "x", "amount": NaN}}',
    "Infinity": b'{"coupon": {"code": "x", "amount": Infinity}}',
    "-Infinity": b'{"coupon": {"code": "x", "amount": -Infinity}}',
    "NaN alone": b"NaN",
    "NaN in an unknown field": b'{"coupon": {"code": "x"}, "other": NaN}',
    "leading zero": b'{"coupon": {"code": "x", "amount": 01}}',
    "plus": b'{"coupon": {"code": "x", "amount": +1}}',
    "bare point": b'{"coupon": {"code": "x", "amount": 1.}}',
    "hexadecimal": b'{"coupon": {"code": "x", "amount": 0x1}}',
    "True": b'{"coupon": {"code": "x", "individual_use": True}}',
    "control character": b'{"coupon": {"code": "a\nb"}}',
    "nul byte": b'{"coupon": {"code": "a\0b"}}',
    "nul bytes only": b"\0\0\0",
    "bad escape": b'{"coupon": {"code": "\\x41"}}',
    "short escape": b'{"coupon": {"code": "\\u41"}}',
    "high surrogate": b'{"coupon": {"code": "\\ud83c"}}',
    "low surrogate": b'{"coupon": {"code": "\\udf89"}}',
    "surrogates reversed": b'{"coupon": {"code": "\\udf89\\ud83c"}}',
    "surrogate in a key": b'{"coupon": {"code": "x", "\\ud83c": 1}}',
    "surrogate in an unknown field": b'{"coupon": {"code": "x"}, "other": "\\ud83c"}',
    "invalid utf-8": b'{"coupon": {"code": "\xff"}}',
    "latin-1": '{"coupon": {"code": "é"}}'.encode("latin-1"),
    "overlong utf-8": b'{"coupon": {"code": "\xc0\xaf"}}',
    "surrogate in utf-8": b'{"coupon": {"code": "\xed\xa0\xbc"}}',
    "utf-16": '{"coupon": {"code": "x"}}'.encode("utf-16"),
    "utf-16 without mark": '{"coupon": {"code": "x"}}'.encode("utf-16-le"),
    "byte order mark": b'\xef\xbb\xbf{"coupon": {"code": "x"}}',
    "byte order mark only": b"\xef\xbb\xbf",
    "arrays 2,000 deep": b"[" * 2_000 + b"]" * 2_000,
    "arrays 1,000,000 deep": b"[" * 1_000_000,
    "objects 100,000 deep": b'{"coupon":' * 100_000 + b"1" + b"}" * 100_000,
    "deep in a field": b'{"coupon": {"code": "x", "product_ids": %s}}'
    % (b"[" * 100_000 + b"]" * 100_000),
    "deep in an unknown field": b'{"coupon": {"code": "x", "other": %s}}'
    % (b"[" * 100_000 + b"]" * 100_000),
}


@pytest.mark.one_database
@pytest.mark.parametrize("body", NO_JSON.values(), ids=list(NO_JSON))
def test_body_is_not_json(send, body):
    for method, path in MISSING:
        response = send(method, path, body)
        assert codes(response) == INVALID_JSON
        assert response.content_type == "application/json"


@pytest.mark.one_database
@pytest.mark.parametrize(
    "number",
    [
        "1e400",
        "-1e400",
        "1e99999999",
        "9" * 5_000,
        "-" + "9" * 5_000,
        "0." + "9" * 100_000 + "e400",
    ],
    ids=lambda number: number[:12],
)
def test_huge_number_is_rejected(send, number):
    for field in ("amount", "usage_limit", "expiry_date", "code"):
        body = f'{{"coupon": {{"code": "x", "{field}": {number}}}}}'
        status, code = codes(send("POST", "/coupons", body))
        assert status == 400
        assert code in {"shop_api_invalid_json", "shop_api_invalid_param"}


@pytest.mark.one_database
@pytest.mark.parametrize(
    "number", ["1e400", "9" * 30, "9" * 5_000, "1e-400"], ids=lambda number: number[:12]
)
def test_huge_number_in_an_unknown_field_is_no_crash(send, number):
    response = send("POST", "/coupons", f'{{"coupon": {{"code": "x", "other": {number}}}}}')
    assert response.status_code in {201, 400}


@pytest.mark.one_database
@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "application/json",
        "application/json; charset=utf-8",
        "application/json; charset=latin-1",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "nonsense",
    ],
)
def test_body_is_json_whatever_its_content_type(send, content_type):
    response = send("POST", "/coupons", '{"coupon": {"code": "é"}}', content_type=content_type)
    assert (response.status_code, response.get_json()["coupon"]["code"]) == (201, "é")


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


@pytest.mark.one_database
def test_body_over_the_byte_limit(app_with, admin):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200), admin.key)
    assert reply(client.post("/coupons", data=body_of(201))) == TOO_LARGE
    assert reply(client.put("/coupons/1", data=body_of(201))) == TOO_LARGE
    assert reply(client.post("/coupons/bulk", data=body_of(10_000))) == TOO_LARGE
    assert reply(client.post("/coupons", data=b"x" * 201)) == TOO_LARGE
    assert client.post("/coupons", data=body_of(200)).status_code == 201


@pytest.mark.one_database
def test_body_over_the_byte_limit_without_a_length(app_with, admin):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200), admin.key)

    def chunked(size):
        environ = {"wsgi.input_terminated": True}
        stream = io.BytesIO(body_of(size))
        return client.post("/coupons", input_stream=stream, environ_overrides=environ)

    assert reply(chunked(201)) == TOO_LARGE
    assert chunked(200).status_code == 201


@pytest.mark.one_database
def test_body_over_the_byte_limit_stands_behind_credentials(app_with, app):
    client = Client(app_with(SHOP_MAX_BODY_BYTES=200))
    response = client.post("/coupons", data=body_of(201))
    assert codes(response) == (401, "shop_api_authentication_error")


def test_body_limit_is_5_mebibytes(admin):
    limit = 5 * 1024 * 1024
    response = admin.post("/coupons", data=body_of(limit + 1))
    assert reply(response) == refusal("shop_api_request_entity_too_large", limit=limit)
    assert admin.post("/coupons", data=body_of(limit)).status_code == 201


# --- the envelope ---


def test_several_type_errors_are_reported_together(send):
    body = json.dumps({"coupon": {"code": [], "amount": "x", "usage_limit": {}, "type": 5}})
    response = send("POST", "/coupons", body)
    assert sorted(refused_params(response)) == [
        "coupon.amount",
        "coupon.code",
        "coupon.usage_limit",
    ]
    for entry in response.get_json()["errors"]:
        assert set(entry) == {"code", "message", "param"}
        assert entry["message"].startswith(f"{entry['param']}: ")


def test_error_about_no_input_names_none(send):
    response = send("POST", "/coupons", '{"coupon": {}}')
    assert reply(response) == refusal("shop_api_missing_coupon_code")
    assert [set(entry) for entry in response.get_json()["errors"]] == [{"code", "message"}]


# --- request ids ---

REQUESTS = [
    ("GET", "/coupons"),
    ("GET", "/coupons/999"),
    ("GET", "/nothing"),
    ("PATCH", "/coupons"),
]


@pytest.mark.one_database
@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize("given", ["a", "0", "Aa0._-", "-", "x" * 128, "3f2504e0-4f89-11d3-9a0c"])
def test_request_id_is_kept(admin, method, path, given):
    response = admin.request(method, path, headers={"X-Request-Id": given})
    assert response.headers.getlist("X-Request-Id") == [given]


@pytest.mark.one_database
@pytest.mark.parametrize(("method", "path"), REQUESTS)
@pytest.mark.parametrize(
    "given",
    ["", " ", "a b", "a/b", "a,b", "<a>", 'a"b', "é", "x" * 129, "{}", "a\tb", "a:b"],
)
def test_request_id_is_replaced(admin, method, path, given):
    response = admin.request(method, path, headers={"X-Request-Id": given})
    (answered,) = response.headers.getlist("X-Request-Id")
    assert answered != given
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", answered)


def test_request_ids_differ(admin):
    assert len({admin.get("/coupons").headers["X-Request-Id"] for _ in range(5)}) == 5


# --- unexpected errors ---


@pytest.fixture
def failing(make_app, admin):
    """The administrator at an app with a view that fails."""
    app = make_app()

    def fail():
        raise RuntimeError("the secret of the failure")

    app.add_url_rule("/failing", view_func=fail)
    return Client(app, admin.key)


def test_failure_is_answered_with_the_envelope(failing):
    response = failing.get("/failing")
    assert reply(response) == refusal("shop_api_internal_error")
    assert response.content_type == "application/json"
    assert b"secret" not in response.data
    assert "secret" not in str(response.headers)
    assert reply(failing.get("/coupons")) == (200, {"coupons": []})


def test_failure_is_logged_under_its_request_id(failing):
    log = io.StringIO()
    (handler,) = (h for h in logging.getLogger("app").handlers if type(h) is logging.StreamHandler)
    stream = handler.setStream(log)
    try:
        failing.get("/failing", headers={"X-Request-Id": "failed-1"})
    finally:
        handler.setStream(stream)
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert (line["request_id"], line["level"]) == ("failed-1", "error")
    assert "RuntimeError: the secret of the failure" in line["exception"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    "url",
    ["sqlite:////nonexistent/folder/shop.db", "postgresql://nobody@127.0.0.1:1/nothing"],
    ids=["sqlite", "postgresql"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/coupons"), ("GET", "/coupons/1"), ("POST", "/coupons"), ("GET", "/readyz")],
)
def test_database_is_gone(make_app, admin, url, method, path):
    client = Client(make_app(DATABASE_URL=url), admin.key)
    response = client.request(method, path, json={"coupon": {"code": "x"}})
    assert codes(response) == (503, "shop_api_unavailable")
    assert int(response.headers["Retry-After"]) >= 1
    assert response.content_type == "application/json"
    for detail in (b"nonexistent", b"127.0.0.1", b"psycopg", b"sqlite", b"SELECT"):
        assert detail not in response.data


def test_database_is_gone_and_the_process_lives(make_app, app):
    client = Client(make_app(DATABASE_URL="sqlite:////nonexistent/folder/shop.db"))
    assert reply(client.get("/healthz")) == (200, {"status": "ok"})
    assert reply(client.get("/nothing")) == NO_ROUTE


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_connections_that_the_database_closed_are_replaced(admin, make_coupon, database_url):
    """As after a restart of the server. No request fails because of the old connections."""
    coupon = make_coupon()
    with psycopg.connect(database_url, autocommit=True) as connection:
        closed = connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert closed
    assert set(closed) == {(True,)}
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})
    assert admin.put(f"/coupons/{coupon['id']}", {"coupon": {"amount": 1}}).status_code == 200
