"""Log lines contain no secrets and no personal data."""

import json
from base64 import b64encode

import pytest

from app.db.session import db
from tests.api_client import Client
from tests.customers.calls import PASSWORD, create, shown

pytestmark = pytest.mark.one_database

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


@pytest.mark.sample(3)
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


@pytest.mark.sample(1)
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
