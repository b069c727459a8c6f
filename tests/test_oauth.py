"""Requests with OAuth 1.0a signatures (decisions 12)."""

import hmac
import json
import secrets
from base64 import b64encode
from pathlib import Path
from time import time
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import pytest
from conftest import Client, at_the_same_time, codes, reply
from oauthlib.oauth1 import SIGNATURE_TYPE_AUTH_HEADER, SIGNATURE_TYPE_QUERY
from oauthlib.oauth1 import Client as Signer
from sqlalchemy import func, select, update

from app.auth import credentials
from app.auth.api_keys import ApiKeyCredentials
from app.auth.encryption import decrypt, encrypt
from app.auth.oauth1 import MAX_FORMS, SignedRequest
from app.auth.principals import Permission
from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.models import ApiKey, OAuthNonce
from app.services.api_keys import KeyExists, create_key, revoke_key

VECTORS = json.loads((Path(__file__).parent / "oauth_vectors.json").read_text())
PAIR = ApiKeyCredentials(VECTORS["consumer_key"], VECTORS["consumer_secret"])
ORIGIN = "http://localhost"
NAMES = [
    f"oauth_{n}" for n in ("consumer_key", "timestamp", "nonce", "signature_method", "signature")
]
AN_ERROR = (401, "woocommerce_api_authentication_error")


def signed_request(vector):
    url = urlsplit(vector["url"])
    return SignedRequest(
        [vector["method"]], f"{url.scheme}://{url.netloc}", url.path, vector["query"]
    )


def sign(key, path, method="GET", origin=ORIGIN, **options):
    """The path and the headers of a request as RFC 5849 signs it."""
    options.setdefault("signature_type", SIGNATURE_TYPE_QUERY)
    signer = Signer(key.consumer_key, key.consumer_secret, **options)
    url, headers, _ = signer.sign(f"{origin}{path}", method)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}", headers


@pytest.fixture
def key(app):
    """A key with the pair of the recorded requests."""
    with app.app_context():
        return create_key("erp", "administrator", Permission.READ_WRITE, "", PAIR)


@pytest.fixture
def reason(anonymous):
    """Return a function: the reason why a signed request is rejected."""

    def ask(path, **kwargs):
        response = anonymous.get(path, **kwargs)
        assert codes(response) == AN_ERROR
        return response.get_json()["errors"][0]["message"]

    return ask


# --- what clients really sent ---


@pytest.mark.parametrize("vector", VECTORS["accept"], ids=lambda v: f"{v['client']} {v['api']}")
def test_recorded_request_is_signed(vector):
    request = signed_request(vector)
    assert request.is_signed_with(PAIR.consumer_secret, request.signature())
    assert not request.is_signed_with("cs_another", request.signature())


@pytest.mark.parametrize("vector", VECTORS["reject"], ids=lambda v: v["because"])
def test_changed_request_is_not_signed(vector):
    request = signed_request(vector)
    assert not request.is_signed_with(PAIR.consumer_secret, request.signature())


@pytest.mark.parametrize("kind", ["accept", "reject"])
def test_recorded_requests_over_http(kind, app, key, monkeypatch):
    client = Client(app)
    for vector in VECTORS[kind]:
        url = urlsplit(vector["url"])
        sent = parse_qs(vector["query"])["oauth_timestamp"][0]
        monkeypatch.setattr(credentials.time, "time", lambda sent=sent: float(sent))
        target = f"{url.path}?{vector['query']}"
        response = client.request(vector["method"], target, headers={"Host": url.netloc})
        assert (response.status_code == 401) == (kind == "reject"), vector


# --- RFC 5849, by a library of another house ---


@pytest.mark.one_database
@pytest.mark.parametrize("algorithm", ["HMAC-SHA1", "HMAC-SHA256"])
@pytest.mark.parametrize("where", [SIGNATURE_TYPE_QUERY, SIGNATURE_TYPE_AUTH_HEADER])
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_standard_signature(anonymous, key, version, where, algorithm):
    query = "filter%5Bq%5D=50%25%20off%2F%C3%A9%20%7E%2Bx&fields=id%2Ccode&filter%5Blimit%5D=5"
    path, headers = sign(
        key,
        f"/wc-api/{version}/coupons?{query}",
        signature_method=algorithm,
        signature_type=where,
        realm="shop" if where == SIGNATURE_TYPE_AUTH_HEADER else None,
    )
    assert reply(anonymous.get(path, headers=headers)) == (200, {"coupons": []})


