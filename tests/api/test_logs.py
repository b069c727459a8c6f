"""Log lines: one JSON line per request."""

import json
import logging
import time
from datetime import datetime

import pytest
import structlog

pytestmark = pytest.mark.one_database

LINE = {
    "message",
    "level",
    "key_id",
    "method",
    "duration_ms",
    "request_id",
    "route",
    "status",
    "timestamp",
}


def test_request_is_one_line(logged):
    logged.client.post("/coupons", {"coupon": {"code": "a"}}, headers={"X-Request-Id": "id-1"})
    (line,) = logged.lines()
    assert set(line) == LINE
    assert {name: line[name] for name in LINE - {"timestamp", "duration_ms"}} == {
        "message": "request",
        "level": "info",
        "request_id": "id-1",
        "method": "POST",
        "route": "/coupons",
        "status": 201,
        "key_id": logged.key.key_id,
    }
    assert isinstance(line["duration_ms"], float)
    assert line["duration_ms"] >= 0
    assert datetime.fromisoformat(line["timestamp"]).utcoffset().total_seconds() == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("GET", "/coupons/7", "/coupons/<id:coupon_id>", 404),
        ("GET", "/coupons/code/secretcode", "/coupons/code/<code:code>", 404),
        ("HEAD", "/coupons", "/coupons", 200),
        ("PATCH", "/coupons/7", None, 405),
        ("GET", "/nowhere/at/all", None, 404),
    ],
)
def test_line_names_the_route_and_not_the_path(logged, method, path, route, status):
    logged.client.request(method, path)
    (line,) = logged.lines()
    assert (line["method"], line["route"], line["status"]) == (method, route, status)


def test_line_of_an_open_route_or_a_rejected_request_has_no_key(logged):
    statuses = [logged.anonymous.get(path).status_code for path in ("/", "/healthz", "/coupons")]
    assert statuses == [200, 200, 401]
    assert [(line["key_id"], line["status"]) for line in logged.lines()] == [
        (None, 200),
        (None, 200),
        (None, 401),
    ]


def test_line_has_the_request_id_of_the_response(logged):
    ids = [
        logged.client.get("/coupons", headers=headers).headers["X-Request-Id"]
        for headers in ({}, {"X-Request-Id": "my.own-id_1"}, {"X-Request-Id": "not a sane one"})
    ]
    assert ids[1] == "my.own-id_1"
    assert len(set(ids)) == 3
    assert [line["request_id"] for line in logged.lines()] == ids


# --- slow requests ---


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.000001, {"level": "warning", "slow": True}),
        (1000, {"level": "info", "slow": None}),
        (0, {"level": "info", "slow": None}),
    ],
)
def test_slow_request_is_a_warning(logged, seconds, expected):
    logged.settings = {"SHOP_SLOW_REQUEST_SECONDS": seconds}
    logged.client.get("/coupons")
    (line,) = logged.lines()
    assert {name: line.get(name) for name in expected} == expected
    assert (line["message"], line["route"]) == ("request", "/coupons")


def test_long_list_is_logged_when_it_has_ended_with_its_whole_time(logged):
    logged.settings = {"SHOP_SLOW_REQUEST_SECONDS": 0.05}
    query = {"filter[limit]": -1, "filter[role]": "all"}
    response = logged.client.get("/customers", query, buffered=False)
    assert logged.lines() == []
    time.sleep(0.06)  # as a client that reads slowly
    response.close()
    (line,) = logged.lines()
    assert (line["route"], line["status"], line["slow"]) == ("/customers", 200, True)
    assert line["request_id"] == response.headers["X-Request-Id"]


# --- trace context ---

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("given", [f"00-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01-more"])
def test_trace_context_is_in_every_line_of_a_request(logged, given):
    logged.anonymous.post("/broken/x", {}, headers={"traceparent": given})
    failure, line = logged.lines()
    for each in (failure, line):
        assert (each["trace_id"], each["parent_id"]) == (TRACE, PARENT)
    logged.anonymous.get("/healthz")
    assert set(logged.lines()[0]) == LINE


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "given",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"=1-{TRACE}-{PARENT}-01",
    ],
)
def test_invalid_trace_context_is_omitted(logged, given):
    logged.anonymous.get("/healthz", headers={"traceparent": given})
    (line,) = logged.lines()
    assert set(line) == LINE


# --- characters ---


def test_line_has_no_control_characters(logged):
    sent = "a\x1b[31m\x7f\x9b\u202e\u2028\ufeff\U000e0041é"
    logged.app.logger.error("before %s after", sent)
    printed = logged.printed()
    (line,) = printed.splitlines()
    assert line.isprintable()
    assert "é" in line
    assert json.loads(line)["message"] == f"before {sent} after"


@pytest.mark.parametrize("method", ["=2+3", "+CMD|X", "@SUM", "FOO"])
def test_unknown_method_is_not_logged(logged, method):
    logged.client.request(method, "/coupons")
    (line,) = logged.lines()
    assert (line["method"], line["status"]) == ("other", 405)


def test_failure_is_logged_with_its_traceback_under_the_request_id(logged):
    response = logged.anonymous.post("/broken/x", {}, headers={"X-Request-Id": "id-2"})
    assert (response.status_code, response.get_json()) == (
        500,
        {"errors": [{"code": "shop_api_internal_error", "message": "An internal error occurred."}]},
    )
    failure, line = logged.lines()
    assert {name: failure[name] for name in ("message", "level", "request_id")} == {
        "message": "shop_api_internal_error",
        "level": "error",
        "request_id": "id-2",
    }
    assert failure["exception"].splitlines()[0] == "Traceback (most recent call last):"
    assert failure["exception"].splitlines()[-1] == "RuntimeError: broken on purpose"
    assert (line["message"], line["status"], line["request_id"]) == ("request", 500, "id-2")


def test_failure_after_the_view_is_logged_once_with_its_traceback(logged):
    failures = [RuntimeError("broken on purpose")]

    @logged.app.after_request
    def fail(response):
        if failures:
            raise failures.pop()
        return response

    assert logged.anonymous.get("/healthz").status_code == 500
    failure, _ = logged.lines()
    assert failure["message"] == "shop_api_internal_error"
    assert failure["exception"].splitlines()[-1] == "RuntimeError: broken on purpose"


def test_library_of_the_database_is_logged_the_same_way(logged):
    assert logged.app
    try:
        raise RuntimeError("connection lost")
    except RuntimeError:
        logging.getLogger("sqlalchemy.pool").exception("the reset of a connection failed")
    (line,) = logged.lines()
    assert (line["message"], line["level"]) == ("the reset of a connection failed", "error")
    assert line["exception"].endswith("RuntimeError: connection lost")


def test_app_leaves_the_root_logger_and_structlog_alone(make_app):
    root = logging.getLogger()
    before = [*root.handlers], root.level, structlog.get_config()
    make_app()
    assert ([*root.handlers], root.level, structlog.get_config()) == before
