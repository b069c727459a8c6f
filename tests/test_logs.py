"""Log lines: one JSON line per request, without secrets and personal data."""

import json
import logging
import time
from base64 import b64encode
from datetime import datetime
from functools import cached_property

import pytest
import structlog
from conftest import Client
from sqlalchemy import insert
from test_customers_input import PASSWORD, create, shown

from app.api.blueprint import Blueprint
from app.auth.principals import Permission
from app.db.session import db, now, run_in_transaction
from app.logging import LIBRARIES
from app.models import User
from app.services.api_keys import create_key

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


class Logged:
    """An app whose lines are read back.

    It starts when a test first asks for it, not before: an app prints to the standard output that
    it finds when it starts.
    """

    def __init__(self, make_app, capsys):
        self._make_app = make_app
        self._capsys = capsys
        self.settings = {}

    @cached_property
    def app(self):
        app = self._make_app(**self.settings)
        _add_views_that_fail(app)
        return app

    @cached_property
    def key(self):
        with self.app.app_context():
            return create_key("erp", "administrator", Permission("read_write"), "")

    @property
    def client(self):
        return Client(self.app, self.key)

    @property
    def anonymous(self):
        return Client(self.app)

    def lines(self):
        """The lines that were printed since the last time: failures first, then requests."""
        return [json.loads(line) for line in self.printed().splitlines()]

    def printed(self):
        printed = self._capsys.readouterr()
        return printed.err + printed.out


@pytest.fixture
def logged(app, make_app, capsys):
    loggers = [logging.getLogger(name) for name in (app.name, *LIBRARIES)]
    handlers = [logger.handlers for logger in loggers]
    yield Logged(make_app, capsys)
    for logger, before in zip(loggers, handlers, strict=True):
        logger.handlers = before


def _add_views_that_fail(app):
    blp = Blueprint("broken", __name__, public=True)

    @blp.route("/broken/<word>", methods=["POST"])
    def break_down(word):
        raise RuntimeError("broken on purpose")

    @blp.route("/twice/<word>", methods=["POST"])
    def write_twice(word):
        def work(session):
            row = {"username": word, "username_normalized": word, "created_at": now()}
            session.execute(insert(User), [row])
            session.execute(insert(User), [row])

        run_in_transaction(work)

    api = app.extensions["flask-smorest"]["apis"][""]["ext_obj"]
    api.register_blueprint(blp)


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


@pytest.mark.one_database
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
    response = logged.client.get("/customers", {"filter[limit]": -1, "filter[role]": "all"})
    assert logged.lines() == []
    time.sleep(0.06)  # as a client that reads slowly
    response.close()
    (line,) = logged.lines()
    assert (line["route"], line["status"], line["slow"]) == ("/customers", 200, True)
    assert line["request_id"] == response.headers["X-Request-Id"]


# --- trace context ---

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.one_database
@pytest.mark.parametrize("given", [f"00-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01-more"])
def test_trace_context_is_in_every_line_of_a_request(logged, given):
    logged.anonymous.post("/broken/x", {}, headers={"traceparent": given})
    failure, line = logged.lines()
    for each in (failure, line):
        assert (each["trace_id"], each["parent_id"]) == (TRACE, PARENT)
    logged.anonymous.get("/healthz")
    assert set(logged.lines()[0]) == LINE


@pytest.mark.one_database
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


@pytest.mark.one_database
@pytest.mark.parametrize("method", ["=2+3", "+CMD|X", "@SUM", "FOO"])
def test_unknown_method_is_not_logged(logged, method):
    logged.client.request(method, "/coupons")
    (line,) = logged.lines()
    assert (line["method"], line["status"]) == ("other", 405)


