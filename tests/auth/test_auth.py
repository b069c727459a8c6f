"""Authentication: keys, permissions, roles and errors (decisions 1, 2, 13)."""

import time

import pytest
from sqlalchemy import delete, update

from app.auth.api_keys import MAX_AGE_SECONDS, MAX_CACHED_PRINCIPALS
from app.db.session import db, run_in_transaction
from app.models import ApiKey, User, UserRole
from app.models.user import role_of
from app.services.api_keys.writes import revoke_key
from tests.api_client import Client, codes, refusal, reply
from tests.auth.requests import REFUSED, UNKNOWN_KEY, assert_refused, basic

WRONG = [
    # the key and the secret of a pair
    *[("{unknown_key}", secret) for secret in ("{unknown_secret}", "{secret}")],
    *[("{key}", secret) for secret in ("{unknown_secret}", "", "{key}", "{other_secret}")],
    *[("{key}", secret) for secret in ("{secret} x", "{secret}x", "{secret}:")],
    *[(key, "{secret}") for key in ("", "{key}\0", "administrator")],
    *[("{secret}", "{key}"), ("", ""), ("é", "日本"), ("x" * 10_000, "x" * 10_000)],
]

pytestmark = pytest.mark.one_database

# --- credentials ---


def test_credentials_missing(anonymous):
    assert_refused(anonymous.get("/coupons"))


def test_credentials_right(admin):
    assert reply(admin.get("/coupons")) == (200, {"coupons": []})


def test_scheme_is_named_in_any_case(anonymous, admin):
    pair = f"{admin.key.consumer_key}:{admin.key.consumer_secret}"
    for scheme in ("Basic", "basic", "BASIC"):
        header = basic(pair).replace("Basic", scheme)
        assert anonymous.get("/coupons", headers={"Authorization": header}).status_code == 200


PASTED = ["{}\n", "{}\r\n", " {}", "\t{} ", "{}\u00a0"]


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v3/coupons", "/wp-json/wc/v3/coupons"])
def test_white_space_around_a_pasted_key_is_ignored(app, client_for, path, pasted):
    key = client_for().key
    for names in ("consumer_key",), ("consumer_secret",), ("consumer_key", "consumer_secret"):
        sent = {"consumer_key": key.consumer_key, "consumer_secret": key.consumer_secret}
        sent |= {name: pasted.format(sent[name]) for name in names}
        ways = [{"headers": {"Authorization": basic(":".join(sent.values()))}}]
        if path != "/coupons":
            ways.append({"query_string": sent})
        for way in ways:
            response = app.test_client().get(path, base_url="https://localhost", **way)
            assert response.status_code == 200


def test_credentials_wrong(anonymous, client_for):
    key, other = client_for().key, client_for("shop_manager").key
    names = {
        "key": key.consumer_key,
        "secret": key.consumer_secret,
        "other_secret": other.consumer_secret,
        "unknown_key": UNKNOWN_KEY.consumer_key,
        "unknown_secret": UNKNOWN_KEY.consumer_secret,
    }
    for pair in WRONG:
        header = basic(":".join(pair).format(**names))
        assert_refused(anonymous.get("/coupons", headers={"Authorization": header}))


def test_secret_in_upper_case(anonymous, admin):
    pair = f"{admin.key.consumer_key}:{admin.key.consumer_secret.upper()}"
    assert_refused(anonymous.get("/coupons", headers={"Authorization": basic(pair)}))


def test_credentials_malformed(anonymous, admin):
    encoded = ("Basic", "Basic ", "Basic !!!", "Basic abc", "Basic ====", "Basic é")
    binary = (basic("no colon"), basic(b"\xff\xfe:\xff"))
    schemes = (
        "",
        " ",
        "Bearer {secret}",
        "Digest username=x",
        "Token x",
        "{key}:{secret}",
        "nonsense",
    )
    for header in (*encoded, *binary, *schemes):
        pair = {"key": admin.key.consumer_key, "secret": admin.key.consumer_secret}
        authorization = {"Authorization": header.format(**pair)}
        assert_refused(anonymous.get("/coupons", headers=authorization))


