"""Deliveries to real receivers on the loopback interface (events 2)."""

import json
import socket
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import delete

from app.db.session import now, run_in_transaction
from app.models import Event, Webhook
from app.outbound.network import REMEDY
from tests.api_client import Client, codes
from tests.webhooks.deliveries import (
    attempted,
    deliveries,
    in_state,
    make_webhook,
    publish,
    show,
    write,
)
from tests.webhooks.receivers import running_worker, until


@pytest.mark.pooler
def test_delivery_is_signed_and_recorded(shop, receiver, capfd):
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 12)
        (received,) = receiver.wait(1)
        (delivery,) = in_state(shop, webhook, "delivered")
    for more in (0, 1):
        of_event = {"filter[event_id]": delivery["event_id"] + more}
        assert len(deliveries(shop, webhook, **of_event)) == 1 - more
    event = shop.get(f"/events/{delivery['event_id']}").get_json()["event"]
    assert received.verify(webhook["secret"]) == {
        "type": "coupon.updated",
        "timestamp": event["created_at"],
        "data": {"coupon": {"id": 12}},
    }
    assert received.headers["webhook-id"] == f"evt_{delivery['event_id']}"
    assert received.headers["content-type"] == "application/json"
    assert delivery["next_attempt_at"] is None
    (attempt,) = delivery["attempts"]
    assert (attempt["status"], attempt["error"]) == (204, None)
    assert show(shop, webhook)["last_delivery_at"] == attempt["at"]
    lines = [line for line in capfd.readouterr().out.splitlines() if '"delivery"' in line]
    line = json.loads(lines[0])
    expected = {
        "webhook_id": webhook["id"],
        "event_id": delivery["event_id"],
        "attempt": 1,
        "state": "delivered",
        "status": 204,
    }
    assert {name: line[name] for name in expected} == expected
    assert {"request_id", "duration_ms", "event_type"} <= line.keys()


def test_only_matching_topics_are_delivered(shop, receivers):
    orders, coupons = receivers(), receivers()
    make_webhook(shop, orders, topics=["order.created"])
    make_webhook(shop, coupons, topics=["coupon.*", "order.deleted"])
    with running_worker(shop.app):
        publish(shop, 1, event_type="order.created")
        publish(shop, 2, event_type="coupon.redeemed")
        publish(shop, 3, event_type="order.deleted")
        coupons.wait(2)
        orders.wait(1)
    assert [each.json["type"] for each in orders.received] == ["order.created"]
    assert sorted(each.json["type"] for each in coupons.received) == [
        "coupon.redeemed",
        "order.deleted",
    ]


@pytest.mark.slow
def test_order_of_many_changes_of_few_resources(shop, receiver):
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        for _ in range(40):
            publish(shop, 1, 2, 3)
        in_state(shop, webhook, "delivered", 120)
    for number in (1, 2, 3):
        own = [
            each.event_id
            for each in receiver.received
            if each.json["data"]["coupon"]["id"] == number
        ]
        assert own == sorted(own)
        assert len(own) == 40


@pytest.mark.sample(1)
@pytest.mark.parametrize("status", [301, 302, 307])
def test_redirect_is_a_failure(shop, receivers, status):
    target = receivers()
    receiver = receivers(lambda _: (status, {"Location": target.url}, b""))
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 1)
        attempted(shop, webhook)
    assert deliveries(shop, webhook)[0]["state"] == "pending"
    assert target.received == []


def test_private_address_of_a_name_is_rejected_at_delivery(client_with, receiver, monkeypatch):
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    shop = client_with()
    url = receiver.url.replace("127.0.0.1", "private.example")
    webhook = make_webhook(shop, receiver, delivery_url=url)
    with running_worker(shop.app):
        publish(shop, 1)
        attempted(shop, webhook)
    (delivery,) = deliveries(shop, webhook)
    assert delivery["attempts"][0]["error"] == "refused address"
    assert receiver.received == []
    ping = shop.post(f"/webhooks/{webhook['id']}/ping").get_json()["ping"]
    assert ping == {
        "status": None,
        "duration_ms": ping["duration_ms"],
        "error": "refused address",
        "message": REMEDY,
    }
    assert "SHOP_WEBHOOK_ALLOWED_NETWORKS" in REMEDY


