"""Webhooks of the legacy API and their deliveries (events 3)."""

import re
import tracemalloc
from base64 import b64encode
from pathlib import Path

import pytest

from app.db.session import run_in_transaction
from app.services.events.outbox import NewEvent, record
from app.worker.loop import CycleInput, run_cycle
from tests.api_client import codes, reply
from tests.webhooks.receivers import LOOPBACK, Receiver, running_worker, until

pytestmark = pytest.mark.one_database

MOUNTS = ["/wc-api/v2", "/wc-api/v3"]
NEW = {"topic": "coupon.updated", "delivery_url": "https://receiver.example/hooks"}


@pytest.fixture
def shop(client_with):
    return client_with(
        SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK, SHOP_PUBLIC_URL="https://shop.example/"
    )


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.mark.parametrize("mount", MOUNTS)
def test_webhook_is_created_read_updated_and_deleted(admin, mount):
    response = admin.post(f"{mount}/webhooks", {"webhook": NEW})
    webhook = response.get_json()["webhook"]
    assert response.status_code == 201
    assert webhook == {
        "id": webhook["id"],
        "name": f"Webhook created on {webhook['created_at'][:10]}",
        "status": "active",
        "topic": "coupon.updated",
        "resource": "coupon",
        "event": "updated",
        "hooks": ["woocommerce_process_shop_coupon_meta", "woocommerce_update_coupon"],
        "delivery_url": "https://receiver.example/hooks",
        "created_at": webhook["created_at"],
        "updated_at": webhook["created_at"],
    }
    path = f"{mount}/webhooks/{webhook['id']}"
    assert reply(admin.get(path)) == (200, {"webhook": webhook})
    assert reply(admin.get(f"{mount}/webhooks")) == (200, {"webhooks": [webhook]})
    assert reply(admin.get(f"{mount}/webhooks/count")) == (200, {"count": 1})
    assert admin.get(path, {"fields": "id,topic"}).get_json() == {
        "webhook": {"id": webhook["id"], "topic": "coupon.updated"}
    }
    for method in ("PUT", "POST", "PATCH"):
        changed = {"webhook": {"status": "paused", "topic": "order.created"}}
        response = admin.request(method, path, json=changed)
        assert response.get_json()["webhook"]["hooks"] == [
            "woocommerce_process_shop_order_meta",
            "woocommerce_new_order",
        ]
    assert reply(admin.delete(path)) == (200, {"message": "Permanently deleted webhook"})
    assert codes(admin.get(path)) == (404, "woocommerce_api_invalid_webhook_id")


@pytest.mark.parametrize(
    ("topic", "hooks"),
    [
        ("customer.created", ["user_register", "woocommerce_created_customer", "woocommerce_new_customer"]),
        ("customer.updated", ["profile_update", "woocommerce_update_customer"]),
        ("customer.deleted", ["delete_user"]),
        ("customer.restored", []),
        ("order.deleted", ["wp_trash_post"]),
        ("coupon.restored", ["untrashed_post"]),
        ("product.updated", []),
        ("action.woocommerce_add_to_cart", ["woocommerce_add_to_cart"]),
    ],
)  # fmt: skip
def test_topic_and_hooks(admin, topic, hooks):
    response = admin.post("/wc-api/v3/webhooks", {"webhook": NEW | {"topic": topic}})
    webhook = response.get_json()["webhook"]
    assert (webhook["topic"], webhook["hooks"]) == (topic, hooks)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing_webhook_data"),
        ({"webhook": {"delivery_url": NEW["delivery_url"]}}, "invalid_webhook_topic"),
        ({"webhook": NEW | {"topic": "coupon.redeemed"}}, "invalid_webhook_topic"),
        ({"webhook": NEW | {"topic": "*"}}, "invalid_webhook_topic"),
        ({"webhook": {"topic": NEW["topic"]}}, "invalid_webhook_delivery_url"),
        ({"webhook": NEW | {"delivery_url": "receiver"}}, "invalid_webhook_delivery_url"),
    ],
)
def test_rejected_webhook(admin, body, code):
    response = admin.post("/wc-api/v3/webhooks", body)
    assert codes(response) == (400, f"woocommerce_api_{code}")