@pytest.mark.parametrize("header", ["Bearer abc", "Token x", "nonsense"])
@pytest.mark.parametrize(
    ("path", "prefix", "end"),
    [
        ("/coupons", "shop_api", "."),
        ("/wc-api/v3/coupons", "woocommerce_api", ", or sign the request with OAuth 1.0a."),
    ],
)
def test_unsupported_scheme_is_named_as_the_reason(anonymous, header, path, prefix, end):
    response = anonymous.get(path, headers={"Authorization": header})
    message = (
        "The scheme of the Authorization header is not supported. "
        f"Send an API key by HTTP Basic authentication{end}"
    )
    entry = {"code": f"{prefix}_authentication_error", "message": message}
    assert reply(response) == (401, {"errors": [entry]})


def test_credentials_in_the_query(anonymous, admin):
    query = {
        "consumer_key": admin.key.consumer_key,
        "consumer_secret": admin.key.consumer_secret,
    }
    assert_refused(anonymous.get("/coupons", query))


def test_credentials_precede_body_and_query(anonymous):
    unknown = Client(anonymous.app, UNKNOWN_KEY)
    for method, path in READS[1:] + WRITES:
        query = {"page": "x"}
        assert_refused(anonymous.request(method, path, data="{not JSON", query_string=query))
        assert_refused(unknown.request(method, path, data="{not JSON"))


def test_routing_precedes_credentials(anonymous):
    assert reply(anonymous.get("/nothing")) == refusal("shop_api_no_route")
    response = anonymous.delete("/coupons")
    assert reply(response) == refusal(
        "shop_api_method_not_allowed", method="DELETE", allowed=response.headers["Allow"]
    )


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/openapi.json", "/docs/"])
def test_open_route_needs_no_credentials(anonymous, path):
    assert anonymous.get(path).status_code == 200
    assert anonymous.get(path, headers={"Authorization": basic("ck_x:cs_x")}).status_code == 200


# --- permissions ---

READS = [("HEAD", "/coupons")] + [
    ("GET", path) for path in ("/coupons", "/coupons/1", "/coupons/count", "/coupons/code/x")
]
WRITES = [
    ("POST", "/coupons"),
    ("PUT", "/coupons/1"),
    ("DELETE", "/coupons/1"),
    ("POST", "/coupons/bulk"),
    ("PUT", "/coupons/bulk"),
]


def test_permission_precedes_capabilities_and_body(client_for):
    client = client_for("customer", "read")
    assert_refused(client.post("/coupons", data="{not JSON"))
    assert_refused(client_for("customer", "write").get("/coupons/count"))


def test_permission_write_returns_the_written_record(client_for):
    client = client_for(permission="write")
    response = client.post("/coupons", {"coupon": {"code": "summer"}})
    assert response.status_code == 201
    path = f"/coupons/{response.get_json()['coupon']['id']}"
    assert client.put(path, {"coupon": {"amount": 5}}).get_json()["coupon"]["amount"] == "5.00"


# --- keys and users ---


@pytest.mark.pooler
def test_key_revoked(app, client_for):
    first, second = client_for(), client_for()
    with app.app_context():
        assert revoke_key(first.key.key_id)
    assert_refused(first.get("/coupons"))
    assert second.get("/coupons").status_code == 200


def test_key_once_seen_is_not_looked_up_again(client_for, statements):
    client = client_for()
    for _ in range(50):  # on PostgreSQL, the times can differ slightly
        statements.clear()
        assert client.get("/orders/statuses").status_code == 200
        if not statements:
            return
    pytest.fail("a key is looked up for each request")


@pytest.mark.pooler
def test_changes_of_a_key_by_another_process_take_effect_soon(app, client_for):
    """Changes by SQL take effect when the cached principal expires."""
    revoked, demoted = (client_for(login=name) for name in ("ann", "bob"))
    for client in (revoked, demoted):
        assert client.get("/coupons/count").status_code == 200
    role = UserRole.user_id == demoted.key.user_id
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(update(UserRole).where(role).values(role="customer"))
        connection.execute(delete(ApiKey).where(ApiKey.id == revoked.key.key_id))
    time.sleep(MAX_AGE_SECONDS)
    assert_refused(revoked.get("/coupons/count"))
    assert codes(demoted.get("/coupons/count")) == (401, "shop_api_user_cannot_read_coupons_count")


def test_number_of_cached_principals_is_limited(client_for, app):
    clients = [client_for(login=name) for name in ("ann", "bob")]
    cache = app.extensions.setdefault("shop_api_principals", {})
    cache.update({str(number): (0, 0.0, None) for number in range(MAX_CACHED_PRINCIPALS)})
    for client in clients:
        assert client.get("/coupons").status_code == 200
    assert len(cache) <= 2