def test_paused_webhook_gets_no_events_and_replay_sends_them(shop, receiver):
    webhook = make_webhook(shop, receiver)
    path = f"/webhooks/{webhook['id']}"
    with running_worker(shop.app):
        publish(shop, 1)
        in_state(shop, webhook, "delivered")
        shop.put(path, {"webhook": {"status": "paused"}})
        publish(shop, 1)
        response = shop.post(f"{path}/replay", {"after": 0})
        assert response.status_code == 409
        shop.put(path, {"webhook": {"status": "active"}})
        publish(shop, 1)
        in_state(shop, webhook, "delivered", 2)
        assert len(receiver.received) == 2
        first = receiver.received[0].event_id
        replay = shop.post(f"{path}/replay", {"after": first - 1}).get_json()["replay"]
        got = receiver.wait(5)
    assert replay == {"after": first - 1, "through": first + 2}
    assert [each.event_id for each in got] == [first, first + 2, first, first + 1, first + 2]
    assert got[0].headers["webhook-id"] == got[2].headers["webhook-id"]


def test_redelivery_of_a_delivered_event(shop, receiver):
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 1)
        (delivery,) = in_state(shop, webhook, "delivered")
        path = f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}"
        again = shop.post(f"{path}/redeliver").get_json()["webhook_delivery"]
        receiver.wait(2)
        until(lambda: len(deliveries(shop, webhook)[0]["attempts"]) == 2, "the second attempt")
    assert again["state"] == "pending"
    assert shop.get(path).get_json()["webhook_delivery"]["state"] == "delivered"


@pytest.mark.slow
def test_redelivery_of_a_removed_event(shop, receiver):
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 1)
        (delivery,) = in_state(shop, webhook, "delivered")
    with shop.app.app_context():
        run_in_transaction(lambda session: session.execute(delete(Event)))
    path = f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}"
    assert codes(shop.post(f"{path}/redeliver")) == (410, "shop_api_events_expired")
    assert shop.get(path).get_json()["webhook_delivery"] == delivery


def test_both_secrets_sign_after_a_rotation(shop, receiver):
    webhook = make_webhook(shop, receiver)
    new = shop.post(f"/webhooks/{webhook['id']}/rotate-secret").get_json()["webhook"]["secret"]
    with running_worker(shop.app):
        publish(shop, 1)
        (received,) = receiver.wait(1)
        received.verify(webhook["secret"])
        received.verify(new)
        write(shop, Webhook, previous_secret_until=now() - timedelta(seconds=1))
        publish(shop, 2)
        _, received = receiver.wait(2)
    received.verify(new)
    with pytest.raises(Exception, match="No matching signature"):
        received.verify(webhook["secret"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("topics", "is_shown"), [(["coupon.*"], True), (["*"], False)])
def test_responses_are_empty_for_a_key_that_may_not_read_the_topics(
    shop, receivers, topics, is_shown
):
    """A receiver can repeat what it was sent."""
    webhook = make_webhook(shop, receivers(lambda _: (200, {}, b"repeated")), topics=topics)
    body = {"key": {"resources": ["webhooks", "coupons"], "permission": "read_write"}}
    key = shop.post("/keys", body).get_json()["key"]
    limited = Client(shop.app, SimpleNamespace(**key))
    with running_worker(shop.app):
        publish(shop, 12)
        (delivery,) = in_state(shop, webhook, "delivered")
    assert delivery["response_body"] == "repeated"
    expected = delivery | {"response_body": "repeated" if is_shown else ""}
    assert deliveries(limited, webhook) == [expected]
    path = f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}"
    assert limited.get(path).get_json() == {"webhook_delivery": expected}
    assert limited.get(f"{path}?fields=id").get_json() == {
        "webhook_delivery": {"id": delivery["id"]}
    }
    again = limited.post(f"{path}/redeliver").get_json()["webhook_delivery"]
    assert again["response_body"] == expected["response_body"]