def test_signed_write(anonymous, key):
    path, _ = sign(key, "/wc-api/v3/coupons", "POST")
    assert anonymous.post(path, {"coupon": {"code": "signed"}}).status_code == 201
    path, _ = sign(key, "/wc-api/v3/coupons/code/signed")
    assert anonymous.get(path).get_json()["coupon"]["code"] == "signed"


@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        ("/wc-api/v3/coupons/", "/wc-api/v3/coupons"),
        ("/wc-api/v3/coupons", "/wc-api/v3/coupons/"),
        ("/wc-api/v3/Coupons", "/wc-api/v3/Coupons"),
        ("/wc-api/v3/coupons?filter%5Bq%5D=a", "/wc-api/v3/coupons?filter[q]=a"),
    ],
)
def test_signature_of_the_address_as_the_client_knows_it(anonymous, key, signed, sent):
    path, _ = sign(key, signed)
    query = urlsplit(path).query
    query = query.replace("%5B", "[").replace("%5D", "]") if "[" in sent else query
    assert anonymous.get(f"{sent.partition('?')[0]}?{query}").status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_overridden_method_may_be_signed_either_way(anonymous, key, make_coupon, method):
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?_method=DELETE", method)
    assert reply(anonymous.post(path)) == (202, {"message": "Deleted coupon"})


# --- as the Ruby library signs: the signature is percent-encoded twice, or never ---


def ruby_target(key, version, path, method="GET", algorithm="sha256", encode=quote):
    """The target of a request as the Ruby library writes it for a path and query of plain letters.

    It sorts the names and values that the query means, escapes the signature, and escapes the
    whole query again, but for the signs that a URL may contain.
    """
    path, _, query = path.partition("?")
    parameters = [
        *sorted(parse_qsl(query)),
        ("oauth_consumer_key", key.consumer_key),
        ("oauth_nonce", secrets.token_hex(20)),
        ("oauth_signature_method", f"HMAC-{algorithm.upper()}"),
        ("oauth_timestamp", str(int(time()))),
    ]
    signed = "&".join(f"{quote(k, '')}={quote(v, '')}" for k, v in sorted(parameters))
    text = "&".join([method, quote(f"{ORIGIN}{path}", ""), quote(signed, "")])
    secret = key.consumer_secret + ("" if version == "v2" else "&")
    signature = b64encode(hmac.digest(secret.encode(), text.encode(), algorithm)).decode()
    parameters.append(("oauth_signature", encode(signature, safe="")))
    sent = "&".join(f"{name}={value}" for name, value in parameters)
    return f"{path}?{quote(sent, safe=';/?:@&=+$,[]-_.!~*()' + chr(39))}"


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize(
    "query",
    [
        "",
        "?page=1",
        "?fields=id,code&filter[limit]=5&filter[orderby]=ID",
        "?filter[q]=50%25 off, é/~*",
        "?filter[q]=a%2Bb",
    ],
)
def test_signature_that_is_encoded_twice(anonymous, key, version, query, algorithm):
    path = f"/wc-api/{version}/coupons{query}"
    for _ in range(8):  # nearly every signature has a plus, a slash or an equals sign
        target = ruby_target(key, version, path, algorithm=algorithm)
        assert reply(anonymous.get(target)) == (200, {"coupons": []})


def test_signature_that_is_encoded_twice_may_be_wrong(anonymous, key):
    target = ruby_target(key, "v3", "/wc-api/v3/coupons?page=1")
    for changed in (
        target.replace("page=1", "page=2"),
        target.replace("/coupons", "/customers"),
        target.replace("oauth_signature=", "oauth_signature=A"),
        target.replace("%25", "%2525"),  # three times
    ):
        assert codes(anonymous.get(changed)) == AN_ERROR
    assert codes(anonymous.delete(target)) == AN_ERROR
    assert anonymous.get(target).status_code == 200
    assert codes(anonymous.get(target)) == AN_ERROR  # its nonce was used


def test_signature_that_is_not_encoded(anonymous, key):
    # As the Ruby library before version 1.2: a plus arrives as a blank.
    def is_plus(target):
        return "+" in target

    targets = (
        ruby_target(key, "v3", "/wc-api/v3/coupons", encode=lambda signature, safe: signature)
        for _ in range(200)
    )
    target = next(filter(is_plus, targets))
    assert anonymous.get(target).status_code == 200