def test_secret_of_a_cached_principal_is_not_kept(app, admin):
    assert admin.get("/coupons").status_code == 200
    kept = repr(app.extensions["shop_api_principals"])
    assert admin.key.consumer_secret not in kept
    assert admin.key.consumer_key not in kept


@pytest.mark.pooler
def test_user_deleted_by_another_worker_is_rejected_immediately(make_app, admin, client_for):
    client = client_for(login="ann")
    worker = Client(make_app(), client.key)
    assert worker.get("/coupons").status_code == 200
    assert admin.delete(f"/customers/{client.key.user_id}").status_code == 200
    assert_refused(worker.get("/coupons"))


def test_revocation_takes_effect_if_the_instance_folder_is_read_only(
    app, client_for, monkeypatch, tmp_path, caplog
):
    first = client_for()
    assert first.get("/coupons").status_code == 200
    monkeypatch.setattr(app, "instance_path", str(tmp_path / "missing"))
    with app.app_context():
        assert revoke_key(first.key.key_id)
    assert_refused(first.get("/coupons"))
    assert "Other processes accept revoked keys for up to 1 seconds" in caplog.text


def test_key_of_a_deleted_user(app, client_for):
    client, other = client_for(login="ann"), client_for(login="bob")
    with app.app_context():
        run_in_transaction(lambda session: session.delete(session.get(User, client.key.user_id)))
    assert_refused(client.get("/coupons"))
    assert_refused(client.post("/coupons", {"coupon": {"code": "x"}}))
    assert other.get("/coupons").status_code == 200


def test_key_is_not_stored_in_plaintext(app, admin):
    halves = {admin.key.consumer_key, admin.key.consumer_secret}
    secret = admin.key.consumer_secret.removeprefix("cs_")
    with app.app_context():
        rows = run_in_transaction(
            lambda session: session.connection().exec_driver_sql("SELECT * FROM api_keys").all()
        )
    (stored,) = rows
    assert not halves & {str(value) for value in stored}
    assert not any(secret in str(value) for value in stored)


def test_key_has_the_documented_form(admin):
    for half, prefix in ((admin.key.consumer_key, "ck_"), (admin.key.consumer_secret, "cs_")):
        assert half.startswith(prefix)
        assert len(half) == 43
        assert set(half[3:]) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("roles", "status"),
    [
        ([], 401),
        (["customer"], 401),
        (["subscriber", "customer"], 401),
        (["customer", "shop_manager"], 200),
        (["shop_manager", "customer"], 200),
        (["no such role", "administrator"], 200),
    ],
    ids=str,
)
def test_capabilities_are_the_union_of_the_roles(app, client_for, roles, status):
    client = client_for("subscriber")
    user_id = client.key.user_id

    def give(session):
        subscriber = session.get_one(UserRole, (user_id, "subscriber"))
        registered_at = subscriber.registered_at
        session.delete(subscriber)
        session.flush()
        for position, role in enumerate(roles):
            session.add(UserRole(**role_of(user_id, role, registered_at, position)))

    with app.app_context():
        run_in_transaction(give)
    assert client.get("/coupons/count").status_code == status


# --- one header (decisions 17) ---


@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v3/coupons"])
@pytest.mark.parametrize("other", ["{right}", "Basic YTpi", "Basic", "Bearer x", 'OAuth a="b"', ""])
def test_several_authorization_headers(anonymous, admin, other, path):
    right = basic(f"{admin.key.consumer_key}:{admin.key.consumer_secret}")
    other = other.format(right=right)
    for both in ([right, other], [other, right]):
        response = anonymous.get(path, headers={"Authorization": ",".join(both)})
        assert response.status_code == 400
        (entry,) = response.get_json()["errors"]
        assert entry["code"].endswith("_api_invalid_param")
        assert entry["param"] == "Authorization"


# --- a page's own script (decisions 17) ---


@pytest.mark.parametrize("mode", ["cors", "same-origin"])
def test_script_is_not_challenged(anonymous, mode):
    response = anonymous.get("/coupons", headers={"Sec-Fetch-Mode": mode})
    assert codes(response) == REFUSED
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize("mode", ["navigate", "no-cors", "websocket", "", "x"])
def test_other_clients_are_challenged(anonymous, mode):
    assert_refused(anonymous.get("/coupons", headers={"Sec-Fetch-Mode": mode}))
