"""Deliveries to real receivers on the loopback interface (events 2)."""

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from conftest import codes
from sqlalchemy import delete, select, update

from app.db.read_pool import fetch
from app.db.session import now, precise_now, run_in_transaction
from app.models import Event, UserRole, Webhook, WebhookDelivery
from app.outbound.client import Outcome
from app.services import cleanup
from app.services.delivery_retries import RETRY_SECONDS, next_attempt, retry_after
from app.services.events import NewEvent, record
from tests.receivers import LOOPBACK, Receiver, running_worker, until
from tests.serving import ROOT


@pytest.fixture
def receivers():
    """Return a function: a new receiver."""
    made = []

    def make(respond=lambda _: 204):
        made.append(Receiver(respond))
        return made[-1]

    yield make
    for receiver in made:
        receiver.close()


@pytest.fixture
def receiver(receivers):
    return receivers()


@pytest.fixture
def shop(client_with):
    """The administrator's client of an app that may deliver to the loopback interface."""
    return client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK)


def make_webhook(shop, receiver, **over):
    body = {"topics": ["*"], "delivery_url": receiver.url} | over
    response = shop.post("/webhooks", {"webhook": body})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["webhook"]


def publish(shop, *ids, event_type="coupon.updated", **over):
    """Write an event for each ID, as a service does."""
    resource = event_type.partition(".")[0]
    events = [NewEvent(event_type, id_, {resource: {"id": id_} | over}) for id_ in ids]
    with shop.app.app_context():
        run_in_transaction(lambda session: record(session, None, events))


def deliveries(shop, webhook, **query):
    path = f"/webhooks/{webhook['id']}/deliveries"
    query = {"filter[order]": "asc", "filter[limit]": "-1", **query}
    return shop.get(path, query).get_json()["webhook_deliveries"]


def in_state(shop, webhook, state, number=1):
    """Return the deliveries in a state, once there are as many."""

    def look():
        found = [each for each in deliveries(shop, webhook) if each["state"] == state]
        return found if len(found) >= number else None

    return until(look, f"{number} deliveries {state}")


def attempted(shop, webhook):
    """Return the deliveries with attempts, once there are some."""
    return until(
        lambda: [each for each in deliveries(shop, webhook) if each["attempts"]], "an attempt"
    )


def show(shop, webhook):
    return shop.get(f"/webhooks/{webhook['id']}").get_json()["webhook"]


def write(shop, model, **columns):
    """Change all rows of a table: what only time does."""
    with shop.app.app_context():
        run_in_transaction(lambda session: session.execute(update(model).values(**columns)))


def make_due(shop):
    """Let the next attempt of every pending delivery be due."""
    with shop.app.app_context():
        run_in_transaction(
            lambda session: session.execute(
                update(WebhookDelivery)
                .where(WebhookDelivery.state == "pending")
                .values(next_attempt_at=precise_now())
            )
        )


@pytest.mark.pooler
def test_delivery_is_signed_and_recorded(shop, receiver, capfd):
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 12)
        (received,) = receiver.wait(1)
        (delivery,) = in_state(shop, webhook, "delivered")
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
    assert {name: line[name] for name in ("webhook_id", "event_id", "state", "status")} == {
        "webhook_id": webhook["id"],
        "event_id": delivery["event_id"],
        "state": "delivered",
        "status": 204,
    }
    assert {"request_id", "attempt", "duration_ms", "event_type"} <= line.keys()


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


@pytest.mark.pooler
def test_failed_delivery_is_retried_with_the_same_id_and_a_new_signature(shop, receiver):
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: (503, {}, b"later")
    with running_worker(shop.app):
        publish(shop, 1)
        receiver.wait(1)
        (failed,) = attempted(shop, webhook)
        receiver.respond = lambda _: 200
        time.sleep(1.1)  # another second, so that the timestamp differs
        make_due(shop)
        first, second = receiver.wait(2)
        (delivery,) = in_state(shop, webhook, "delivered")
    assert failed["response_body"] == "later"
    wait = datetime.fromisoformat(failed["next_attempt_at"]) - datetime.fromisoformat(
        failed["attempts"][0]["at"]
    )
    assert timedelta(seconds=4) <= wait <= timedelta(seconds=8)
    assert [(each["status"], each["error"]) for each in delivery["attempts"]] == [
        (503, "unexpected status"),
        (200, None),
    ]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-timestamp"] < second.headers["webhook-timestamp"]
    assert second.verify(webhook["secret"]) == first.verify(webhook["secret"])


def test_later_event_of_a_resource_waits_and_others_do_not(shop, receiver):
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda got: 500 if got.json["data"]["coupon"]["id"] == 1 else 204
    with running_worker(shop.app):
        publish(shop, 1, 2, 1, 2, 1, 3)
        in_state(shop, webhook, "delivered", 3)
        assert [each.json["data"]["coupon"]["id"] for each in receiver.received].count(1) == 1
        receiver.respond = lambda _: 204
        make_due(shop)
        in_state(shop, webhook, "delivered", 6)
    of_first = [
        each.event_id for each in receiver.received if each.json["data"]["coupon"]["id"] == 1
    ]
    assert of_first == sorted(of_first)


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