# --- rejected requests ---


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
@pytest.mark.parametrize("octets", ["%FF", "%ED%A0%80", "%00", "%F0%9F%98%80", "%", "+"])
@pytest.mark.parametrize("name", [*NAMES, "filter[q]", "_method"])
def test_parameter_of_any_octets(anonymous, key, name, octets):
    path, _ = sign(key, "/wc-api/v3/coupons?_method=GET")
    query = parse_qs(urlsplit(path).query)
    query.pop(name, None)
    sent = f"{urlencode(query, doseq=True)}&{name}={octets}"
    answered = codes(anonymous.get(f"/wc-api/v3/coupons?{sent}"))
    assert answered in {AN_ERROR, (404, "woocommerce_api_no_route")}


@pytest.mark.one_database
@pytest.mark.parametrize("octets", ["%FF", "%ED%A0%80", "\xff"])
def test_header_of_any_octets(anonymous, key, octets):
    header = ",".join(f'{name}="{octets}"' for name in NAMES if name != "oauth_consumer_key")
    header = f'OAuth oauth_consumer_key="{key.consumer_key}",{header}'
    for timestamp in (octets, str(int(time()))):
        sent = header.replace(f'timestamp="{octets}"', f'timestamp="{timestamp}"')
        sent = sent.replace(f'method="{octets}"', 'method="HMAC-SHA1"')
        response = anonymous.get("/wc-api/v3/coupons", headers={"Authorization": sent})
        assert codes(response) == AN_ERROR


@pytest.mark.one_database
@pytest.mark.parametrize("addition", ["page=9&{}", "{}&page=9", "page=9&{}&page=2"])
def test_added_parameter(anonymous, key, addition):
    path, _ = sign(key, "/wc-api/v3/coupons?page=2")
    query = addition.format(urlsplit(path).query)
    assert codes(anonymous.get(f"/wc-api/v3/coupons?{query}")) == AN_ERROR


@pytest.mark.one_database
@pytest.mark.parametrize("missing", NAMES)
def test_missing_parameter_is_named(reason, key, missing):
    path, _ = sign(key, "/wc-api/v3/coupons")
    query = parse_qs(urlsplit(path).query)
    del query[missing]
    message = reason(f"/wc-api/v3/coupons?{urlencode(query, doseq=True)}")
    assert message == f"The parameter {missing} is missing."


@pytest.mark.one_database
@pytest.mark.parametrize("seconds", [-901, 901])
def test_timestamp_is_too_far_away(reason, key, monkeypatch, seconds):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now + seconds))
    assert reason(path) == "The timestamp differs from the server time by more than 15 minutes."


@pytest.mark.one_database
@pytest.mark.parametrize("seconds", [-900, 0, 900])
def test_timestamp_is_near_enough(anonymous, key, monkeypatch, seconds):
    now = 1_800_000_000
    monkeypatch.setattr(credentials.time, "time", lambda: now)
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=str(now + seconds))
    assert anonymous.get(path).status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize("timestamp", ["now", "-1", "1e9", "٣", "9" * 5000])
def test_timestamp_is_not_a_number(reason, key, timestamp):
    path, _ = sign(key, "/wc-api/v3/coupons", timestamp=timestamp)
    assert reason(path) == "The timestamp must be a number of seconds."


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


# --- several headers, and what they cost (decisions 17) ---


def header_of(key):
    _, headers = sign(key, "/wc-api/v3/coupons", signature_type=SIGNATURE_TYPE_AUTH_HEADER)
    return headers["Authorization"]


@pytest.mark.one_database
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


@pytest.mark.one_database
@pytest.mark.parametrize("name", ["_method", "filter[q]"])
def test_parameter_moved_from_the_query_to_the_header(anonymous, key, name):
    value = "GET" if name == "_method" else "a"
    path, _ = sign(key, f"/wc-api/v3/coupons?{urlencode({name: value})}")
    query = {k: v[0] for k, v in parse_qs(urlsplit(path).query).items()}
    del query[name]
    moved = {"Authorization": f'OAuth {urlencode({name: ""})}"{value}"'}
    response = anonymous.get(f"/wc-api/v3/coupons?{urlencode(query)}", headers=moved)
    assert codes(response) == AN_ERROR


# --- one signature, one method (decisions 14) ---


