"""Signed requests that are rejected, and their cost (decisions 12, 17)."""

from time import time
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from oauthlib.oauth1 import SIGNATURE_TYPE_AUTH_HEADER
from sqlalchemy import func, select

from app.auth.api_keys import ApiKeyCredentials
from app.auth.principals import Permission
from app.db.read_pool import fetch
from app.models import OAuthNonce
from app.plugins.woocommerce import credentials
from app.plugins.woocommerce.oauth1 import SignedRequest
from app.services.api_keys.writes import create_key, revoke_key
from tests.api_client import Client, at_the_same_time, codes, reply
from tests.plugins.woocommerce.oauth_requests import AN_ERROR, key, sign

pytestmark = pytest.mark.one_database

__all__ = ["key"]  # a fixture

NAMES = [
    f"oauth_{n}" for n in ("consumer_key", "timestamp", "nonce", "signature_method", "signature")
]


@pytest.fixture
def reason(anonymous):
    """Return a function: the reason why a signed request is rejected."""

    def ask(path, **kwargs):
        response = anonymous.get(path, **kwargs)
        assert codes(response) == AN_ERROR
        return response.get_json()["errors"][0]["message"]

    return ask


# --- rejected requests ---


@pytest.mark.parametrize(
    "hidden", ["%255Fmethod=DELETE", "_method=DELET%2545", "_method=%2544ELETE", "_method%255B=x"]
)
def test_override_that_was_signed_cannot_be_hidden(anonymous, key, make_coupon, hidden):
    # Encoded once more, the parameter would still be signed, but not obeyed.
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?_method=DELETE", "POST")
    assert "_method=DELETE" in path
    changed = path.replace("_method=DELETE", hidden)
    assert codes(anonymous.post(changed, {"coupon": {"amount": "9"}})) == AN_ERROR
    assert reply(anonymous.post(path)) == (202, {"message": "Deleted coupon"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filter[q]", "b"),
        ("page", "2"),
        ("oauth_timestamp", "1"),
        ("oauth_nonce", "another"),
        ("oauth_consumer_key", "ck_another"),
        ("oauth_signature", "AAAA"),
        ("oauth_signature", "ä"),
        ("oauth_signature_method", "HMAC-SHA1"),
        ("oauth_signature_method", "PLAINTEXT"),
    ],
)
def test_changed_parameter(anonymous, key, name, value):
    path, _ = sign(key, "/wc-api/v3/coupons?filter%5Bq%5D=a", signature_method="HMAC-SHA256")
    query = {k: v[0] for k, v in parse_qs(urlsplit(path).query).items()} | {name: value}
    assert codes(anonymous.get(f"/wc-api/v3/coupons?{urlencode(query)}")) == AN_ERROR


@pytest.mark.sample(14)
@pytest.mark.parametrize("octets", ["%FF", "%ED%A0%80", "%00", "%F0%9F%98%80", "%", "+"])
@pytest.mark.parametrize("name", [*NAMES, "filter[q]", "_method"])
def test_parameter_of_any_octets(anonymous, key, name, octets):
    path, _ = sign(key, "/wc-api/v3/coupons?_method=GET")
    query = parse_qs(urlsplit(path).query)
    query.pop(name, None)
    sent = f"{urlencode(query, doseq=True)}&{name}={octets}"
    answered = codes(anonymous.get(f"/wc-api/v3/coupons?{sent}"))
    assert answered in {AN_ERROR, (404, "woocommerce_api_no_route")}


@pytest.mark.parametrize("octets", ["%FF", "%ED%A0%80", "\xff"])
def test_header_of_any_octets(anonymous, key, octets):
    header = ",".join(f'{name}="{octets}"' for name in NAMES if name != "oauth_consumer_key")
    header = f'OAuth oauth_consumer_key="{key.consumer_key}",{header}'
    for timestamp in (octets, str(int(time()))):
        sent = header.replace(f'timestamp="{octets}"', f'timestamp="{timestamp}"')
        sent = sent.replace(f'method="{octets}"', 'method="HMAC-SHA1"')
        response = anonymous.get("/wc-api/v3/coupons", headers={"Authorization": sent})
        assert codes(response) == AN_ERROR


@pytest.mark.parametrize("addition", ["page=9&{}", "{}&page=9", "page=9&{}&page=2"])
def test_added_parameter(anonymous, key, addition):
    path, _ = sign(key, "/wc-api/v3/coupons?page=2")
    query = addition.format(urlsplit(path).query)
    assert codes(anonymous.get(f"/wc-api/v3/coupons?{query}")) == AN_ERROR