def test_unavailable_receiver_delays_no_other(shop, receivers):
    hanging, healthy = receivers(), receivers()
    dead = make_webhook(shop, hanging)
    make_webhook(shop, healthy)
    others_are_done = threading.Event()
    hanging.respond = lambda _: 204 if others_are_done.wait(60) else 500
    with running_worker(shop.app):
        publish(shop, *range(1, 31))
        healthy.wait(30)
        publish(shop, 99)
        healthy.wait(31)
        assert hanging.received == []
        assert {each["state"] for each in deliveries(shop, dead)} == {"pending"}
        others_are_done.set()


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


def test_private_address_is_rejected_at_delivery(client_with, receiver):
    shop = client_with()
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 1)
        attempted(shop, webhook)
    (delivery,) = deliveries(shop, webhook)
    assert delivery["attempts"][0]["error"] == "refused address"
    assert receiver.received == []
    ping = shop.post(f"/webhooks/{webhook['id']}/ping").get_json()["ping"]
    assert (ping["status"], ping["error"]) == (None, "refused address")


def test_gone_disables_the_webhook(shop, receiver):
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: 410
    with running_worker(shop.app):
        publish(shop, 1)
        until(lambda: show(shop, webhook)["status"] == "disabled", "disabled")
    assert "410" in show(shop, webhook)["disabled_reason"]
    assert {each["state"] for each in deliveries(shop, webhook)} == {"failed"}
    (event,) = shop.get("/events", {"filter[type]": "webhook.disabled"}).get_json()["events"]
    assert event["data"]["webhook"]["id"] == webhook["id"]
    assert "secret" not in json.dumps(event)


def test_webhook_that_only_failed_for_five_days_is_disabled(shop, receiver):
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: 500
    write(shop, Webhook, failing_since=now() - timedelta(days=5, seconds=1))
    with running_worker(shop.app):
        publish(shop, 1)
        until(lambda: show(shop, webhook)["status"] == "disabled", "disabled")
    assert "5 days" in show(shop, webhook)["disabled_reason"]


def test_success_ends_failing(shop, receiver):
    webhook = make_webhook(shop, receiver)
    write(shop, Webhook, failing_since=now() - timedelta(days=9), failure_count=50)
    with running_worker(shop.app):
        publish(shop, 1)
        in_state(shop, webhook, "delivered")
    assert show(shop, webhook)["failing_since"] is None


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


def test_change_within_a_second_reaches_the_worker(shop, receivers):
    """The time of an update has no fraction, so two updates can have the same."""
    old, new = receivers(), receivers()
    old.respond = lambda _: time.sleep(0.3) or 204
    webhook = make_webhook(shop, old)
    with running_worker(shop.app):
        publish(shop, *range(1, 41))
        old.wait(1)
        shop.put(f"/webhooks/{webhook['id']}", {"webhook": {"delivery_url": new.url}})
        write(shop, Webhook, updated_at=datetime.fromisoformat(webhook["updated_at"]))
        in_state(shop, webhook, "delivered", 40)
    assert len(new.received) > len(old.received)


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


def test_unreadable_secret_disables_the_webhook(shop, client_with, receiver):
    webhook = make_webhook(shop, receiver)
    other = client_with(SECRET_KEY="another secret", SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK)
    with running_worker(other.app):
        publish(shop, 1)
        until(lambda: show(shop, webhook)["status"] == "disabled", "disabled")
    assert "SECRET_KEY" in show(shop, webhook)["disabled_reason"]
    assert receiver.received == []


def test_webhook_is_disabled_with_its_user_or_their_capability(shop, client_for, receiver):
    deleted, demoted = (
        client_for("shop_manager", login="one"),
        client_for("shop_manager", login="two"),
    )
    first, second = make_webhook(deleted, receiver), make_webhook(demoted, receiver)
    shop.delete(f"/customers/{first['user_id']}", {"force": "true"})
    assert show(shop, first)["disabled_reason"] == "The user who created the webhook was deleted."
    with shop.app.app_context():
        own = UserRole.user_id == second["user_id"]
        run_in_transaction(
            lambda session: session.execute(update(UserRole).where(own).values(role="customer"))
        )
        cleanup.sweep()
    assert show(shop, second)["status"] == "disabled"
    shop.put(f"/webhooks/{second['id']}", {"webhook": {"status": "active"}})
    shown = show(shop, second)
    with shop.app.app_context():
        cleanup.sweep()
    assert (shown["status"], shown["disabled_reason"]) == ("active", None)
    assert show(shop, second) == shown


