"""Requests with OAuth 1.0a signatures (decisions 12)."""

import hmac
import secrets
from base64 import b64encode
from time import time
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest
from oauthlib.oauth1 import SIGNATURE_TYPE_AUTH_HEADER, SIGNATURE_TYPE_QUERY
from sqlalchemy import update

from app.auth.api_keys import ApiKeyCredentials
from app.auth.encryption import decrypt, encrypt
from app.auth.principals import Permission
from app.db.session import db, run_in_transaction
from app.models import ApiKey
from app.plugins.woocommerce import credentials
from app.plugins.woocommerce.oauth1 import MAX_FORMS, PASTED, PASTED_FORMS, SignedRequest
from app.services.api_keys.writes import KeyExists, create_key
from tests.api_client import Client, codes, reply
from tests.plugins.woocommerce.oauth_requests import AN_ERROR, ORIGIN, PAIR, VECTORS, key, sign

pytestmark = pytest.mark.one_database

__all__ = ["key"]  # a fixture


def signed_request(vector):
    url = urlsplit(vector["url"])
    return SignedRequest(
        [vector["method"]], f"{url.scheme}://{url.netloc}", url.path, vector["query"]
    )


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


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_overridden_method_may_be_signed_either_way(anonymous, key, make_coupon, method):
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?_method=DELETE", method)
    assert reply(anonymous.post(path)) == (202, {"message": "Deleted coupon"})


# --- with a pair that was pasted with white space ---


@pytest.mark.parametrize("pasted", ["{}\n", "{}\r\n", "{} ", "{}\t", " {}", "\t{}"])
@pytest.mark.parametrize("mount", ["/wc-api/v3", "/wp-json/wc/v3"])
def test_white_space_around_a_pasted_pair_is_ignored(app, key, mount, pasted):
    pair = ApiKeyCredentials(pasted.format(PAIR.consumer_key), pasted.format(PAIR.consumer_secret))
    path, headers = sign(pair, f"{mount}/coupons?page=1")
    assert app.test_client().get(path, headers=headers).status_code == 200
    other = ApiKeyCredentials(PAIR.consumer_key, f"{pair.consumer_secret}x")
    path, headers = sign(other, f"{mount}/coupons?page=1")
    assert app.test_client().get(path, headers=headers).status_code == 401


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


@pytest.mark.sample(5)
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


# --- one signature, one method (decisions 14) ---


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


ENCODED = ["_method", "%5Fmethod", "%5fmethod", "_%6Dethod", "%5F%6D%65%74%68%6F%64"]
"""The name of the parameter, with any of its characters percent-encoded."""


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("where", [SIGNATURE_TYPE_QUERY, SIGNATURE_TYPE_AUTH_HEADER])
@pytest.mark.parametrize(
    ("method", "value"),
    [("POST", "PUT"), ("POST", "POST"), ("GET", "GET"), ("GET", "x"), ("GET", "1"), ("GET", "")],
)
def test_header_does_not_change_an_overridden_request(
    admin, anonymous, key, make_coupon, method, value, where, name
):
    coupon = make_coupon()
    path = f"/wc-api/v3/coupons/{coupon['id']}?_method={value}"
    path, headers = sign(key, path, method, signature_type=where)
    path = path.replace("_method=", f"{name}=", 1)
    headers = headers | {"X-HTTP-Method-Override": "DELETE"}
    response = anonymous.request(method, path, headers=headers, json={"coupon": {"amount": 99}})
    assert codes(response) == AN_ERROR
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})


@pytest.mark.parametrize("name", ENCODED)
def test_encoded_name_overrides(admin, anonymous, key, make_coupon, name):
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}?_method=DELETE", "POST")
    response = anonymous.post(path.replace("_method=", f"{name}=", 1))
    assert reply(response) == (202, {"message": "Deleted coupon"})
    response = admin.get(f"/wc-api/v3/coupons/{make_coupon()['id']}?{name}=DELETE")
    assert reply(response) == (202, {"message": "Deleted coupon"})


@pytest.mark.parametrize("values", [("GET", "DELETE"), ("DELETE", "GET")])
def test_signature_does_not_cover_the_order_of_several_overrides(
    admin, anonymous, key, make_coupon, values
):
    coupon = make_coupon()
    query = "&".join(f"_method={value}" for value in values)
    path, _ = sign(key, f"/wc-api/v3/coupons/{coupon['id']}?{query}")
    assert codes(anonymous.get(path)) == AN_ERROR
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})


def test_form_field_does_not_override(anonymous, key, make_coupon):
    # A form is not a JSON body, so the parameter has no effect.
    path, _ = sign(key, f"/wc-api/v3/coupons/{make_coupon()['id']}")
    assert anonymous.http.get(path, data={"_method": "DELETE"}).status_code == 200


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
    assert len(made) == 2 * MAX_FORMS + PASTED_FORMS * len(PASTED)


# --- the secret at rest ---


def test_secret_is_stored_encrypted(app, key):
    with app.app_context():
        stored = db.session.get_one(ApiKey, key.key_id).consumer_secret_encrypted
        assert PAIR.consumer_secret not in stored
        assert decrypt(stored) == PAIR.consumer_secret
        assert encrypt("a") != encrypt("a")


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("off", "path"),
    [("SHOP_LEGACY_API", "/wp-json/wc/v3/coupons"), ("SHOP_WC_V3", "/wc-api/v3/coupons")],
)
def test_key_made_while_another_mount_is_off_can_sign(make_app, off, path):
    app = make_app(**{off: False})
    with app.app_context():
        key = create_key("erp", "administrator", Permission.READ_WRITE, "")
    assert app.test_client().get(sign(key, path)[0]).status_code == 200


def test_no_secret_is_stored_while_the_mounts_are_off(make_app):
    app = make_app(SHOP_LEGACY_API=False, SHOP_WC_V3=False)
    with app.app_context():
        key = create_key("erp", "administrator", Permission.READ_WRITE, "")
        assert db.session.get_one(ApiKey, key.key_id).consumer_secret_encrypted is None


def test_consumer_key_that_exists(app, key):
    with app.app_context(), pytest.raises(KeyExists):
        create_key("other", "administrator", Permission.READ_WRITE, "", PAIR)
