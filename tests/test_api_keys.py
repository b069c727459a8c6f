"""API keys over HTTP: fields, limits, rotation, and that no key obtains more rights than it has."""

import re
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from conftest import Client, codes, refusal, refused_params, reply
from sqlalchemy import select, update
from test_auth import basic

from app.auth.principal_cache import MAX_AGE_SECONDS
from app.auth.principals import Permission
from app.catalog import EXTENSION
from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.models import ApiKey, User
from app.schemas.api_keys import PERMISSIONS
from app.services.api_key_rights import Rights
from app.services.api_keys import create_key, revoke_key

REJECTED = (401, "shop_api_authentication_error")
INSUFFICIENT = "shop_api_insufficient_key_rights"
NEVER_USED = {"expires_at": None, "last_used_at": None}


def reason_of(response):
    return response.get_json()["errors"][0]["message"]


def client_of(app, key):
    """A client with the key of a response."""
    return Client(app, SimpleNamespace(**key))


@pytest.fixture
def limited(app):
    """Return a function: a client with a key of an administrator that has limits."""

    def make(login="limited", role="administrator", permission="read_write", **limits):
        rights = Rights(Permission(permission), **limits)
        with app.app_context():
            return Client(app, create_key(login, role, rights.permission, "", rights=rights))

    return make


@pytest.fixture
def make_key(admin):
    """Return a function: create a key and return it as the API does."""

    def make(client=None, **fields):
        response = (client or admin).post("/keys", {"key": fields})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["key"]

    return make


def stored(app, key_id):
    with app.app_context():
        return fetch(select(ApiKey.__table__).where(ApiKey.id == key_id))[0]


# --- fields ---


def test_permissions_of_the_schema_are_those_of_keys():
    assert [permission.value for permission in Permission] == list(PERMISSIONS)


def test_create_without_fields(app, admin):
    response = admin.post("/keys", {"key": {}})
    key = response.get_json()["key"]
    assert response.status_code == 201
    assert re.fullmatch("ck_[0-9a-f]{40}", key["consumer_key"])
    assert re.fullmatch("cs_[0-9a-f]{40}", key["consumer_secret"])
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", key["created_at"])
    assert key == {
        "id": key["id"],
        "user_id": admin.key.user_id,
        "username": "administrator",
        "description": "",
        "permission": "read",
        "resources": ["all"],
        "truncated_key": key["consumer_key"][-7:],
        "created_at": key["created_at"],
        **NEVER_USED,
        "consumer_key": key["consumer_key"],
        "consumer_secret": key["consumer_secret"],
    }
    client = client_of(app, key)
    assert client.get("/coupons").status_code == 200
    assert codes(client.post("/coupons", {"coupon": {"code": "x"}})) == REJECTED


def test_create_with_all_fields_is_stored_and_the_secret_is_shown_once(app, admin, make_customer):
    user = make_customer(username="ada")
    body = {
        "user_id": user["id"],
        "description": "Marketing",
        "permission": "read_write",
        "resources": ["redemptions", "coupons", "coupons"],
        "expires_at": "2099-01-01T00:00:00Z",
    }
    created = admin.post("/keys", {"key": body}).get_json()["key"]
    secrets = [created.pop(name) for name in ("consumer_key", "consumer_secret")]
    assert created == {
        "id": created["id"],
        "username": "ada",
        **body,
        "resources": ["coupons", "redemptions"],
        "truncated_key": secrets[0][-7:],
        "created_at": created["created_at"],
        "last_used_at": None,
    }
    found = admin.get(f"/keys/{created['id']}")
    assert reply(found) == (200, {"key": created})
    listed = admin.get("/keys", {"filter[user_id]": user["id"]})
    assert reply(listed) == (200, {"keys": [created]})
    row = stored(app, created["id"])
    assert not any(secret[3:] in str(value) for secret in secrets for value in row)


def test_create_for_a_user_by_username_in_any_case(admin, make_customer):
    user = make_customer(username="Ada")
    key = admin.post("/keys", {"key": {"username": "ADA"}}).get_json()["key"]
    assert (key["user_id"], key["username"]) == (user["id"], "Ada")


