"""Retries of deliveries, and webhooks that are disabled (events 2)."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.db.session import now, precise_now, run_in_transaction
from app.models import UserRole, Webhook, WebhookDelivery
from app.outbound.client import Outcome
from app.services.maintenance import cleanup
from app.services.webhooks.deliveries.results import Attempt
from app.services.webhooks.deliveries.retries import RETRY_SECONDS, next_attempt, retry_after
from app.worker.loop import CycleInput, run_cycle
from tests.webhooks.deliveries import (
    attempted,
    deliveries,
    in_state,
    make_webhook,
    publish,
    show,
    write,
)
from tests.webhooks.receivers import LOOPBACK, PATIENCE, running_worker, until

pytestmark = pytest.mark.one_database


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


@pytest.mark.sample(1)
@pytest.mark.parametrize(("status", "state"), [(500, "pending"), (204, "delivered")])
@pytest.mark.parametrize("action", ["redeliver", "replay"])
def test_redelivery_during_an_attempt_restarts_the_schedule(shop, receiver, action, status, state):
    webhook = make_webhook(shop, receiver)
    publish(shop, 1)
    path = f"/webhooks/{webhook['id']}"
    with shop.app.app_context():
        run_cycle("worker", CycleInput([], [], {}))
        write(shop, WebhookDelivery, attempt_count=len(RETRY_SECONDS))
        write(shop, Webhook, lease_until=None)
        (batch,) = run_cycle("worker", CycleInput([], [], {})).batches
        ((claimed,),) = batch.chains
    if action == "redeliver":
        assert shop.post(f"{path}/deliveries/{claimed['id']}/redeliver").status_code == 200
    else:
        assert shop.post(f"{path}/replay", {"after": 0}).status_code == 200
    with shop.app.app_context():
        run_cycle("worker", CycleInput([], [], {webhook["id"]: {claimed["id"]}}))
        attempt = Attempt(claimed, precise_now(), Outcome(status, 5), status == 204, {})
        given = CycleInput([attempt], [webhook["id"]], {})
        result = run_cycle("worker", given)
    assert result.states == [state]
    (delivery,) = deliveries(shop, webhook)
    assert delivery["state"] == state
    assert [each["status"] for each in delivery["attempts"]] == [status]
    again = [row["attempt_count"] for batch in result.batches for (row,) in batch.chains]
    assert again == ([0] if state == "pending" else [])


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


@pytest.mark.slow
def test_unavailable_receiver_delays_no_other(shop, receivers):
    hanging, healthy = receivers(), receivers()
    dead = make_webhook(shop, hanging)
    make_webhook(shop, healthy)
    others_are_done = threading.Event()
    hanging.respond = lambda _: 204 if others_are_done.wait(PATIENCE) else 500
    with running_worker(shop.app):
        publish(shop, *range(1, 31))
        healthy.wait(30)
        publish(shop, 99)
        healthy.wait(31)
        assert hanging.received == []
        assert {each["state"] for each in deliveries(shop, dead)} == {"pending"}
        others_are_done.set()


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


def test_pending_deliveries_of_a_webhook_that_a_user_disables_fail(shop, receiver):
    webhook = make_webhook(shop, receiver)
    publish(shop, 1, 2)
    path = f"/webhooks/{webhook['id']}"
    with shop.app.app_context():
        (batch,) = run_cycle("worker", CycleInput([], [], {})).batches
        ((claimed,), _) = batch.chains
        shop.put(path, {"webhook": {"status": "disabled"}})
        assert {each["state"] for each in deliveries(shop, webhook)} == {"failed"}
        shop.put(path, {"webhook": {"status": "active"}})
        # The attempt that was in flight does not queue its delivery again.
        attempt = Attempt(claimed, precise_now(), Outcome(500, 5), delivered=False, headers={})
        result = run_cycle("worker", CycleInput([attempt], [webhook["id"]], {}))
    assert result.batches == []
    assert {each["state"] for each in deliveries(shop, webhook)} == {"failed"}
    assert show(shop, webhook)["failing_since"] is None
    assert shop.get("/events", {"filter[type]": "webhook.disabled"}).get_json() == {"events": []}


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


@pytest.mark.slow
def test_unreadable_secret_disables_the_webhook(shop, client_with, receiver):
    webhook = make_webhook(shop, receiver)
    other = client_with(SECRET_KEY="another secret", SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK)
    with running_worker(other.app):
        publish(shop, 1)
        until(lambda: show(shop, webhook)["status"] == "disabled", "disabled")
    assert "SECRET_KEY" in show(shop, webhook)["disabled_reason"]
    assert receiver.received == []


def test_webhook_is_disabled_with_its_user_or_their_capability(shop, client_for, receiver):
    url = "https://receiver.example/hooks"
    deleted, demoted = (
        client_for("shop_manager", login="one"),
        client_for("shop_manager", login="two"),
    )
    first = make_webhook(deleted, receiver, delivery_url=url)
    second = make_webhook(demoted, receiver, delivery_url=url)
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
    assert timedelta(seconds=99) <= wait <= timedelta(seconds=150)
