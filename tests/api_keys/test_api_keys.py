"""API keys over HTTP: create, list, update, rotate and revoke (decisions 2)."""

import re

import pytest
from sqlalchemy import select

from app.auth.principals import Permission
from app.db.read_pool import fetch
from app.db.session import db
from app.models import ApiKey, User
from app.schemas.api_keys import PERMISSIONS
from tests.api_client import codes, refusal, refused_params, reply
from tests.api_keys.calls import REJECTED, client_of, reason_of, stored

NEVER_USED = {"expires_at": None, "last_used_at": None}


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


def test_create_with_an_invalid_username(admin):
    response = admin.post("/keys", {"key": {"username": "a:b", "role": "customer"}})
    assert reply(response) == refusal("registration-error-invalid-username")


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("body", [None, {}, {"key": None}, []], ids=str)
def test_body_without_a_key(admin, method, body):
    path = f"/keys/{admin.key.key_id}" if method == "PUT" else "/keys"
    assert reply(admin.request(method, path, json=body)) == refusal("shop_api_missing_key_data")


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
    changes = {"description": "New", "id": 1, "created_at": "2020-01-01"}
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


@pytest.mark.parametrize("kind", ["keys", "webhooks"])
def test_rotating_again_with_the_same_idempotency_key(app, admin, make_key, kind):
    path = f"/keys/{make_key()['id']}/rotate"
    if kind == "webhooks":
        webhook = {"name": "ERP", "topics": ["*"], "delivery_url": "https://erp.example/hooks"}
        number = admin.post("/webhooks", {"webhook": webhook}).json["webhook"]["id"]
        path = f"/webhooks/{number}/rotate-secret"
    first, again, other = (
        admin.post(path, headers={"Idempotency-Key": name}) for name in ("a", "a", "b")
    )
    assert (first.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert first.json == again.json
    assert other.json != first.json


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