def test_create_with_a_role_creates_the_user(app, admin, make_key):
    key = make_key(username="erp", role="shop_manager", permission="read_write")
    assert key["username"] == "erp"
    assert admin.get(f"/customers/{key['user_id']}").get_json()["customer"]["role"] == (
        "shop_manager"
    )
    assert client_of(app, key).get("/coupons/count").status_code == 200
    again = make_key(username="ERP", role="shop_manager")
    assert again["user_id"] == key["user_id"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"permission": "admin"}, ["key.permission"]),
        ({"permission": True}, ["key.permission"]),
        ({"permission": ["read"]}, ["key.permission"]),
        ({"resources": "coupons"}, ["key.resources"]),
        ({"resources": []}, ["key.resources"]),
        ({"resources": [1]}, ["key.resources"]),
        ({"resources": [""]}, ["key.resources"]),
        ({"resources": ["coupons", None]}, ["key.resources"]),
        ({"resources": ["cuopons"]}, ["key.resources"]),
        ({"resources": ["coupons,orders"]}, ["key.resources"]),
        ({"resources": ["x"] * 101}, ["key.resources"]),
        ({"expires_at": "2020-01-01"}, ["key.expires_at"]),
        ({"expires_at": "soon"}, ["key.expires_at"]),
        ({"description": "x" * 1001}, ["key.description"]),
        ({"description": "a\0b"}, ["key.description"]),
        ({"permission": 1, "resources": 2}, ["key.permission", "key.resources"]),
        ({"user_id": 4711}, ["key.user_id"]),
        ({"user_id": 0}, ["key.user_id"]),
        ({"user_id": 2**63 - 1}, ["key.user_id"]),
        ({"user_id": 1, "username": "erp"}, ["key.username"]),
        ({"username": "erp"}, ["key.role"]),
        ({"username": "erp", "role": "boss"}, ["key.role"]),
        ({"username": "administrator", "role": "customer"}, ["key.role"]),
    ],
    ids=str,
)
def test_create_rejects(app, admin, fields, refused):
    def rows():
        with app.app_context():
            return fetch(select(ApiKey.id)), fetch(select(User.id))

    before = rows()
    assert refused_params(admin.post("/keys", {"key": fields})) == refused
    assert rows() == before


def test_create_suggests_the_nearest_resource(admin):
    response = admin.post("/keys", {"key": {"resources": ["cuopons"]}})
    assert reason_of(response).startswith(
        "key.resources: unknown resource 'cuopons' (did you mean coupons?). Known resources: all, "
    )


@pytest.mark.one_database
def test_create_with_an_invalid_username(admin):
    response = admin.post("/keys", {"key": {"username": "a:b", "role": "customer"}})
    assert reply(response) == refusal("registration-error-invalid-username")


@pytest.mark.one_database
@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("body", [None, {}, {"key": None}, []], ids=str)
def test_body_without_a_key(admin, method, body):
    path = f"/keys/{admin.key.key_id}" if method == "PUT" else "/keys"
    assert reply(admin.request(method, path, json=body)) == refusal("shop_api_missing_key_data")


@pytest.mark.one_database
@pytest.mark.parametrize("key_id", ["4711", "0", "9" * 30])
def test_key_that_does_not_exist(admin, key_id):
    missing = refusal("shop_api_invalid_key_id")
    assert reply(admin.get(f"/keys/{key_id}")) == missing
    assert reply(admin.put(f"/keys/{key_id}", {"key": {}})) == missing
    assert reply(admin.post(f"/keys/{key_id}/rotate")) == missing
    assert reply(admin.delete(f"/keys/{key_id}")) == missing


def test_list_pages_sorts_and_selects(admin, make_key):
    ids = [admin.key.key_id, *(make_key(description=str(n))["id"] for n in range(3))]
    response = admin.get("/keys", {"filter[limit]": 3, "page": 2, "filter[order]": "asc"})
    assert [key["id"] for key in response.get_json()["keys"]] == ids[3:]
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("4", "2")
    newest = admin.get("/keys", {"fields": "id,description", "filter[orderby]": "id"})
    assert newest.get_json()["keys"][0] == {"id": ids[3], "description": "2"}
    assert admin.get("/keys", {"filter[user_id]": 2**63}).get_json() == {"keys": []}