@pytest.mark.parametrize("missing", NAMES)
def test_missing_parameter_is_named(reason, key, missing):
    path, _ = sign(key, "/wc-api/v3/coupons")
    query = parse_qs(urlsplit(path).query)
    del query[missing]
    message = reason(f"/wc-api/v3/coupons?{urlencode(query, doseq=True)}")
    assert message == f"The parameter {missing} is missing."


@pytest.mark.parametrize("seconds", [-901, 901])
def test_timestamp_is_too_far_away(reason, key, monkeypatch, seconds):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now + seconds))
    assert reason(path) == "The timestamp differs from the server time by more than 15 minutes."


@pytest.mark.parametrize("seconds", [-900, 0, 900])
def test_timestamp_is_near_enough(anonymous, key, monkeypatch, seconds):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now + seconds))
    assert anonymous.get(path).status_code == 200


@pytest.mark.parametrize("timestamp", ["now", "-1", "1e9", "٣", "9" * 5000])
def test_timestamp_is_not_a_number(reason, key, timestamp):
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=timestamp)
    assert reason(path) == "The timestamp must be a number of seconds."


@pytest.mark.both_databases
def test_replay(anonymous, reason, key):
    path, _ = sign(key, "/wc-api/v3/coupons")
    assert anonymous.get(path).status_code == 200
    assert reason(path) == "The nonce has already been used."


def test_nonce_is_one_of_its_key(app, anonymous, key):
    with app.app_context():
        other = create_key("crm", "administrator", Permission.READ_WRITE, "")
    for each in (key, other):
        path, _ = sign(each, "/wc-api/v3/coupons", nonce="the same")
        assert anonymous.get(path).status_code == 200


def test_nonce_is_one_of_its_second(anonymous, reason, key, monkeypatch):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    for second in (now, now + 1):
        path, _ = sign(key, "/wc-api/v3/coupons", nonce="12345678", timestamp=str(second))
        assert anonymous.get(path).status_code == 200
        assert reason(path) == "The nonce has already been used."
        # A number may be written in several ways; it stays the same second.
        path, _ = sign(key, "/wc-api/v3/coupons", nonce="12345678", timestamp=f"0{second}")
        assert reason(path) == "The nonce has already been used."


@pytest.mark.both_databases
def test_replays_at_the_same_time(app, make_app, key):
    path, _ = sign(key, "/wc-api/v3/coupons")
    apps = [app, make_app()]  # as two workers are

    def send(number):
        return Client(apps[number % 2]).get(path).status_code

    statuses = at_the_same_time(send, range(8))
    assert sorted(statuses) == [200] + [401] * 7


def test_rejected_request_uses_no_nonce(app, anonymous, key):
    path, _ = sign(key, "/wc-api/v3/coupons")
    assert codes(anonymous.get(path.replace("/coupons", "/customers"))) == AN_ERROR
    assert anonymous.get(path).status_code == 200


@pytest.mark.both_databases
def test_old_nonces_go(app, anonymous, key, monkeypatch):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    for _ in range(3):
        path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now))
        assert anonymous.get(path).status_code == 200
    now += 901
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now))
    assert anonymous.get(path).status_code == 200
    with app.app_context():
        assert fetch(select(func.count(), func.min(OAuthNonce.timestamp)))[0] == (1, now)


def test_unknown_key_and_wrong_secret_look_the_same(app, anonymous, key):
    with app.app_context():
        other = create_key("crm", "administrator", Permission.READ_WRITE, "")
    wrong = ApiKeyCredentials(key.consumer_key, other.consumer_secret)
    unknown = ApiKeyCredentials("ck_" + "0" * 40, key.consumer_secret)
    bodies = {
        anonymous.get(sign(pair, "/wc-api/v3/coupons")[0]).get_data() for pair in (wrong, unknown)
    }
    assert len(bodies) == 1


def test_revoked_key(app, anonymous, key):
    with app.app_context():
        revoke_key(key.key_id)
    assert codes(anonymous.get(sign(key, "/wc-api/v3/coupons")[0])) == AN_ERROR


def test_permission_of_the_key(app, anonymous):
    with app.app_context():
        key = create_key("reader", "administrator", Permission.READ, "")
    assert anonymous.get(sign(key, "/wc-api/v3/coupons")[0]).status_code == 200
    path, _ = sign(key, "/wc-api/v3/coupons", "POST")
    assert codes(anonymous.post(path, {"coupon": {"code": "x"}})) == AN_ERROR


