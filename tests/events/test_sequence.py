"""The cursor of the feed misses no event, in any order of commits (events 1 and 4)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.models import Event
from app.services.events import sequence
from app.services.events.outbox import NewEvent, record
from app.services.events.sequence import has_unnumbered, number_events
from tests.api_client import Client

pytestmark = pytest.mark.both_databases

WRITERS, WRITES = 8, 25


def read_feed(app, key, done, limit):
    """Follow the feed until the writers have finished and all events are read, and return the IDs."""
    client, seen, after = Client(app, key), [], 0
    while True:
        is_last = done.is_set()
        query = {"filter[after]": after, "filter[limit]": limit, "fields": "id,resource_id,type"}
        events = client.get("/events", query).get_json()["events"]
        seen += [(event["id"], event["resource_id"]) for event in events]
        after = events[-1]["id"] if events else after
        if is_last and not events:
            return seen


def test_readers_beside_eight_writers_miss_nothing(app, admin, make_coupon):
    """Transactions of different lengths commit in another order than they take positions."""
    first = fetch_last(app)
    done = threading.Event()

    def write(writer):
        for number in range(WRITES):
            event = NewEvent("coupon.updated", writer * WRITES + number, {})

            def work(session, event=event, number=number):
                record(session, None, [event])
                if number % 5 == writer % 5:
                    time.sleep(0.005)  # others commit later positions in the meantime

            with app.app_context():
                run_in_transaction(work)

    with ThreadPoolExecutor(WRITERS + 4) as pool:
        readers = [pool.submit(read_feed, app, admin.key, done, limit) for limit in (1000, 7, 50)]
        writers = [pool.submit(write, writer) for writer in range(WRITERS)]
        for writer in writers:
            writer.result()
        done.set()
        for reader in readers:
            seen = [pair for pair in reader.result() if pair[0] > first]
            ids = [pair[0] for pair in seen]
            assert ids == sorted(set(ids))
            assert sorted(pair[1] for pair in seen) == list(range(WRITERS * WRITES))


def fetch_last(app):
    with app.app_context():
        number_events()
        return fetch(text("SELECT coalesce(max(id), 0) FROM events"))[0][0]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_transaction_that_commits_late_is_numbered_late(app, admin):
    """Without the sequencer, a reader would see the second position and then the first one."""
    first = fetch_last(app)
    with app.app_context(), db.engine.connect() as slow:
        insert = text(
            "INSERT INTO events (type, resource, resource_id, created_at, data) "
            "VALUES ('coupon.updated', 'coupon', :n, now(), '{}') RETURNING position"
        )
        late = slow.execute(insert, {"n": 1}).scalar_one()
        run_in_transaction(
            lambda session: record(session, None, [NewEvent("coupon.updated", 2, {})])
        )
        query = {"filter[after]": first}
        assert [e["resource_id"] for e in admin.get("/events", query).get_json()["events"]] == [2]
        slow.commit()
        events = admin.get("/events", query).get_json()["events"]
        assert [event["resource_id"] for event in events] == [2, 1]
        positions = fetch(select(Event.position).where(Event.id > first).order_by(Event.id))
        assert [row[0] for row in positions] == [late + 1, late]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_sequencers_at_the_same_time_number_each_event_once(app, monkeypatch):
    monkeypatch.setattr(sequence, "BATCH", 70)
    first = fetch_last(app)
    new = [NewEvent("coupon.updated", number, {}) for number in range(3000)]
    with app.app_context():
        run_in_transaction(lambda session: record(session, None, new))

    def number(_):
        with app.app_context():
            return number_events()

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(number, range(6))) == 3000
    with app.app_context():
        assert number_events() == 0
        rows = fetch(select(Event.id, Event.resource_id).where(Event.id > first).order_by(Event.id))
    assert rows == [(first + 1 + number, number) for number in range(3000)]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_no_event_is_read_to_see_that_all_are_numbered(app):
    """Autovacuum can take its statistics of the table while many events have no ID."""
    new = [NewEvent("coupon.updated", number, {}) for number in range(1000)]
    with app.app_context(), db.engines["read"].connect() as connection:
        run_in_transaction(lambda session: record(session, None, new))
        connection.execute(text("ANALYZE events"))
        assert number_events() == 1000
        statement = select(has_unnumbered()).compile(connection)
        plan = connection.exec_driver_sql(f"EXPLAIN {statement}").scalars().all()
    assert any("ix_events_unnumbered" in line for line in plan), plan
    assert not any("Seq Scan" in line for line in plan), plan


def test_events_of_one_coupon_are_in_the_order_of_its_changes(app, admin, make_coupon):
    coupon_id = make_coupon(amount="0")["id"]
    clients = [Client(app, admin.key) for _ in range(6)]

    def update(client):
        for number in range(10):
            body = {"coupon": {"amount": f"{number}.{clients.index(client):02}"}}
            assert client.put(f"/coupons/{coupon_id}", body).status_code == 200

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(update, clients))
    query = {"filter[resource]": "coupon", "filter[limit]": 100}
    events = admin.get("/events", query).get_json()["events"]
    assert len(events) == 61
    assert events[-1]["data"] == admin.get(f"/coupons/{coupon_id}").get_json()
    times = [event["data"]["coupon"]["updated_at"] for event in events]
    assert times == sorted(times)