def test_update_changes_only_supplied_fields(app, admin, make_key):
    key = make_key(description="ERP", permission="write", resources=["orders"])
    path = f"/keys/{key['id']}"
    kept = {name: value for name, value in key.items() if not name.startswith("consumer_")}
    changes = {"description": "New", "id": 1, "user_id": 4, "username": "x", "consumer_key": "x"}
    assert reply(admin.put(path, {"key": changes})) == (200, {"key": kept | {"description": "New"}})
    change = {"permission": "read", "resources": ["all"], "expires_at": "2099-01-01"}
    shown = {"description": "New", **change, "expires_at": "2099-01-01T00:00:00Z"}
    assert reply(admin.put(path, {"key": change})) == (200, {"key": kept | shown})
    nothing = {"permission": None, "resources": None, "expires_at": None}
    assert reply(admin.put(path, {"key": nothing})) == (200, {"key": kept | shown})
    forever = admin.put(path, {"key": {"expires_at": ""}}).get_json()["key"]
    assert forever["expires_at"] is None
    assert client_of(app, key).get("/coupons").status_code == 200


def test_update_that_restricts_a_key_takes_effect_immediately(app, admin, make_key):
    key = make_key(permission="read_write")
    client = client_of(app, key)
    assert client.get("/coupons").status_code == 200
    admin.put(f"/keys/{key['id']}", {"key": {"resources": ["orders"]}})
    assert codes(client.get("/coupons")) == REJECTED
    assert client.get("/orders").status_code == 200
    admin.put(f"/keys/{key['id']}", {"key": {"permission": "write"}})
    assert codes(client.get("/orders")) == REJECTED


def test_revoke(app, admin, make_key, make_app):
    key = make_key()
    client, elsewhere = client_of(app, key), client_of(make_app(), key)
    assert (client.get("/coupons").status_code, elsewhere.get("/coupons").status_code) == (200, 200)
    response = admin.delete(f"/keys/{key['id']}")
    assert reply(response) == (200, {"message": "Revoked key"})
    assert codes(client.get("/coupons")) == codes(elsewhere.get("/coupons")) == REJECTED
    assert reply(admin.get(f"/keys/{key['id']}")) == refusal("shop_api_invalid_key_id")


def test_rotate(app, admin, make_key, make_app):
    key = make_key(description="ERP", permission="read", resources=["coupons"])
    old, elsewhere = client_of(app, key), client_of(make_app(), key)
    assert (old.get("/coupons").status_code, elsewhere.get("/coupons").status_code) == (200, 200)
    response = admin.post(f"/keys/{key['id']}/rotate")
    rotated = response.get_json()["key"]
    assert response.status_code == 200
    assert codes(old.get("/coupons")) == codes(elsewhere.get("/coupons")) == REJECTED
    assert client_of(app, rotated).get("/coupons").status_code == 200
    changed = {"consumer_key", "consumer_secret", "truncated_key", "last_used_at"}
    assert {name for name in key if key[name] != rotated[name]} == changed
    # Neither half of the old pair works with a half of the new one.
    for half in ("consumer_key", "consumer_secret"):
        assert codes(client_of(app, rotated | {half: key[half]}).get("/coupons")) == REJECTED


def test_response_with_a_secret_is_stored_encrypted_for_retries(app, admin):
    sent = [admin.post("/keys", {"key": {}}, headers={"Idempotency-Key": "once"}) for _ in range(2)]
    first, second = (response.get_json()["key"] for response in sent)
    assert first == second
    assert sent[1].headers["Idempotent-Replayed"] == "true"
    with app.app_context():
        ((stored,),) = fetch(db.text("SELECT response_body FROM idempotency_records"))
    assert first["consumer_secret"].encode() not in bytes(stored)
    assert b"consumer" not in bytes(stored)


# --- expiry ---


def expire(app, key_id, at):
    statement = update(ApiKey).where(ApiKey.id == key_id).values(expires_at=at)
    with app.app_context():
        run_in_transaction(lambda session: session.execute(statement))


def test_key_expires(app, admin, make_key):
    key = make_key()
    client = client_of(app, key)
    at = datetime.now(UTC) + timedelta(seconds=1.2)
    expire(app, key["id"], at)
    # A cached principal is not used beyond the expiry of its key.
    while datetime.now(UTC) < at - timedelta(seconds=0.2):
        assert client.get("/coupons").status_code == 200
        time.sleep(0.05)
    time.sleep(max(0, (at - datetime.now(UTC)).total_seconds()))
    response = client.get("/coupons")
    assert codes(response) == REJECTED
    assert reason_of(response) == "The API key has expired."
    assert admin.get(f"/keys/{key['id']}").status_code == 200