@pytest.mark.one_database
@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize("override", ["DELETE", "delete", " PUT ", "POST"])
@pytest.mark.parametrize("where", [SIGNATURE_TYPE_QUERY, SIGNATURE_TYPE_AUTH_HEADER])
def test_header_does_not_change_a_signed_request(
    admin, anonymous, key, make_coupon, where, override, version
):
    coupon = make_coupon()
    path, headers = sign(key, f"/wc-api/{version}/coupons/{coupon['id']}", signature_type=where)
    headers = headers | {"X-HTTP-Method-Override": override}
    body = {"coupon": {"amount": 99}}
    assert codes(anonymous.request("GET", path, headers=headers, json=body)) == AN_ERROR
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})


def test_header_may_name_the_method_that_is_signed(anonymous, key, make_coupon):
    override = {"X-HTTP-Method-Override": "DELETE"}
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}", "DELETE")
    assert anonymous.post(path, headers=override).status_code == 202
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?_method=DELETE", "POST")
    assert anonymous.post(path, headers=override).status_code == 202
    path, _ = sign(key, "/wc-api/v3/coupons")
    assert anonymous.get(path, headers={"X-HTTP-Method-Override": "GET"}).status_code == 200


def test_header_with_another_method_than_the_signed_method(admin, anonymous, key, make_coupon):
    coupon = make_coupon()
    path, _ = sign(key, f"/wc-api/v3/coupons/{coupon['id']}?_method=GET", "POST")
    for name in ("DELETE", "PUT"):
        response = anonymous.post(path, headers={"X-HTTP-Method-Override": name})
        assert codes(response) == AN_ERROR
    assert anonymous.post(path).status_code == 200


@pytest.mark.one_database
@pytest.mark.parametrize("name", ["a_method", "x_method", "_method%5B%5D", "_methods"])
def test_only_the_parameter_itself_overrides(anonymous, key, make_coupon, name):
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?{name}=DELETE", "GET")
    response = anonymous.get(path, headers={"X-HTTP-Method-Override": "DELETE"})
    assert codes(response) == AN_ERROR


def test_other_credentials_may_use_the_header(admin, make_coupon):
    path = f"/wc-api/v3/coupons/{make_coupon()['id']}"
    response = admin.post(path, headers={"X-HTTP-Method-Override": "DELETE"})
    assert reply(response) == (202, {"message": "Deleted coupon"})


def test_forms_are_bounded(monkeypatch):
    query = "&".join(f"a%5B{n}%5D=%2525+/{n}" for n in range(90))
    query += "&oauth_consumer_key=a&oauth_timestamp=1&oauth_nonce=a"
    query += "&oauth_signature_method=HMAC-SHA1&oauth_signature=x"
    request = SignedRequest(["POST", "PUT"], "http://SHOP.test:80", "/a%20b%2Fc", query)
    assert len(list(request._forms())) > MAX_FORMS
    made = []
    digest = hmac.digest
    monkeypatch.setattr(hmac, "digest", lambda *args: made.append(args) or digest(*args))
    assert not request.is_signed_with("cs", request.signature())
    assert len(made) == 2 * MAX_FORMS


# --- the secret at rest ---


def test_secret_is_stored_encrypted(app, key):
    with app.app_context():
        stored = db.session.get_one(ApiKey, key.key_id).consumer_secret_encrypted
        assert PAIR.consumer_secret not in stored
        assert decrypt(stored) == PAIR.consumer_secret
        assert encrypt("a") != encrypt("a")


def test_secret_of_another_server_cannot_be_read(app, make_app, key):
    with app.app_context():
        stored = encrypt("a")
    with make_app(SECRET_KEY="another").app_context():
        assert decrypt(stored) is None


def test_key_without_a_stored_secret(app, anonymous, key, caplog):
    nothing = {"consumer_secret_encrypted": None}
    with app.app_context():
        run_in_transaction(lambda session: session.execute(update(ApiKey).values(nothing)))
    assert codes(anonymous.get(sign(key, "/wc-api/v3/coupons")[0])) == AN_ERROR
    assert f"key {key.key_id} cannot sign requests" in caplog.text
    assert Client(app, key).get("/wc-api/v3/coupons").status_code == 200


def test_no_secret_is_stored_while_the_mounts_are_off(make_app):
    app = make_app(SHOP_LEGACY_API=False)
    with app.app_context():
        key = create_key("erp", "administrator", Permission.READ_WRITE, "")
        assert db.session.get_one(ApiKey, key.key_id).consumer_secret_encrypted is None


def test_consumer_key_that_exists(app, key):
    with app.app_context(), pytest.raises(KeyExists):
        create_key("other", "administrator", Permission.READ_WRITE, "", PAIR)