def test_failure_is_logged_with_its_traceback_under_the_request_id(logged):
    response = logged.anonymous.post("/broken/x", {}, headers={"X-Request-Id": "id-2"})
    assert (response.status_code, response.get_json()) == (
        500,
        {
            "errors": [
                {
                    "code": "shop_api_internal_error",
                    "message": "An internal error occurred.",
                }
            ]
        },
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


# --- secrets and personal data ---

SECRETS = {
    "body": "secret-body",
    "query": "secret-query",
    "path": "secret-path",
    "header": "secret-header",
    "agent": "secret-agent",
}
REQUESTS = [
    ("POST", "/coupons", 201),
    ("POST", "/coupons/bulk", 200),
    ("GET", "/coupons", 200),
    ("GET", "/coupons/code/secret-path", 404),
    ("DELETE", "/coupons/999", 404),
    ("GET", "/secret-path", 404),
    ("PATCH", "/coupons/code/secret-path", 405),
    ("POST", "/broken/secret-path", 500),
    ("POST", "/twice/secret-path", 500),
]


def send(client, method, path, **kwargs):
    return client.request(
        method,
        path,
        query_string={
            "filter[q]": SECRETS["query"],
            "page": "1",
            "consumer_secret": "secret-query",
        },
        headers={
            "User-Agent": SECRETS["agent"],
            "Cookie": f"a={SECRETS['header']}",
            "X-Anything": SECRETS["header"],
        }
        | kwargs.pop("headers", {}),
        **kwargs,
    )


def leaks(printed, key):
    pair = f"{key.consumer_key}:{key.consumer_secret}"
    hidden = {
        "key": key.consumer_key,
        "secret": key.consumer_secret,
        "Authorization": b64encode(pair.encode()).decode(),
        **SECRETS,
    }
    return sorted(name for name, value in hidden.items() if value in printed)


@pytest.mark.one_database
@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_no_line_contains_values_of_a_request(logged, method, path, status):
    body = {
        "coupon": {"code": SECRETS["body"], "description": SECRETS["body"]},
        "coupons": [{"code": SECRETS["body"]}, {"code": SECRETS["body"]}, SECRETS["body"]],
    }
    assert send(logged.client, method, path, json=body).status_code == status
    lines = logged.lines()
    assert [line["status"] for line in lines if line["message"] == "request"] == [status]
    assert leaks(json.dumps(lines), logged.key) == []


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"coupon": secret-body', 400),
        (b'{"coupon": "secret-body"}', 400),
        (b'{"coupon": {"code": ["secret-body"], "amount": "secret-body"}}', 400),
        (b'"secret-body' + b"x" * 2_000_000, 413),
    ],
)
def test_no_line_contains_values_of_a_rejected_body(logged, body, status):
    logged.app.config["MAX_CONTENT_LENGTH"] = 1_000_000
    assert send(logged.client, "POST", "/coupons", data=body).status_code == status
    assert leaks(json.dumps(logged.lines()), logged.key) == []


def test_no_line_contains_wrong_credentials(logged):
    wrong = b64encode(f"{logged.key.consumer_key}:cs_secret-header".encode()).decode()
    for header in (f"Basic {wrong}", "Basic secret-header", "Bearer secret-header"):
        response = send(logged.anonymous, "GET", "/coupons", headers={"Authorization": header})
        assert response.status_code == 401
    lines = logged.lines()
    assert len(lines) == 3
    assert leaks(json.dumps(lines), logged.key) == []
    assert wrong not in json.dumps(lines)


def test_an_engine_of_the_app_hides_its_parameters(logged):
    with logged.app.app_context():
        assert all(engine.hide_parameters for engine in db.engines.values())


def test_secret_in_a_query_is_in_no_line(logged):
    pair = {"consumer_key": logged.key.consumer_key, "consumer_secret": logged.key.consumer_secret}
    logged.app.config["SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH"] = True
    for query in (pair, pair | {"consumer_secret": "cs_wrong"}, {"oauth_signature": "cs_wrong"}):
        logged.anonymous.get("/wc-api/v3/coupons", query)
    lines = logged.lines()
    assert [line["status"] for line in lines] == [200, 401, 401]
    assert logged.key.consumer_secret not in str(lines)
    assert "cs_wrong" not in str(lines)


def test_password_is_in_no_response_and_in_no_line(logged, client_for, make_customer):
    customer = make_customer(email="ann@example.com", username="ann")
    path = f"/customers/{customer['id']}"
    secret = {"password": PASSWORD}
    admin, other = logged.client, Client(logged.app, client_for("customer").key)
    answers = [
        create(admin, **secret),
        create(admin, email="nonsense", **secret),
        create(admin, email="ann@example.com", **secret),
        create(admin, email="x@example.com", username="ann", **secret),
        create(admin, email="x@example.com", username="?", **secret),
        create(admin, email="x@example.com", first_name=[], **secret),
        create(other, **secret),
        admin.put(path, {"customer": secret}),
        admin.put(path, {"customer": secret | {"email": []}}),
        admin.put(path, {"customer": {"password": [PASSWORD]}}),
        admin.put(path, {"customer": {"password": f"{PASSWORD}\0"}}),
        admin.put("/customers/0", {"customer": secret}),
        admin.put(path, {"customer": PASSWORD}),
        admin.put(path, {PASSWORD: secret}),
        admin.put(path, data=f'{{"customer": {{"password": "{PASSWORD}"'),
        admin.put("/customers/bulk", {"customers": [secret, secret | {"id": customer["id"]}]}),
        admin.put("/customers/bulk", {"customers": [PASSWORD, {"password": [PASSWORD]}]}),
        admin.get(path),
        admin.get(path, {"fields": "password,password_hash,id"}),
        admin.get("/customers"),
    ]
    assert sorted({answer.status_code for answer in answers}) == [200, 201, 400, 401]
    lines = logged.lines()
    assert len(lines) == len(answers)
    for text_of in [*map(shown, answers), repr(lines)]:
        assert PASSWORD not in text_of
        assert "argon2" not in text_of