def test_wrong_signatures_are_limited(make_app, key):
    client = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=3))
    path, _ = sign(ApiKeyCredentials(key.consumer_key, "cs_wrong"), "/wc-api/v3/coupons")
    assert [client.get(path).status_code for _ in range(5)] == [401, 401, 401, 429, 429]


def test_native_api_accepts_no_signatures(anonymous, key):
    assert anonymous.get(sign(key, "/coupons")[0]).status_code == 401


def test_more_parameters_than_anybody_sends(reason, key):
    path, _ = sign(key, "/wc-api/v3/coupons?" + "&".join(f"a{n}=1" for n in range(120)))
    assert reason(path) == "The request has too many parameters."


def test_parameters_of_the_header_count_too(reason, key):
    path, _ = sign(key, "/wc-api/v3/coupons?" + "&".join(f"a{n}=1" for n in range(60)))
    header = ",".join(f'oauth_{n}="1"' for n in range(60))
    message = reason(path, headers={"Authorization": f"OAuth {header}"})
    assert message == "The request has too many parameters."


def test_ignored_parameters_of_the_header_count_too(anonymous, reason, key):
    def headers(number):
        return {"Authorization": header_of(key) + "".join(f', x{n}="y"' for n in range(number))}

    path = "/wc-api/v3/coupons"
    assert anonymous.get(path, headers=headers(80)).status_code == 200
    assert reason(path, headers=headers(200)) == "The request has too many parameters."


# --- several headers, and what they cost (decisions 17) ---


def header_of(key):
    _, headers = sign(key, "/wc-api/v3/coupons", signature_type=SIGNATURE_TYPE_AUTH_HEADER)
    return headers["Authorization"]


@pytest.mark.parametrize("joint", [",", ", "])
@pytest.mark.parametrize("other", ["OAuth", 'OAuth realm="a"', "Basic YTpi", "Bearer", "Bearer x"])
@pytest.mark.parametrize("first", [True, False])
def test_several_headers_are_rejected(anonymous, key, other, joint, first):
    headers = [header_of(key), other] if first else [other, header_of(key)]
    response = anonymous.get("/wc-api/v3/coupons", headers={"Authorization": joint.join(headers)})
    assert codes(response) == (400, "woocommerce_api_invalid_param")
    assert response.get_json()["errors"][0]["param"] == "Authorization"


def test_long_header_is_rejected_before_it_is_read(anonymous, key, monkeypatch):
    monkeypatch.setattr(credentials, "parse_authorization", None)
    header = "OAuth " + ",".join(f'x{n}="{"%25" * 60}"' for n in range(4000))
    response = anonymous.get("/wc-api/v3/coupons", headers={"Authorization": header})
    assert codes(response) == (400, "woocommerce_api_invalid_param")


def test_throttled_address_is_tried_in_few_forms_and_valid_signatures_pass(
    make_app, key, monkeypatch
):
    client = Client(make_app(SHOP_AUTH_FAILURES_PER_MINUTE=2))
    tried = []
    forms = SignedRequest._forms
    monkeypatch.setattr(
        SignedRequest, "_forms", lambda self: (tried.append(1) or form for form in forms(self))
    )
    path, _ = sign(key, "/wc-api/v3/coupons?filter%5Bq%5D=%2525+a%2Fb&a=&b%5B%5D=%2B", nonce="a")
    wrong = path.replace("oauth_nonce=a", "oauth_nonce=b")
    assert [client.get(wrong).status_code for _ in range(3)] == [401, 401, 429]
    assert len(tried) > 3 * credentials.FEW_FORMS
    tried.clear()
    assert client.get(wrong).status_code == 429
    assert len(tried) == credentials.FEW_FORMS
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("name", ["_method", "filter[q]"])
def test_parameter_moved_from_the_query_to_the_header(anonymous, key, name):
    value = "GET" if name == "_method" else "a"
    path, _ = sign(key, f"/wc-api/v3/coupons?{urlencode({name: value})}")
    query = {k: v[0] for k, v in parse_qs(urlsplit(path).query).items()}
    del query[name]
    moved = {"Authorization": f'OAuth {urlencode({name: ""})}"{value}"'}
    response = anonymous.get(f"/wc-api/v3/coupons?{urlencode(query)}", headers=moved)
    assert codes(response) == AN_ERROR
