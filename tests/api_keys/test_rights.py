"""No API key obtains more rights than it has (decisions 2)."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app.auth.api_keys import MAX_AGE_SECONDS
from app.db.read_pool import fetch
from app.models import User
from app.services.api_keys.writes import revoke_key
from tests.api_client import Client, codes, refusal, reply
from tests.api_keys.calls import REJECTED, client_of, stored
from tests.auth.test_auth import basic

INSUFFICIENT = "shop_api_insufficient_key_rights"


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


FIRST = {"permission": "read_write", "resources": frozenset({"keys"})}
LATER = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("actor", "held", "change", "param"),
    [
        (FIRST, {}, {"permission": "read_write"}, "key.resources"),
        (FIRST, {"expires_at": "2099-01-01"}, {"expires_at": ""}, "key.resources"),
        (FIRST, {"expires_at": "2099-01-01"}, {"expires_at": "2109-01-01"}, "key.resources"),
        (FIRST, {"resources": ["orders"]}, {"resources": ["orders", "keys"]}, "key.resources"),
        (FIRST, {"resources": ["orders"]}, {"permission": "read_write"}, "key.resources"),
        ({"permission": "write"}, {}, {"permission": "write"}, None),
        ({"permission": "write"}, {}, {"permission": "read_write"}, "key.permission"),
        (
            {"permission": "write"},
            {"resources": ["orders"]},
            {"resources": ["all"]},
            "key.permission",
        ),
        (
            {"permission": "write"},
            {"expires_at": "2099-01-01"},
            {"expires_at": ""},
            "key.permission",
        ),
        ({"expires_at": LATER}, {}, {"permission": "read_write"}, "key.expires_at"),
        (
            {"expires_at": LATER},
            {"resources": ["orders"]},
            {"resources": ["all"]},
            "key.expires_at",
        ),
        # The whole key is within the rights of the actor.
        (FIRST, {}, {"permission": "read_write", "resources": ["keys"]}, None),
        (
            {"expires_at": LATER},
            {},
            {"permission": "read_write", "expires_at": "2098-01-01"},
            None,
        ),
        # Nothing grows.
        (FIRST, {}, {"resources": ["orders"], "description": "x"}, None),
        (FIRST, {"permission": "read_write"}, {"permission": "write"}, None),
        (FIRST, {}, {"expires_at": "2098-01-01"}, None),
    ],
    ids=str,
)
def test_rights_of_two_keys_cannot_be_combined(app, limited, make_key, actor, held, change, param):
    """If a right grows, the whole key must be within the rights of the actor."""
    client, key = limited(**actor), make_key(**held)
    before = stored(app, key["id"])
    response = client.put(f"/keys/{key['id']}", {"key": change})
    if param is None:
        assert response.status_code == 200
    else:
        assert reply(response) == refusal(INSUFFICIENT, param=param)
        assert stored(app, key["id"]) == before


def test_rights_are_those_that_the_acting_key_has_at_that_moment(
    app, admin, limited, make_key, make_app, tmp_path
):
    """Another machine, which still caches the former rights, restricts nothing less."""
    elsewhere = make_app(INSTANCE_PATH=str(tmp_path))
    client, key = limited(), make_key()
    remote = Client(elsewhere, client.key)
    assert remote.get("/coupons").status_code == 200  # caches the rights
    restriction = {"key": {"resources": ["keys"]}}
    assert admin.put(f"/keys/{client.key.key_id}", restriction).status_code == 200
    expected = refusal(INSUFFICIENT, param="key.resources")
    assert reply(remote.post("/keys", {"key": {}})) == expected
    change = {"key": {"permission": "read_write"}}
    assert reply(remote.put(f"/keys/{key['id']}", change)) == expected
    assert reply(remote.post(f"/keys/{key['id']}/rotate")) == expected
    assert admin.delete(f"/keys/{client.key.key_id}").status_code == 200
    assert codes(remote.post("/keys", {"key": {"resources": ["keys"]}})) == REJECTED


def once(client, path, body):
    return client.post(path, body, headers={"Idempotency-Key": "once"})


def test_repeated_creation_returns_no_secret_to_a_key_with_fewer_rights(admin, make_key, app):
    acting = make_key(permission="read_write")
    client, path = client_of(app, acting), f"/keys/{acting['id']}"
    body = {"key": {"permission": "read_write"}}
    created = once(client, "/keys", body)
    assert created.status_code == 201
    change = {"resources": ["keys"], "expires_at": "2099-01-01"}
    assert admin.put(path, {"key": change}).status_code == 200
    assert reply(once(client, "/keys", body)) == refusal(INSUFFICIENT, param="key.resources")
    assert admin.put(path, {"key": {"resources": ["all"]}}).status_code == 200
    assert reply(once(client, "/keys", body)) == refusal(INSUFFICIENT, param="key.expires_at")
    assert admin.put(path, {"key": {"expires_at": ""}}).status_code == 200
    repeated = once(client, "/keys", body)
    assert reply(repeated) == reply(created)
    assert repeated.headers["Idempotent-Replayed"] == "true"
    assert len(client.get("/keys").get_json()["keys"]) == 3


def test_repeated_creation_returns_no_secret_of_a_key_that_got_more_rights(admin, make_key, app):
    client = client_of(app, make_key(permission="read_write", resources=["keys", "coupons"]))
    body = {"key": {"permission": "read", "resources": ["coupons"]}}
    created = once(client, "/keys", body)
    path = f"/keys/{created.get_json()['key']['id']}"
    assert admin.put(path, {"key": {"resources": ["all"]}}).status_code == 200
    assert reply(once(client, "/keys", body)) == refusal(INSUFFICIENT, param="key.resources")
    assert admin.delete(path).status_code == 200
    assert reply(once(client, "/keys", body)) == reply(created)  # a secret without rights


def test_repeated_creation_of_a_webhook_requires_the_right_to_create_it(admin, make_key, app):
    acting = make_key(permission="read_write", resources=["webhooks", "orders"])
    client, path = client_of(app, acting), f"/keys/{acting['id']}"
    body = {"webhook": {"topics": ["order.*"], "delivery_url": "https://receiver.example/"}}
    created = once(client, "/webhooks", body)
    assert created.status_code == 201
    assert admin.put(path, {"key": {"resources": ["webhooks"]}}).status_code == 200
    refused = once(client, "/webhooks", body)
    assert codes(refused) == (401, INSUFFICIENT)
    assert admin.put(path, {"key": {"resources": ["all"]}}).status_code == 200
    assert reply(once(client, "/webhooks", body)) == reply(created)


def test_repeated_rotation_returns_no_secret_to_a_key_with_fewer_rights(admin, make_key, limited):
    client, path = limited(), f"/keys/{make_key()['id']}/rotate"
    assert once(client, path, None).status_code == 200
    restriction = {"key": {"resources": ["keys"]}}
    assert admin.put(f"/keys/{client.key.key_id}", restriction).status_code == 200
    assert reply(once(client, path, None)) == refusal(INSUFFICIENT, param="key.resources")
