"""No API key obtains more rights than it has (decisions 2)."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from test_auth import basic

from app.auth.principal_cache import MAX_AGE_SECONDS
from app.db.read_pool import fetch
from app.models import User
from app.services.api_keys import revoke_key
from tests.api_client import Client, codes, refusal, reply
from tests.api_key_calls import REJECTED, client_of, limited, make_key, stored

pytestmark = pytest.mark.one_database

__all__ = ["limited", "make_key"]  # fixtures

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
