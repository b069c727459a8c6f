"""Workers that deliver webhooks: leases, several workers, a killed worker (events 2)."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import delete, select, update

from app.db.read_pool import fetch
from app.db.session import now, precise_now, run_in_transaction
from app.models import Event, EventFeed, Webhook, WebhookDelivery
from app.services.events import retention as event_retention
from app.services.events.sequence import lock_sequence
from app.services.maintenance import cleanup
from app.services.webhooks.deliveries import queue as delivery_queue
from app.worker import runner
from app.worker.loop import CycleInput, run_cycle
from tests.api_client import codes
from tests.serving import ROOT
from tests.webhooks.deliveries import deliveries, in_state, make_webhook, publish, write
from tests.webhooks.receivers import LOOPBACK, PATIENCE, running_worker, until


def test_change_within_a_second_reaches_the_worker(shop, receivers):
    """The time of an update has no fraction, so two updates can have the same."""
    old, new = receivers(), receivers()
    delivers, is_changed = threading.Event(), threading.Event()

    def respond(_):
        delivers.set()
        is_changed.wait(PATIENCE)
        time.sleep(0.3)  # a chain of deliveries looks for changes once a second
        return 204

    old.respond = respond
    webhook = make_webhook(shop, old)
    with running_worker(shop.app):
        publish(shop, *range(1, 81))
        assert delivers.wait(PATIENCE)
        shop.put(f"/webhooks/{webhook['id']}", {"webhook": {"delivery_url": new.url}})
        write(shop, Webhook, updated_at=datetime.fromisoformat(webhook["updated_at"]))
        is_changed.set()
        in_state(shop, webhook, "delivered", 80)
    assert len(new.received) > len(old.received)


@pytest.mark.both_databases
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


@pytest.mark.slow
@pytest.mark.both_databases
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


@pytest.mark.slow
@pytest.mark.both_databases
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


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("pending", [[1], range(1, event_retention.BATCH + 1)])
def test_pending_deliveries_do_not_stop_the_removal_of_other_events(client_with, receiver, pending):
    shop = client_with(
        SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK, SHOP_EVENTS_DAYS=1, SHOP_HISTORY_DAYS=1
    )
    webhook = make_webhook(shop, receiver)
    publish(shop, *pending)
    with shop.app.app_context():
        while len(deliveries(shop, webhook)) < len(pending):
            run_cycle("worker", CycleInput([], [], {}))
        publish(shop, *range(1000, 2000))
        write(shop, Event, created_at=now() - timedelta(days=2))
        write(shop, Webhook, position=10**6)
        cleanup.sweep()
    query = {"filter[limit]": 1000, "filter[order]": "desc"}
    events = shop.get("/events", query).get_json()["events"]
    kept = [event["resource_id"] for event in events if event["data"]]
    assert kept == [*pending][::-1]


@pytest.mark.both_databases
def test_an_old_event_is_removed_after_its_webhook_was_deleted(client_with, receiver):
    shop = client_with(
        SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK, SHOP_EVENTS_DAYS=1, SHOP_HISTORY_DAYS=1
    )
    webhook = make_webhook(shop, receiver)
    publish(shop, 1)
    with shop.app.app_context():
        while not deliveries(shop, webhook):
            run_cycle("worker", CycleInput([], [], {}))
        publish(shop, 2)
        write(shop, Event, created_at=now() - timedelta(days=2))
        write(shop, Webhook, position=10**6)
        cleanup.sweep()
        query = {"filter[order]": "desc"}
        assert [
            each["resource_id"] for each in shop.get("/events", query).get_json()["events"]
        ] == [1]
        assert shop.delete(f"/webhooks/{webhook['id']}").status_code == 200
        cleanup.sweep()
    assert shop.get("/events", query).get_json()["events"] == []


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("action", ["replay", "redeliver"])
def test_redelivery_while_events_are_removed(shop, receiver, action):
    """It waits for the removal, and does not queue a delivery of a removed event."""
    webhook = make_webhook(shop, receiver)
    publish(shop, 1)
    with shop.app.app_context():
        run_cycle("worker", CycleInput([], [], {}))
    (delivery,) = deliveries(shop, webhook)
    path, body = f"/webhooks/{webhook['id']}/replay", {"after": 0}
    if action == "redeliver":
        path, body = f"/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver", None
    is_removed, may_commit = threading.Event(), threading.Event()

    def remove(session):
        lock_sequence(session)
        session.execute(delete(Event))
        session.execute(update(EventFeed).values(removed_id=delivery["event_id"]))
        is_removed.set()
        assert may_commit.wait(PATIENCE)

    def run():
        with shop.app.app_context():
            run_in_transaction(remove)

    with ThreadPoolExecutor() as pool:
        removal = pool.submit(run)
        assert is_removed.wait(PATIENCE)
        response = pool.submit(shop.post, path, body)
        time.sleep(0.5)
        may_commit.set()
        removal.result()
        assert codes(response.result()) == (410, "shop_api_events_expired")


def test_a_worker_takes_only_leases_that_are_free(shop, receivers):
    taken, free = (make_webhook(shop, receivers())["id"] for _ in range(2))
    publish(shop, 1)
    until_then = precise_now() + timedelta(hours=1)
    other = update(Webhook).where(Webhook.id == taken)
    with shop.app.app_context():
        run_in_transaction(
            lambda session: session.execute(
                other.values(lease_owner="other", lease_until=until_then)
            )
        )
        run_cycle("this", CycleInput((), (), {}))
        owners = fetch(select(Webhook.id, Webhook.lease_owner).order_by(Webhook.id))
    assert [*map(tuple, owners)] == [(taken, "other"), (free, "this")]


LEASE_SECONDS = 3
RENEW_SECONDS = 2.7
"""On a busy machine, a worker can renew its lease more than two seconds late."""


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr(delivery_queue, "LEASE", timedelta(seconds=LEASE_SECONDS))
    monkeypatch.setattr(runner, "RENEW_SECONDS", RENEW_SECONDS)


@pytest.mark.slow
@pytest.mark.usefixtures("short_lease")
def test_lease_is_renewed_during_a_long_attempt(shop, receivers):
    """The second worker does not send the delivery again, also while the first one stops."""
    receives, may_respond = threading.Event(), threading.Event()

    def respond(_):
        receives.set()
        may_respond.wait(PATIENCE)
        return 204

    slow = receivers(respond)
    webhook = make_webhook(shop, slow)
    with ExitStack() as second:
        with running_worker(shop.app):
            publish(shop, 1)
            assert receives.wait(PATIENCE)
            second.enter_context(running_worker(shop.app))
            time.sleep(1.1 * LEASE_SECONDS)
            threading.Timer(1.1 * LEASE_SECONDS, may_respond.set).start()
        (delivery,) = in_state(shop, webhook, "delivered")
    assert len(slow.received) == len(delivery["attempts"]) == 1


def test_a_runner_forgets_the_attempts_that_end_with_its_lease(shop, receiver):
    """Otherwise, the worker would never claim these deliveries again."""
    make_webhook(shop, receiver)
    publish(shop, 1)
    with shop.app.app_context():
        (batch,) = run_cycle("worker", CycleInput([], [], {})).batches

    async def attempt():
        silent = SimpleNamespace(post=lambda *_: asyncio.sleep(PATIENCE))
        sending = runner.Runner(silent, "", lambda _: None)
        sending.add(batch)
        await asyncio.sleep(0)  # until the receiver does not respond
        assert len(sending.known) == 1
        sending.lease(asyncio.get_running_loop().time())
        while not sending.is_idle:
            await asyncio.sleep(0.001)
        return sending.known

    assert asyncio.run(attempt()) == set()


@pytest.mark.slow
@pytest.mark.usefixtures("short_lease")
def test_attempt_ends_with_its_lease(shop, receivers, monkeypatch):
    """A worker that cannot renew its lease leaves the delivery to another one."""
    first, both, may_respond = threading.Event(), threading.Event(), threading.Event()

    def respond(_):
        (both if first.is_set() else first).set()
        may_respond.wait(PATIENCE)
        return 204

    slow = receivers(respond)
    webhook = make_webhook(shop, slow)
    with running_worker(shop.app):
        publish(shop, 1)
        assert first.wait(PATIENCE)
        # As if the worker had lost the database, and another one had taken the lease.
        write(shop, Webhook, lease_owner="other", lease_until=precise_now() + timedelta(seconds=3))
        in_state(shop, webhook, "pending")
        assert both.wait(PATIENCE)
        may_respond.set()
        (delivery,) = in_state(shop, webhook, "delivered")
    assert len(slow.received) == 2
    assert len(delivery["attempts"]) == 1


# --- the schedule ---


@pytest.mark.slow
def test_another_worker_takes_over_from_a_killed_one(shop, settings, receivers, tmp_path):
    """The lease of 10 seconds ends. Nothing but time passes."""
    receives, is_killed = threading.Event(), threading.Event()

    def respond(_):
        if not receives.is_set():
            receives.set()
            is_killed.wait(PATIENCE)
        return 204

    receiver = receivers(respond)
    names = "DATABASE_URL", "SECRET_KEY"
    environment = os.environ | {name: settings[name] for name in names}
    environment["SHOP_WEBHOOK_ALLOWED_NETWORKS"] = LOOPBACK
    webhook = make_webhook(shop, receiver)
    with (tmp_path / "log").open("w") as log:
        start = lambda: subprocess.Popen(  # noqa: E731  # two workers alike
            [sys.executable, "-m", "app.main", "worker"],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        worker = start()
        publish(shop, 1)
        assert receives.wait(PATIENCE)
        worker.kill()
        worker.wait()
        is_killed.set()
        with shop.app.app_context():
            ((lease_until,),) = fetch(select(Webhook.lease_until))
        assert lease_until - precise_now() <= timedelta(seconds=10)
        worker = start()
        in_state(shop, webhook, "delivered")
        assert precise_now() >= lease_until
        worker.terminate()
        assert worker.wait(PATIENCE) == 0


@pytest.mark.slow
def test_killed_worker_loses_nothing(shop, settings, receiver, tmp_path):
    """Kill the worker with SIGKILL while it delivers; another one continues after the lease."""
    webhook = make_webhook(shop, receiver)
    receiver.respond = lambda _: time.sleep(0.05) or 204
    names = "DATABASE_URL", "SECRET_KEY"
    environment = os.environ | {name: settings[name] for name in names}
    environment["SHOP_WEBHOOK_ALLOWED_NETWORKS"] = LOOPBACK
    with (tmp_path / "log").open("w") as log:
        start = lambda: subprocess.Popen(  # noqa: E731  # two workers alike
            [sys.executable, "-m", "app.main", "worker"],
            cwd=ROOT, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        worker = start()
        publish(shop, *[number % 10 for number in range(200)])
        receiver.wait(20)
        worker.kill()
        worker.wait()
        # As if the time of the lease had passed.
        write(shop, Webhook, lease_until=precise_now())
        worker = start()
        in_state(shop, webhook, "delivered", 200)
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
    first = {}
    for each in receiver.received:
        each.verify(webhook["secret"])
        first.setdefault(each.json["data"]["coupon"]["id"], {})[each.event_id] = True
    assert all(list(ids) == sorted(ids) for ids in first.values())
    assert sum(map(len, first.values())) == 200
