"""Webhooks over HTTP: fields, errors and states (events 2)."""

import re
from base64 import b64encode
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from app.conversions.webhooks import secret_key
from app.db.read_pool import fetch
from app.models import IdempotencyRecord, Webhook
from app.schemas.webhooks import WebhookSecret
from tests.api_client import Client, codes, refusal, refused_params, reply
from tests.webhooks.deliveries import write
from tests.webhooks.receivers import LOOPBACK, Receiver

NEW = {"topics": ["coupon.*"], "delivery_url": "https://receiver.example/hooks"}


def create(client, **over):
    response = client.post("/webhooks", {"webhook": NEW | over})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["webhook"]


def test_secret_of_a_created_webhook_is_shown_once(admin):
    webhook = create(admin)
    secret = webhook.pop("secret")
    assert secret.startswith("whsec_")
    created_at = webhook["created_at"]
    assert webhook == {
        "id": webhook["id"],
        "name": f"Webhook created on {created_at[:10]}",
        "topics": ["coupon.*"],
        "delivery_url": "https://receiver.example/hooks",
        "status": "active",
        "disabled_reason": None,
        "user_id": admin.key.user_id,
        "created_at": created_at,
        "updated_at": created_at,
        "last_delivery_at": None,
        "failing_since": None,
    }
    assert reply(admin.get(f"/webhooks/{webhook['id']}")) == (200, {"webhook": webhook})
    assert reply(admin.get("/webhooks")) == (200, {"webhooks": [webhook]})
    assert reply(admin.get("/webhooks/count")) == (200, {"count": 1})


def test_given_secret_is_not_shown_and_stored_encrypted(admin, app):
    secret = "whsec_" + "A" * 32
    assert "secret" not in create(admin, secret=secret)
    with app.app_context():
        ((stored,),) = fetch(select(Webhook.secret_encrypted))
    assert secret not in stored


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"topics": []}, "shop_api_invalid_webhook_topic"),
        ({"topics": None}, "shop_api_invalid_webhook_topic"),
        ({"topics": ["coupon"]}, "shop_api_invalid_webhook_topic"),
        ({"topics": ["product.created"]}, "shop_api_invalid_webhook_topic"),
        ({"topics": ["*.created"]}, "shop_api_invalid_webhook_topic"),
        ({"topics": ["coupon.created", "nothing.*"]}, "shop_api_invalid_webhook_topic"),
        ({"delivery_url": ""}, "shop_api_invalid_webhook_delivery_url"),
        ({"delivery_url": None}, "shop_api_invalid_webhook_delivery_url"),
        ({"delivery_url": "ftp://receiver.example/"}, "shop_api_invalid_webhook_delivery_url"),
        (
            {"delivery_url": "https://u:p@receiver.example/"},
            "shop_api_invalid_webhook_delivery_url",
        ),
        ({"delivery_url": "https://xn--.example/é"}, "shop_api_invalid_webhook_delivery_url"),
    ],
)
def test_invalid_topic_or_url(admin, over, code):
    expected = (400, code)
    if over == {"delivery_url": "https://xn--.example/é"}:
        expected = (201,)  # the name can be looked up, and does not exist
    response = admin.post("/webhooks", {"webhook": NEW | over})
    assert (codes(response) if response.status_code >= 400 else (201,)) == expected


REFUSED_HOSTS = [
    ("127.0.0.1:5000", "127.0.0.1 is not globally reachable"),
    ("127.1:5000", "127.1 is not globally reachable"),
    ("2130706433", "2130706433 is not globally reachable"),
    ("10.20.0.7", "10.20.0.7 is not globally reachable"),
    ("169.254.169.254", "169.254.169.254 is not globally reachable"),
    ("[::1]:5000", "::1 is not globally reachable"),
    ("[::ffff:10.0.0.1]", "::ffff:10.0.0.1 is not globally reachable"),
    ("localhost:5000", "localhost is not globally reachable"),
    ("LOCALHOST.:5000", "localhost. is not globally reachable"),
    ("shop.localhost", "shop.localhost is not globally reachable"),
    ("receiver.example:25", "port 25 is not allowed"),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("host", "reason"), REFUSED_HOSTS)
