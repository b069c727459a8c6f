"""Events of keys: what the feed shows of them, and what webhooks do not deliver (people 1)."""

import json

import pytest

from app.conversions.webhooks import wants
from app.services.api_keys.writes import revoke_key
from tests.api_client import reply

SHOWN = {"id", "user_id", "permission", "resources", "expires_at"}


def events(client):
    query = {"resource": "key", "fields": "type,resource_id,data,changes,actor"}
    response = client.get("/events", query)
    assert response.status_code == 200, response.get_json()
    return response.get_json()["events"]


def test_each_write_of_a_key_is_an_event(app, admin):
    given = {"permission": "read", "description": "secret plans", "resources": ["events"]}
    key = admin.post("/keys", {"key": given}).get_json()["key"]
    path = f"/keys/{key['id']}"
    admin.put(path, {"key": {"permission": "read_write", "resources": ["events", "orders"]}})
    admin.put(path, {"key": {"description": "other plans"}})
    rotated = admin.post(f"{path}/rotate").get_json()["key"]
    assert admin.delete(path).status_code == 200
    found = events(admin)
    names = ["created", "updated", "updated", "rotated", "deleted"]
    assert [each["type"] for each in found] == [f"key.{name}" for name in names]
    assert {each["resource_id"] for each in found} == {key["id"]}
    assert all(each["actor"]["user_id"] == admin.key.user_id for each in found)
    assert [each["data"]["key"].keys() for each in found] == [SHOWN] * 4 + [{"id"}]
    assert found[0]["data"]["key"] == {name: key[name] for name in SHOWN}
    assert [each["changes"] for each in found] == [
        None,
        {
            "before": {"permission": "read", "resources": ["events"]},
            "after": {"permission": "read_write", "resources": ["events", "orders"]},
        },
        None,
        None,
        None,
    ]
    written = json.dumps(found)
    for secret in ("plans", key["consumer_secret"], rotated["consumer_key"], key["truncated_key"]):
        assert secret not in written
    event = admin.get("/events", {"type": "key.updated"}).get_json()["events"][0]["id"]
    undo = admin.get(f"/events/{event}/undo").get_json()["undo"]
    assert [each["code"] for each in undo["reasons"]] == ["not_undoable"]


def test_commands_write_events_of_keys(app, admin, client_for):
    other = client_for(login="bob")
    with app.app_context():
        assert revoke_key(other.key.key_id)
        assert not revoke_key(other.key.key_id)
    found = [each for each in events(admin) if each["resource_id"] == other.key.key_id]
    assert [(each["type"], each["actor"]["origin"]) for each in found][-1] == (
        "key.deleted", "command"
    )  # fmt: skip
    assert len(found) <= 2


@pytest.mark.both_databases
@pytest.mark.parametrize("way", ["deletion", "erasure"])
def test_keys_that_go_with_their_account_are_events(admin, client_for, way):
    other = client_for(login="bob")
    user_id = other.key.user_id
    if way == "deletion":
        response = admin.delete(f"/customers/{user_id}")
    else:
        response = admin.post("/persons/erase", {"person": {"customer_id": user_id}})
    assert response.status_code == 200, response.get_json()
    deleted = [each for each in events(admin) if each["type"] == "key.deleted"]
    assert [(each["resource_id"], each["data"]) for each in deleted] == [
        (other.key.key_id, {"key": {"id": other.key.key_id}, "permanent": True})
    ]
    assert deleted[0]["actor"]["user_id"] == admin.key.user_id
    assert other.get("/coupons").status_code == 401


def test_webhooks_do_not_deliver_events_of_keys(app, admin):
    for topic in ("key.created", "key.*"):
        hook = {"topics": [topic], "delivery_url": "https://1.1.1.1/"}
        status, body = reply(admin.post("/webhooks", {"webhook": hook}))
        assert (status, body["errors"][0]["code"]) == (400, "shop_api_invalid_webhook_topic")
    assert not wants(["*"], "key.created")
    assert wants(["*"], "keyring.created")
