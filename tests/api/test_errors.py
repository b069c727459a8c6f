"""All errors have the same body, independent of their cause (spec 7; decisions 1, 13)."""

import io
import json
import logging
import re

import psycopg
import pytest

from tests.api.error_requests import NO_ROUTE, send
from tests.api_client import Client, codes, refusal, refused_params, reply

__all__ = ["send"]  # a fixture

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
    "given", ["", " ", "a b", "a/b", "a,b", "<a>", 'a"b', "é", "x" * 129, "{}", "a\tb", "a:b"]
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


@pytest.mark.parametrize(
    "url",
    ["sqlite:////nonexistent/folder/shop.db", "postgresql://nobody@127.0.0.1:1/nothing"],
    ids=["sqlite", "postgresql"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/coupons"), ("GET", "/coupons/1"), ("POST", "/coupons"), ("GET", "/readyz")],
)
def test_database_is_gone(app_with, admin, url, method, path):
    client = Client(app_with(DATABASE_URL=url), admin.key)
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