def test_expired_key_with_a_wrong_secret_is_not_revealed(app, admin, make_key):
    key = make_key()
    expire(app, key["id"], datetime.now(UTC) - timedelta(days=1))
    wrong = client_of(app, key | {"consumer_secret": "cs_wrong"})
    assert reason_of(wrong.get("/coupons")) == "The consumer key or its secret is wrong."


# --- last use ---


def test_last_use_is_stored_to_the_minute_and_once_a_minute(app, admin, make_key, statements):
    key = make_key()
    client = client_of(app, key)
    for _ in range(2):  # a minute can begin in between
        started = datetime.now(UTC).replace(second=0, microsecond=0)
        statements.clear()
        for _ in range(3):
            assert client.get("/orders/statuses").status_code == 200
            app.extensions.pop("shop_api_principals")
        if datetime.now(UTC).replace(second=0, microsecond=0) == started:
            break
    writes = [statement for statement in statements if "UPDATE" in statement]
    assert len(writes) <= 1
    assert stored(app, key["id"]).last_used_at == started
    shown = admin.get(f"/keys/{key['id']}").get_json()["key"]["last_used_at"]
    assert shown == f"{started:%Y-%m-%dT%H:%M}:00Z"


def test_rejected_secret_does_not_count_as_use(app, make_key):
    key = make_key()
    client_of(app, key | {"consumer_secret": "cs_wrong"}).get("/coupons")
    assert stored(app, key["id"]).last_used_at is None


def test_last_use_does_not_wait_for_a_writer(app, make_key):
    key = make_key()
    client = client_of(app, key)
    with app.app_context(), db.engine.begin() as connection:
        # Locks the database on SQLite and the key on PostgreSQL.
        own = update(ApiKey).where(ApiKey.id == key["id"])
        connection.execute(own.values(description="locked"))
        started = time.monotonic()
        assert client.get("/orders/statuses").status_code == 200
        assert time.monotonic() - started < 5
    assert stored(app, key["id"]).last_used_at is None
    app.extensions.pop("shop_api_principals")
    assert client.get("/orders/statuses").status_code == 200
    assert stored(app, key["id"]).last_used_at is not None


# --- resources ---

PATHS = {
    "coupons": ["/coupons", "/coupons/count", "/coupons/trash"],
    "customers": ["/customers", "/customers/count"],
    "orders": ["/orders", "/orders/count", "/orders/statuses", "/orders/trash"],
    "redemptions": ["/redemptions", "/redemptions/count"],
    "keys": ["/keys"],
}


@pytest.mark.parametrize("resource", PATHS)
def test_key_is_limited_to_its_resources(limited, resource):
    client = limited(resources=frozenset({resource}))
    for other, paths in PATHS.items():
        for path in paths:
            response = client.get(path)
            if other == resource:
                assert response.status_code == 200, path
            else:
                assert codes(response) == REJECTED, path
                assert reason_of(response) == f"This API key is not valid for the resource {other}."
                assert response.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.parametrize("mount", ["/wc-api/v2", "/wc-api/v3"])
def test_key_is_limited_on_legacy_mounts(limited, admin, make_coupon, mount):
    coupon = make_coupon()
    client = limited(resources=frozenset({"coupons"}))
    assert client.get(f"{mount}/coupons").status_code == 200
    rejected = (401, "woocommerce_api_authentication_error")
    for path in ("customers", "orders", "orders/count", "orders/1/notes"):
        assert codes(client.get(f"{mount}/{path}")) == rejected
    other = limited("other", resources=frozenset({"orders"}))
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        assert codes(other.request(method, f"{mount}/coupons/{coupon['id']}")) == rejected
    override = {"X-HTTP-Method-Override": "DELETE"}
    path = f"{mount}/coupons/{coupon['id']}"
    assert codes(other.post(path, headers=override)) == rejected
    assert admin.get(f"/coupons/{coupon['id']}").status_code == 200


def test_orders_of_a_customer_need_both_resources(limited, make_customer):
    user = make_customer()
    for path in (f"/customers/{user['id']}/orders", f"/customers/{user['id']}/downloads"):
        for mount in ("", "/wc-api/v3"):
            for one in ("customers", "orders"):
                client = limited(one, resources=frozenset({one}))
                assert client.get(mount + path).status_code == 401
            both = limited("both", resources=frozenset({"customers", "orders"}))
            assert both.get(mount + path).status_code == 200


