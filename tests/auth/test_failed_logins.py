"""Limits of failed logins (decisions 2)."""

from types import SimpleNamespace

import pytest

from app.auth import failed_logins
from tests.api_client import Client, refusal, reply
from tests.auth.requests import TOO_MANY, UNKNOWN_KEY, assert_refused, basic

pytestmark = pytest.mark.one_database


def test_wrong_credentials_too_often(make_app, admin):
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=2)
    wrong, right, nobody = Client(app, UNKNOWN_KEY), Client(app, admin.key), Client(app)
    assert_refused(wrong.get("/coupons"))
    assert_refused(wrong.get("/coupons"))
    for _ in range(2):
        response = wrong.get("/coupons")
        assert reply(response) == TOO_MANY
        assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert reply(right.get("/coupons")) == (200, {"coupons": []})
    assert_refused(nobody.get("/coupons"))


def test_wrong_secret_of_a_known_key_too_often(make_app, admin):
    key = SimpleNamespace(
        consumer_key=admin.key.consumer_key, consumer_secret=UNKNOWN_KEY.consumer_secret
    )
    wrong = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1), key)
    assert_refused(wrong.post("/coupons"))
    assert reply(wrong.post("/coupons")) == TOO_MANY


def test_failures_are_counted_for_each_address(make_app, admin):
    wrong = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1), UNKNOWN_KEY)
    for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
        environ = {"REMOTE_ADDR": address}
        assert_refused(wrong.get("/coupons", environ_overrides=environ))
        assert reply(wrong.get("/coupons", environ_overrides=environ)) == TOO_MANY


def test_failures_are_counted_for_each_key(make_app, admin):
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1)
    attacked = SimpleNamespace(
        consumer_key=admin.key.consumer_key, consumer_secret=UNKNOWN_KEY.consumer_secret
    )
    *enough, there, elsewhere = ({"REMOTE_ADDR": f"192.0.2.{number}"} for number in range(12))
    for here in enough:
        assert_refused(Client(app, attacked).get("/coupons", environ_overrides=here))
    assert reply(Client(app, attacked).get("/coupons", environ_overrides=there)) == TOO_MANY
    # Neither another key from elsewhere nor the owner of this one has to wait.
    assert_refused(Client(app, UNKNOWN_KEY).get("/coupons", environ_overrides=elsewhere))
    assert Client(app, admin.key).get("/coupons", environ_overrides=there).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "one_caller"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_failures_are_counted_for_each_ipv6_network(make_app, first, second, one_caller):
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1)
    found = [
        Client(app).get(
            "/coupons",
            headers={"Authorization": basic(f"ck_{number}:cs_x")},
            environ_overrides={"REMOTE_ADDR": address},
        )
        for number, address in enumerate((first, second))
    ]
    assert [response.status_code for response in found] == [401, 429 if one_caller else 401]


def test_unknown_key_and_wrong_secret_have_the_same_response(anonymous, admin):
    answers = []
    for key in (admin.key.consumer_key, UNKNOWN_KEY.consumer_key):
        header = basic(f"{key}:{UNKNOWN_KEY.consumer_secret}")
        response = anonymous.get(
            "/coupons", headers={"Authorization": header, "X-Request-Id": "same"}
        )
        answers.append((response.status_code, response.get_data(), sorted(response.headers)))
    assert answers[0] == answers[1]


def test_forwarded_address_is_ignored_without_a_proxy(make_app, admin):
    wrong = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1), UNKNOWN_KEY)
    assert_refused(wrong.get("/coupons", headers={"X-Forwarded-For": "192.0.2.1"}))
    assert reply(wrong.get("/coupons", headers={"X-Forwarded-For": "192.0.2.2"})) == TOO_MANY


def test_missing_credentials_are_not_counted(make_app, admin):
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1)
    for _ in range(5):
        assert_refused(Client(app).get("/coupons"))
    assert_refused(Client(app, UNKNOWN_KEY).get("/coupons"))


def test_valid_keys_are_not_limited(make_app, client_for):
    key = client_for(permission="read").key
    client = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1), key)
    for _ in range(5):
        assert client.get("/coupons").status_code == 200


def test_failures_are_not_counted_when_the_setting_is_0(make_app, admin):
    wrong = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=0), UNKNOWN_KEY)
    for _ in range(100):
        assert_refused(wrong.get("/coupons"))


def test_open_routes_and_unknown_paths_are_not_limited(make_app, admin):
    wrong = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1), UNKNOWN_KEY)
    assert_refused(wrong.get("/coupons"))
    assert reply(wrong.get("/coupons")) == TOO_MANY
    assert wrong.get("/healthz").status_code == 200
    assert reply(wrong.get("/nothing")) == refusal("shop_api_no_route")


def test_number_of_addresses_over_their_limit_in_memory_is_limited(app, monkeypatch):
    monkeypatch.setattr(failed_logins, "MAX_ADDRESSES", 2)
    logins = failed_logins.FailedLogins(per_minute=1)
    addresses = [f"192.0.2.{number}" for number in range(3)]
    with app.app_context():  # whose secret key hashes the API keys
        for address in addresses:
            logins.record(address, f"first of {address}", "wrong")
            logins.record(address, f"second of {address}", "wrong")
    assert [logins.is_blocked(address) for address in addresses] == [False, False, True]