@pytest.mark.parametrize("mount", ["", "/wc-api/v2", "/wc-api/v3"])
def test_host_that_is_always_refused(admin, mount, host, reason):
    """The setting is in the message, so that the first webhook does not fail silently."""
    legacy = {"topic": "coupon.updated", "delivery_url": NEW["delivery_url"]}
    new = legacy if mount else NEW
    refused = new | {"delivery_url": f"http://{host}/hooks"}
    expected = refusal(
        "shop_api_invalid_webhook_delivery_url",
        words=f"The delivery URL is not allowed: {reason}. Webhooks are only delivered to globally "
        "reachable addresses, and to the ports 80, 443, and 1024 and above. The setting "
        "SHOP_WEBHOOK_ALLOWED_NETWORKS allows other addresses.",
    )
    if mount:
        expected[1]["errors"][0]["code"] = "woocommerce_api_invalid_webhook_delivery_url"
    assert reply(admin.post(f"{mount}/webhooks", {"webhook": refused})) == expected
    webhook = admin.post(f"{mount}/webhooks", {"webhook": new}).get_json()["webhook"]
    path = f"{mount}/webhooks/{webhook['id']}"
    assert reply(admin.put(path, {"webhook": refused})) == expected
    assert admin.get(path).get_json()["webhook"]["delivery_url"] == NEW["delivery_url"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("networks", "host"),
    [
        ("127.0.0.0/8", "127.0.0.1:5000"),
        ("127.0.0.0/8", "localhost:5000"),
        ("::1", "localhost:5000"),
        ("10.20.0.0/16", "10.20.0.7"),
        ("", "8.8.8.8"),
        ("", "[2606:4700::1111]"),
        ("", "receiver.example"),
    ],
)
def test_host_that_may_be_allowed(client_with, networks, host):
    """Only names that always refer to the machine itself are known without a lookup."""
    shop = client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=networks)
    new = NEW | {"delivery_url": f"http://{host}/hooks"}
    assert shop.post("/webhooks", {"webhook": new}).status_code == 201


def test_webhook_whose_network_is_no_longer_allowed_can_be_updated(admin):
    webhook = admin.post("/webhooks", {"webhook": NEW}).get_json()["webhook"]
    url = "http://10.20.0.7/hooks"
    write(admin, Webhook, delivery_url=url)
    update = NEW | {"delivery_url": url, "status": "paused"}
    response = admin.put(f"/webhooks/{webhook['id']}", {"webhook": update})
    assert response.get_json()["webhook"]["status"] == "paused"


def test_unknown_topic_is_reported_with_the_known_topics(admin):
    response = admin.post("/webhooks", {"webhook": NEW | {"topics": ["orders.*"]}})
    (error,) = response.get_json()["errors"]
    assert error["param"] == "webhook.topics"
    start = "Unknown topics: orders.*. Known topics: *, campaign.*, campaign.created, "
    assert error["message"].startswith(start)
    assert ", order.*, order.created, " in error["message"]


@pytest.mark.parametrize(
    ("over", "param"),
    [
        ({"secret": "whsec_short"}, "webhook.secret"),
        ({"secret": 5}, "webhook.secret"),
        ({"topics": "coupon.*"}, "webhook.topics"),
        ({"topics": [1]}, "webhook.topics"),
        ({"topics": ["*"] * 101}, "webhook.topics"),
        ({"delivery_url": 5}, "webhook.delivery_url"),
        ({"status": "broken"}, "webhook.status"),
        ({"name": "x" * 1001}, "webhook.name"),
    ],
)
def test_value_that_cannot_be_interpreted(admin, over, param):
    assert refused_params(admin.post("/webhooks", {"webhook": NEW | over})) == [param]


@pytest.mark.parametrize("body", [None, {}, {"webhook": None}, {"topics": ["*"]}])
def test_missing_wrapper(admin, body):
    expected = refusal("shop_api_missing_webhook_data")
    assert reply(admin.post("/webhooks", body)) == expected
    assert reply(admin.put("/webhooks/1", body)) == expected


def test_unknown_webhook(admin):
    expected = refusal("shop_api_invalid_webhook_id")
    assert reply(admin.get("/webhooks/999")) == expected
    assert reply(admin.get(f"/webhooks/{10**30}")) == expected
    assert reply(admin.put("/webhooks/999", {"webhook": {}})) == expected
    assert reply(admin.delete("/webhooks/999")) == expected
    assert reply(admin.get("/webhooks/999/deliveries")) == expected
    for action in ("ping", "rotate-secret"):
        assert reply(admin.post(f"/webhooks/999/{action}")) == expected
    assert reply(admin.post("/webhooks/999/replay", {"after": 0})) == expected
    webhook = create(admin)
    for path in ("deliveries/999", f"deliveries/{10**30}"):
        assert reply(admin.get(f"/webhooks/{webhook['id']}/{path}")) == refusal(
            "shop_api_invalid_webhook_delivery_id"
        )