def test_topic_in_any_letter_case(admin):
    for topic, stored in (
        ("Coupon.Updated", "coupon.updated"),
        ("action.Some_Hook", "action.Some_Hook"),
    ):
        response = admin.post("/wc-api/v3/webhooks", {"webhook": NEW | {"topic": topic}})
        assert response.get_json()["webhook"]["topic"] == stored


def test_empty_values_of_an_update_change_nothing(admin):
    webhook = admin.post("/wc-api/v3/webhooks", {"webhook": NEW | {"status": ""}}).get_json()
    path = f"/wc-api/v3/webhooks/{webhook['webhook']['id']}"
    empty = dict.fromkeys(("name", "topic", "delivery_url", "secret", "status"), "")
    changed = admin.put(path, {"webhook": empty}).get_json()
    assert changed["webhook"] | {"updated_at": ""} == webhook["webhook"] | {"updated_at": ""}


def test_list_by_status(admin):
    made = [
        admin.post("/wc-api/v2/webhooks", {"webhook": NEW | {"status": status}}).get_json()
        for status in ("active", "paused", "disabled")
    ]
    ids = [each["webhook"]["id"] for each in made]
    for query, expected in (
        ({"status": "paused"}, [ids[1]]),
        ({"filter[status]": "disabled"}, [ids[2]]),
        ({"filter[status]": "active", "status": "paused"}, [ids[1]]),
        ({"status": "all"}, ids[::-1]),
        ({"filter[status]": "any"}, ids[::-1]),
    ):
        shown = admin.get("/wc-api/v2/webhooks", query).get_json()["webhooks"]
        assert [each["id"] for each in shown] == expected
        number = admin.get("/wc-api/v2/webhooks/count", query).get_json()
        assert number == {"count": len(expected)}


def test_creation_without_the_capability(client_for):
    response = client_for("customer").post("/wc-api/v3/webhooks", {"webhook": NEW})
    assert codes(response) == (401, "woocommerce_api_user_cannot_create_webhooks")


def test_unknown_delivery(admin):
    webhook = admin.post("/wc-api/v3/webhooks", {"webhook": NEW}).get_json()["webhook"]
    response = admin.get(f"/wc-api/v3/webhooks/{webhook['id']}/deliveries/999999")
    assert codes(response) == (404, "woocommerce_api_invalid_webhook_delivery_id")


def test_native_webhook_is_not_shown(admin):
    native = {"topics": ["*"], "delivery_url": NEW["delivery_url"]}
    webhook = admin.post("/webhooks", {"webhook": native}).get_json()["webhook"]
    assert admin.get("/wc-api/v3/webhooks").get_json() == {"webhooks": []}
    response = admin.get(f"/wc-api/v3/webhooks/{webhook['id']}")
    assert codes(response) == (404, "woocommerce_api_invalid_webhook_id")