def test_every_operation_needs_the_resource_in_its_path(app, limited):
    """A blueprint that is added later is covered, and so is every mount."""
    client = limited(resources=frozenset({"no such resource"}))
    prefixes = ("/wc-api/v2", "/wc-api/v3")
    public = {"/", "/healthz", "/readyz", "/openapi.json", "/metrics"}
    for rule in app.url_map.iter_rules():
        path = rule.rule
        for prefix in prefixes:
            path = path.removeprefix(prefix)
        if path in public or path.startswith(("/docs", "/static")):
            continue
        url = re.sub("<email:[^>]+>", "a@example.com", rule.rule)
        url = re.sub("<[^>]+>", "1", url)
        for method in rule.methods - {"OPTIONS"}:
            response = client.request(method, url)
            assert response.status_code == 401, (method, url, response.status_code)
            if method != "HEAD":
                resource = path.split("/")[1]
                expected = f"This API key is not valid for the resource {resource}."
                assert reason_of(response) == expected, (method, url)
                assert resource in app.extensions[EXTENSION].resources


# --- no key obtains more rights than it has ---


@pytest.mark.parametrize("role", ["shop_manager", "customer"])
def test_other_users_see_and_rotate_their_own_keys_only(app, admin, client_for, role):
    client, other = client_for(role, login="ann"), client_for(role, login="bob")
    own, foreign = client.key.key_id, other.key.key_id
    assert [key["id"] for key in client.get("/keys").get_json()["keys"]] == [own]
    assert client.get("/keys", {"filter[user_id]": other.key.user_id}).get_json() == {"keys": []}
    assert client.get(f"/keys/{own}").get_json()["key"]["username"] == "ann"
    for path in (f"/keys/{foreign}", f"/keys/{admin.key.key_id}"):
        assert reply(client.get(path)) == refusal("shop_api_user_cannot_read_key")
        assert reply(client.post(f"{path}/rotate")) == refusal("shop_api_user_cannot_edit_key")
    for path in (f"/keys/{own}", f"/keys/{foreign}"):
        change = {"key": {"permission": "read"}}
        assert reply(client.put(path, change)) == refusal("shop_api_user_cannot_edit_key")
        assert reply(client.delete(path)) == refusal("shop_api_user_cannot_delete_key")
    assert reply(client.post("/keys", {"key": {}})) == refusal("shop_api_user_cannot_create_key")
    assert other.get("/keys").status_code == 200
    rotated = client.post(f"/keys/{own}/rotate").get_json()["key"]
    assert codes(client.get("/keys")) == REJECTED
    assert client_of(app, rotated).get("/keys").status_code == 200


def test_key_cannot_create_a_key_with_more_rights(limited):
    soon = datetime.now(UTC) + timedelta(days=1)
    client = limited(permission="write", resources=frozenset({"keys", "coupons"}), expires_at=soon)
    enough = {
        "permission": "write",
        "resources": ["coupons"],
        "expires_at": f"{soon - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
    }
    assert client.post("/keys", {"key": enough}).status_code == 201
    for param, more in {
        "key.permission": [{"permission": "read"}, {"permission": "read_write"}],
        "key.resources": [{"resources": ["all"]}, {"resources": ["coupons", "orders"]}],
        "key.expires_at": [{"expires_at": ""}, {"expires_at": "2099-01-01"}],
    }.items():
        for fields in more:
            response = client.post("/keys", {"key": enough | fields})
            assert reply(response) == refusal(INSUFFICIENT, param=param), fields
    # What is not supplied is not more than the key has, either.
    assert reply(client.post("/keys", {"key": {}})) == refusal(INSUFFICIENT, param="key.permission")


def test_key_cannot_give_itself_or_another_key_more_rights(app, limited, make_key):
    client = limited(permission="read_write", resources=frozenset({"keys", "coupons"}))
    mine, strong = client.key.key_id, make_key(permission="read")["id"]
    for key_id, change, param in [
        (mine, {"resources": ["all"]}, "key.resources"),
        (mine, {"resources": ["keys", "orders"]}, "key.resources"),
        (
            make_key(resources=["orders"])["id"],
            {"resources": ["orders", "customers"]},
            "key.resources",
        ),
    ]:
        before = stored(app, key_id).resources
        response = client.put(f"/keys/{key_id}", {"key": change})
        assert reply(response) == refusal(INSUFFICIENT, param=param)
        assert stored(app, key_id).resources == before
    # Rights that a key has can be kept and reduced.
    change = {"description": "Old", "resources": ["orders"]}
    assert client.put(f"/keys/{strong}", {"key": change}).status_code == 200
    assert client.delete(f"/keys/{strong}").status_code == 200