def test_worker_continues_after_the_lease_of_another_ends(shop, receiver):
    webhook = make_webhook(shop, receiver)
    write(shop, Webhook, lease_owner="gone", lease_until=precise_now() + timedelta(hours=1))
    with running_worker(shop.app):
        publish(shop, 1)
        in_state(shop, webhook, "pending")
        ended = time.time()
        write(shop, Webhook, lease_until=precise_now())
        in_state(shop, webhook, "delivered")
    assert [received.at >= ended for received in receiver.received] == [True]
    with shop.app.app_context():
        assert fetch(select(Webhook.lease_owner)) == [(None,)]


def test_two_workers_share_the_work(shop, receivers):
    made = [receivers() for _ in range(4)]
    webhooks = [make_webhook(shop, each) for each in made]
    with running_worker(shop.app), running_worker(shop.app):
        for _ in range(10):
            publish(shop, 1, 2)
        for webhook in webhooks:
            in_state(shop, webhook, "delivered", 20)
    for each in made:
        ids = [got.event_id for got in each.received]
        assert len(ids) == len(set(ids)) == 20


def test_expired_events_and_deliveries_are_removed(client_with, receiver):
    shop = client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK, SHOP_EVENTS_DAYS=1)
    webhook = make_webhook(shop, receiver)
    with running_worker(shop.app):
        publish(shop, 1)
        in_state(shop, webhook, "delivered")
        receiver.respond = lambda _: 500
        publish(shop, 2)
        until(lambda: len(receiver.received) == 2, "a failure")
    with shop.app.app_context():
        old = now() - timedelta(days=2)
        for model in (Event, WebhookDelivery):
            run_in_transaction(
                lambda session, model=model: session.execute(update(model).values(created_at=old))
            )
        cleanup.sweep()
    assert [each["state"] for each in deliveries(shop, webhook)] == ["pending"]
    assert len(shop.get("/events").get_json()["events"]) == 1
    shop.put(f"/webhooks/{webhook['id']}", {"webhook": {"status": "paused"}})
    with shop.app.app_context():
        cleanup.sweep()
    assert deliveries(shop, webhook) == []


# --- the schedule ---


def test_schedule_of_retries():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    outcome = Outcome(500, 0)
    waits = [next_attempt(count, outcome, at) for count in range(1, 12)]
    assert waits[-1] is None
    for wait, seconds in zip(waits[:-1], RETRY_SECONDS, strict=True):
        assert seconds <= (wait - at).total_seconds() <= seconds * 1.1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("999999999999", 86400),
        ("Thu, 01 Jan 2026 00:05:00 GMT", 300),
        ("Thu, 01 Jan 2020 00:05:00 GMT", 0),
        ("Thu, 01 Jan 2099 00:05:00 GMT", 86400),
        ("soon", 0),
        ("", 0),
        ("-5", 0),
        ("²", 0),
    ],
)
def test_retry_after(value, seconds):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after(Outcome(503, 0, headers={"retry-after": value}), at) == seconds


def test_retry_after_is_respected(shop, receiver):
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: (429, {"Retry-After": "100"}, b"")
    with running_worker(shop.app):
        publish(shop, 1)
        (delivery,) = attempted(shop, webhook)
        publish(shop, 2)
        time.sleep(0.5)
        assert len(receiver.received) == 1
    wait = datetime.fromisoformat(delivery["next_attempt_at"]) - datetime.fromisoformat(
        delivery["attempts"][0]["at"]
    )
    assert timedelta(seconds=99) <= wait <= timedelta(seconds=102)


@pytest.mark.slow
@pytest.mark.one_database
def test_killed_worker_loses_nothing(app, settings, admin, receiver, tmp_path):
    """Kill the worker with SIGKILL while it delivers; another one continues after the lease."""
    shop = admin
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: time.sleep(0.05) or 204
    names = "DATABASE_URL", "SECRET_KEY"
    environment = os.environ | {name: settings[name] for name in names}
    environment["SHOP_WEBHOOK_ALLOWED_NETWORKS"] = LOOPBACK
    with (tmp_path / "log").open("w") as log:
        start = lambda: subprocess.Popen(  # noqa: E731  # two workers alike
            [sys.executable, "-m", "flask", "--app", "wsgi", "worker"],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        worker = start()
        publish(shop, *[number % 10 for number in range(200)])
        receiver.wait(20, 60)
        worker.kill()
        worker.wait()
        # As if the time of the lease had passed.
        write(shop, Webhook, lease_until=precise_now())
        worker = start()
        in_state(shop, webhook, "delivered", 200)
        worker.terminate()
        assert worker.wait(30) == 0
    first = {}
    for each in receiver.received:
        each.verify(webhook["secret"])
        first.setdefault(each.json["data"]["coupon"]["id"], {})[each.event_id] = True
    assert all(list(ids) == sorted(ids) for ids in first.values())
    assert sum(map(len, first.values())) == 200