def test_update_changes_only_what_is_given(admin):
    webhook = create(admin, name="Before", status="paused")
    webhook.pop("secret")
    path = f"/webhooks/{webhook['id']}"
    changed = admin.put(path, {"webhook": {"name": "After"}}).get_json()["webhook"]
    assert changed == webhook | {"name": "After", "updated_at": changed["updated_at"]}
    most = {"topics": ["*"] * 100, "status": "active"}  # one more is refused, see above
    changed = admin.put(path, {"webhook": most}).get_json()
    assert changed["webhook"]["topics"] == ["*"]
    assert changed["webhook"]["status"] == "active"
    response = admin.put(path, {"webhook": {"topics": ["nothing"]}})
    assert codes(response) == (400, "shop_api_invalid_webhook_topic")


def test_disabled_webhook_has_a_reason_until_it_is_active(admin):
    path = f"/webhooks/{create(admin)['id']}"
    shown = admin.put(path, {"webhook": {"status": "disabled"}}).get_json()["webhook"]
    assert (shown["status"], shown["disabled_reason"]) == ("disabled", "Disabled by a user.")
    assert reply(admin.post(f"{path}/replay", {"after": 0})) == refusal(
        "shop_api_webhook_not_active", status="disabled"
    )
    shown = admin.put(path, {"webhook": {"status": "active"}}).get_json()["webhook"]
    assert (shown["status"], shown["disabled_reason"]) == ("active", None)


def test_precondition_protects_an_update(admin):
    path = f"/webhooks/{create(admin)['id']}"
    tag = admin.get(path).headers["ETag"]
    headers = {"If-Match": tag}
    assert admin.put(path, {"webhook": {"name": "One"}}, headers=headers).status_code == 200
    response = admin.put(path, {"webhook": {"name": "Two"}}, headers=headers)
    assert codes(response) == (412, "shop_api_precondition_failed")


def test_deleted_webhook_is_gone(admin):
    path = f"/webhooks/{create(admin)['id']}"
    assert reply(admin.delete(path)) == (200, {"message": "Permanently deleted webhook"})
    assert reply(admin.get(path)) == refusal("shop_api_invalid_webhook_id")


def test_list_is_filtered_and_paginated(admin):
    made = [create(admin, status=status)["id"] for status in ("active", "paused", "active")]

    def ids(**query):
        return [each["id"] for each in admin.get("/webhooks", query).get_json()["webhooks"]]

    assert ids() == made[::-1]
    assert ids(**{"filter[status]": "paused"}) == [made[1]]
    assert ids(**{"filter[limit]": "1", "page": "2"}) == [made[1]]
    assert ids(**{"filter[order]": "asc"}) == made
    assert admin.get("/webhooks/count", {"filter[status]": "active"}).get_json() == {"count": 2}


@pytest.mark.parametrize("after", [None, "x", -1, True, 2**63, 1e30, 1.5, [1]])
def test_replay_after_an_invalid_id(admin, after):
    path = f"/webhooks/{create(admin)['id']}/replay"
    assert refused_params(admin.post(path, {"after": after})) == ["after"]


@pytest.mark.parametrize("after", [0, "0", 0.0])
def test_replay_after_an_id(admin, after):
    path = f"/webhooks/{create(admin)['id']}/replay"
    assert admin.post(path, {"after": after}).get_json()["replay"]["after"] == 0


def test_ping_returns_what_the_receiver_responds(client_with):
    shop = client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK)
    receiver = Receiver(lambda _: 202)
    try:
        webhook = create(shop, delivery_url=receiver.url, status="paused")
        ping = shop.post(f"/webhooks/{webhook['id']}/ping").get_json()["ping"]
        (received,) = receiver.wait(1)
    finally:
        receiver.close()
    assert (ping["status"], ping["error"]) == (202, None)
    assert received.verify(webhook["secret"])["data"] == {"webhook_id": webhook["id"]}
    assert received.json["type"] == "ping"