def test_write_key_cannot_make_itself_readable(limited):
    client = limited(permission="write")
    response = client.put(f"/keys/{client.key.key_id}", {"key": {"permission": "read_write"}})
    assert reply(response) == refusal(INSUFFICIENT, param="key.permission")


def test_expiring_key_cannot_extend_itself(limited):
    soon = datetime.now(UTC) + timedelta(days=1)
    client = limited(expires_at=soon)
    path = f"/keys/{client.key.key_id}"
    for expires_at in ("", "2099-01-01"):
        response = client.put(path, {"key": {"expires_at": expires_at}})
        assert reply(response) == refusal(INSUFFICIENT, param="key.expires_at")
    assert client.put(path, {"key": {"description": "x"}}).status_code == 200


@pytest.mark.parametrize(
    ("weak", "param"),
    [
        ({"permission": "write"}, "key.permission"),
        ({"resources": frozenset({"keys"})}, "key.resources"),
        ({"expires_at": datetime(2099, 1, 1, tzinfo=UTC)}, "key.expires_at"),
    ],
    ids=str,
)
@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_key_cannot_rotate_a_stronger_key_of_the_same_user(limited, role, weak, param):
    strong = limited("ann", role=role)
    client = limited("ann", role=role, **weak)
    response = client.post(f"/keys/{strong.key.key_id}/rotate")
    assert reply(response) == refusal(INSUFFICIENT, param=param)
    assert strong.get("/keys").status_code == 200
    assert client.post(f"/keys/{client.key.key_id}/rotate").status_code == 200


def test_read_key_cannot_change_any_key(limited):
    client = limited(permission="read")
    path = f"/keys/{client.key.key_id}"
    for response in (
        client.post("/keys", {"key": {}}),
        client.put(path, {"key": {"permission": "read_write"}}),
        client.post(f"{path}/rotate"),
        client.delete(path),
    ):
        assert codes(response) == REJECTED
    assert client.get(path).status_code == 200


def test_key_limited_to_coupons_cannot_manage_keys(limited):
    client = limited(resources=frozenset({"coupons"}))
    path = f"/keys/{client.key.key_id}"
    for response in (
        client.get("/keys"),
        client.get(path),
        client.post("/keys", {"key": {"resources": ["coupons"]}}),
        client.put(path, {"key": {"resources": ["all"]}}),
        client.post(f"{path}/rotate"),
        client.delete(path),
    ):
        assert codes(response) == REJECTED


def test_key_limited_to_keys_cannot_create_users(app, limited):
    client = limited(resources=frozenset({"keys"}))
    user = {"username": "erp", "role": "administrator", "resources": ["keys"]}
    response = client.post("/keys", {"key": user})
    assert reply(response) == refusal("shop_api_user_cannot_create_customer")
    with app.app_context():
        assert fetch(select(User.username).where(User.username == "erp")) == []


def test_secret_of_a_rotated_key_signs_legacy_requests(app, admin, make_key):
    rotated = admin.post(f"/keys/{make_key()['id']}/rotate").get_json()["key"]
    with app.app_context():
        revoke_key(0)  # changes nothing
    query = {name: rotated[name] for name in ("consumer_key", "consumer_secret")}
    response = Client(app).get("/wc-api/v3/coupons", query, base_url="https://localhost")
    assert response.status_code == 200


def test_other_machine_rejects_a_rotated_key_within_a_second(
    app, admin, make_key, make_app, tmp_path
):
    """Another machine has another instance folder, and so no notice of the revocation."""
    key = make_key()
    elsewhere = client_of(make_app(INSTANCE_PATH=str(tmp_path)), key)
    assert elsewhere.get("/coupons").status_code == 200
    admin.post(f"/keys/{key['id']}/rotate")
    time.sleep(MAX_AGE_SECONDS)
    assert codes(elsewhere.get("/coupons")) == REJECTED


def test_basic_header_of_a_new_key(anonymous, make_key):
    key = make_key()
    header = {"Authorization": basic(f"{key['consumer_key']}:{key['consumer_secret']}")}
    assert anonymous.get("/coupons", headers=header).status_code == 200