@pytest.mark.slow
def test_all_deliveries_are_streamed(admin):
    """Their bodies are read in batches: collecting them all takes 17 MB here."""
    webhook = admin.post("/wc-api/v3/webhooks", {"webhook": NEW}).get_json()["webhook"]
    path = f"/wc-api/v3/webhooks/{webhook['id']}/deliveries"
    with admin.app.app_context():
        for batch in range(4):
            ids = range(batch * 500, (batch + 1) * 500)
            coupons = [(id_, {"coupon": {"id": id_, "description": "x" * 2500}}) for id_ in ids]
            events = [NewEvent("coupon.updated", id_, data) for id_, data in coupons]
            run_in_transaction(lambda session, events=events: record(session, None, events))
            run_cycle("worker", CycleInput([], [], {}))
    pages = [
        delivery
        for page in range(1, 6)
        for delivery in admin.get(path, {"filter[limit]": 500, "page": page}).get_json()[
            "webhook_deliveries"
        ]
    ]
    assert len(pages) == 2001  # and the first ping
    pair = f"{admin.key.consumer_key}:{admin.key.consumer_secret}".encode()
    headers = {"Authorization": f"Basic {b64encode(pair).decode()}"}
    tracemalloc.start()
    response = admin.http.get(path, query_string={"filter[limit]": -1}, headers=headers)
    size = sum(map(len, response.iter_encoded()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (response.status_code, response.headers["X-WC-Total"]) == (200, "2001")
    assert size > 5_000_000
    assert peak < 12_000_000
    assert admin.get(path, {"filter[limit]": -1}).get_json() == {"webhook_deliveries": pages}


def publish(shop, event_type, id_, data):
    with shop.app.app_context():
        run_in_transaction(lambda session: record(session, None, [NewEvent(event_type, id_, data)]))


def test_receiver_gets_a_ping_and_deliveries_in_the_legacy_form(shop, receiver):
    new = NEW | {"delivery_url": receiver.url, "secret": "any text"}
    path = f"/wc-api/v3/webhooks/{shop.post('/wc-api/v3/webhooks', {'webhook': new}).get_json()['webhook']['id']}"
    webhook_id = path.rpartition("/")[2]
    with running_worker(shop.app):
        (ping,) = receiver.wait(1)
        publish(shop, "coupon.updated", 12, {"coupon": {"id": 12, "code": "summer"}})
        publish(shop, "coupon.created", 13, {"coupon": {"id": 13}})  # another topic
        _, received = receiver.wait(2)
        shown = until(
            lambda: [
                each
                for each in shop.get(f"{path}/deliveries").get_json()["webhook_deliveries"]
                if each["response_code"]
            ],
            "a delivery",
        )
    assert ping.body == f"webhook_id={webhook_id}".encode()
    assert ping.headers["content-type"] == "application/x-www-form-urlencoded"
    assert received.json == {"coupon": {"id": 12, "code": "summer"}}
    assert received.has_legacy_signature("any text")
    (delivery,) = shown
    own = {name: value for name, value in received.headers.items() if name.startswith("x-wc-")}
    own.pop("x-wc-webhook-signature")
    assert own == {
        "x-wc-webhook-source": "https://shop.example/",
        "x-wc-webhook-topic": "coupon.updated",
        "x-wc-webhook-resource": "coupon",
        "x-wc-webhook-event": "updated",
        "x-wc-webhook-id": webhook_id,
        "x-wc-webhook-delivery-id": str(delivery["id"]),
    }
    assert {
        name: value
        for name, value in delivery.items()
        if name not in {"id", "duration", "request_headers", "response_headers", "created_at"}
    } == {
        "summary": "HTTP 204 No Content: ",
        "request_method": "POST",
        "request_url": receiver.url,
        "request_body": '{"coupon":{"id":12,"code":"summer"}}',
        "response_code": "204",
        "response_message": "No Content",
        "response_body": "",
    }
    assert delivery["request_headers"]["X-WC-Webhook-Topic"] == "coupon.updated"
    assert delivery["request_headers"]["User-Agent"] == received.headers["user-agent"]
    assert delivery["response_headers"]["content-length"] == "0"
    assert shop.get(f"{path}/deliveries/{delivery['id']}").get_json() == {
        "webhook_delivery": delivery
    }


def documented():
    """Return the function that docs/legacy.md shows to receivers."""
    text = (Path(__file__).parents[4] / "docs" / "legacy.md").read_text()
    (code,) = re.findall(r"^```python\n(.+?)^```$", text, re.DOTALL | re.MULTILINE)
    names = {}
    exec(code, names)
    return names["is_authentic"]


def test_documented_receiver_verifies_the_default_secret(shop, receiver):
    new = {"topic": "coupon.created", "delivery_url": receiver.url}
    assert shop.post("/wc-api/v3/webhooks", {"webhook": new}).status_code == 201
    assert shop.post("/coupons", {"coupon": {"code": "größe"}}).status_code == 201
    with running_worker(shop.app):
        _, received = receiver.wait(2)
    is_authentic, signature = documented(), received.headers["x-wc-webhook-signature"]
    assert is_authentic(shop.key.consumer_secret, received.body, signature)
    assert not is_authentic("another secret", received.body, signature)
    assert not is_authentic(shop.key.consumer_secret, received.body + b" ", signature)
    assert not is_authentic(shop.key.consumer_secret, received.body, "größe")


@pytest.mark.parametrize("status", [301, 302])
def test_deletion_and_a_redirect(shop, receiver, status):
    receiver.respond = lambda _: status
    new = {"topic": "customer.deleted", "delivery_url": receiver.url, "status": "paused"}
    webhook = shop.post("/wc-api/v2/webhooks", {"webhook": new}).get_json()["webhook"]
    path = f"/wc-api/v2/webhooks/{webhook['id']}"
    with running_worker(shop.app):
        shop.put(path, {"webhook": {"status": "active"}})
        receiver.wait(1)  # the ping
        publish(shop, "customer.deleted", 5, {"customer": {"id": 5}, "permanent": True})
        _, received = receiver.wait(2)
        until(
            lambda: [
                each
                for each in shop.get(f"/webhooks/{webhook['id']}/deliveries").get_json()[
                    "webhook_deliveries"
                ]
                if each["state"] == "delivered"
            ],
            "the delivery",
        )
    assert received.body == b'{"id":5}'
    assert received.has_legacy_signature(shop.key.consumer_secret)


def test_customer_has_the_last_update_of_version_3(shop, receiver):
    new = {"topic": "customer.updated", "delivery_url": receiver.url, "secret": "s"}
    shop.post("/wc-api/v2/webhooks", {"webhook": new})
    with running_worker(shop.app):
        receiver.wait(1)
        data = {"customer": {"id": 5, "created_at": "2026-01-01T00:00:00Z", "email": "a@b.c"}}
        publish(shop, "customer.updated", 5, data)
        _, received = receiver.wait(2)
    customer = received.json["customer"]
    assert list(customer) == ["id", "created_at", "last_update", "email"]
    (event,) = shop.get("/events").get_json()["events"]
    assert customer["last_update"] == event["created_at"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("coupons", {"code": "a", "active": False, "tags": ["x"], "starts_at": "2030-01-01"}),
        ("customers", {"email": "ada@example.com", "tags": ["vip"]}),
    ],
)
def test_fields_of_the_native_api_only_are_not_sent(shop, receiver, path, fields):
    record_name = path.removesuffix("s")
    new = {"topic": f"{record_name}.created", "delivery_url": receiver.url, "secret": "s"}
    shop.post("/wc-api/v3/webhooks", {"webhook": new})
    created = shop.post(f"/{path}", {record_name: fields}).get_json()[record_name]
    with running_worker(shop.app):
        _, received = receiver.wait(2)
    assert received.json == shop.get(f"/wc-api/v3/{path}/{created['id']}").get_json()


def test_order_is_sent_as_version_3_shows_it(shop, receiver):
    new = {"topic": "order.created", "delivery_url": receiver.url}
    webhook = shop.post("/wc-api/v2/webhooks", {"webhook": new}).get_json()["webhook"]
    customer = shop.post("/customers", {"customer": {"email": "ada@example.com"}}).get_json()
    line = {"name": "Tea", "price": "8.00"}
    orders = [
        shop.post("/wc-api/v3/orders", {"order": {"line_items": [line], "customer_id": id_}})
        for id_ in (customer["customer"]["id"], 0)
    ]
    with running_worker(shop.app):
        _, *received = receiver.wait(3)
        path = f"/wc-api/v3/webhooks/{webhook['id']}/deliveries"
        shown = until(
            lambda: [
                each["request_body"].encode()
                for each in shop.get(path).get_json()["webhook_deliveries"]
                if each["response_code"]
            ][1:],
            "both deliveries",
        )
    bodies = sorted(received, key=lambda each: each.json["order"]["id"])
    assert [each.json for each in bodies] == [response.get_json() for response in orders]
    assert "last_update" in bodies[0].json["order"]["customer"]
    assert shown[0] in [each.body for each in received]