def test_ping_of_a_webhook_with_an_unreadable_secret_disables_it_once(admin):
    webhook = create(admin)
    path = f"/webhooks/{webhook['id']}"
    write(admin, Webhook, secret_encrypted="encrypted with another SECRET_KEY")
    for _ in range(3):
        assert reply(admin.post(f"{path}/ping")) == refusal(
            "shop_api_webhook_not_active", status="disabled"
        )
    shown = admin.get(path).get_json()["webhook"]
    assert (shown["status"], "SECRET_KEY" in shown["disabled_reason"]) == ("disabled", True)
    events = admin.get("/events", {"filter[type]": "webhook.disabled"}).get_json()["events"]
    assert [event["resource_id"] for event in events] == [webhook["id"]]


def test_repeated_request_creates_one_webhook_and_stores_no_secret(admin, app):
    headers = {"Idempotency-Key": "webhook-1"}
    sent = [admin.post("/webhooks", {"webhook": NEW}, headers=headers) for _ in range(2)]
    first, second = (response.get_json()["webhook"] for response in sent)
    assert first == second
    assert sent[1].headers["Idempotent-Replayed"] == "true"
    assert admin.get("/webhooks/count").get_json() == {"count": 1}
    with app.app_context():
        ((stored,),) = fetch(select(IdempotencyRecord.response_body))
    assert first["secret"].encode() not in stored
    assert b"webhook" not in stored


@pytest.fixture
def limited(admin, app):
    """Return a function: a client with a key that is limited to resources."""

    def make(*resources, permission="read_write"):
        body = {"key": {"resources": list(resources), "permission": permission}}
        key = admin.post("/keys", body).get_json()["key"]
        return Client(app, SimpleNamespace(**key))

    return make


@pytest.mark.parametrize(
    ("resources", "topics", "is_allowed"),
    [
        (["webhooks"], ["coupon.created"], False),
        (["webhooks"], ["*"], False),
        (["webhooks", "coupons"], ["coupon.*", "coupon_batch.created"], True),
        (["webhooks", "coupons"], ["coupon.*", "order.created"], False),
        (["webhooks", "coupons", "customers", "orders"], ["*"], False),
        (["webhooks", "orders"], ["order.*", "order_note.created"], True),
        (["webhooks", "customers"], ["customer.deleted"], True),
        (["webhooks", "customers"], ["import.completed"], False),
        (["webhooks", "events"], ["*"], True),
        (["all"], ["*"], True),
    ],
)
def test_webhook_sends_only_what_its_key_may_read(limited, resources, topics, is_allowed):
    response = limited(*resources).post("/webhooks", {"webhook": NEW | {"topics": topics}})
    if is_allowed:
        assert response.status_code == 201
    else:
        assert reply(response) == refusal("shop_api_insufficient_key_rights", "webhook.topics")


def test_limited_key_changes_no_webhook_whose_events_it_may_not_read(admin, limited):
    client = limited("webhooks", "coupons")
    path = f"/webhooks/{create(admin, topics=['*'])['id']}"
    expected = refusal("shop_api_insufficient_key_rights", "webhook.topics")
    for change in ({"delivery_url": "https://thief.example/"}, {"status": "active"}, {}):
        assert reply(client.put(path, {"webhook": change})) == expected
    assert reply(client.post(f"{path}/rotate-secret")) == expected
    assert client.put(path, {"webhook": {"topics": ["coupon.*"]}}).status_code == 200
    assert client.put(path, {"webhook": {"status": "paused"}}).status_code == 200


def test_key_without_read_permission_creates_no_webhook(limited):
    response = limited("all", permission="write").post("/webhooks", {"webhook": NEW})
    assert reply(response) == refusal("shop_api_insufficient_key_rights", "webhook.topics")


def test_limited_key_does_not_read_the_deliveries_of_a_legacy_webhook(admin, limited):
    new = {"topic": "order.created", "delivery_url": NEW["delivery_url"]}
    webhook = admin.post("/wc-api/v3/webhooks", {"webhook": new}).get_json()["webhook"]
    path = f"/wc-api/v3/webhooks/{webhook['id']}/deliveries"
    response = limited("webhooks", "coupons").get(path)
    assert codes(response) == (401, "woocommerce_api_user_cannot_read_webhook")
    assert limited("webhooks", "orders").get(path).status_code == 200


@pytest.mark.parametrize("size", range(20, 70))
def test_the_document_allows_exactly_the_secrets_that_are_accepted(size):
    encoded = b64encode(bytes(size)).decode()
    pattern = WebhookSecret.openapi["pattern"]
    for secret in f"whsec_{encoded}", f"whsec_{encoded}=", f"whsec_{encoded.rstrip('=')}":
        assert bool(re.fullmatch(pattern, secret)) == (secret_key(secret) is not None)
