"""Events of a period and of a record are found by their IDs, without reading the others."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, update

from app.db.session import run_in_transaction
from app.models import EVENTS
from app.services.events.outbox import NewEvent, record

START = datetime(2026, 5, 1, tzinfo=UTC)
TIMES = [START + timedelta(minutes=10 * number) for number in range(200)]


def event(number, created_at, chance):
    return {
        "id": number,
        "type": "coupon.updated",
        "resource": chance.choice(("coupon", "customer", "order")),
        "resource_id": chance.randrange(5),
        "created_at": created_at,
        "data": b"{}",
    }


@pytest.fixture
def events(app):
    """Events with gaps between their IDs, each at most an hour before an earlier one."""
    chance = random.Random(7)
    early = (time - timedelta(minutes=chance.randrange(60)) for time in TIMES)
    numbers = sorted(chance.sample(range(10, 5000), len(TIMES)))
    rows = [event(*each, chance) for each in zip(numbers, early, strict=True)]
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(EVENTS), rows))
    return rows


def found(admin, **keys):
    query = {f"filter[{name}]": value for name, value in keys.items()}
    response = admin.get("/events", query | {"filter[limit]": "500", "fields": "id"})
    assert response.status_code == 200, response.get_json()
    return [each["id"] for each in response.get_json()["events"]]


@pytest.mark.both_databases
def test_period_contains_exactly_its_events(admin, events):
    bounds = [*TIMES[::23], START - timedelta(days=1), START + timedelta(days=9)]
    for first in bounds:
        since, until = first.isoformat(), (first + timedelta(hours=5)).isoformat()
        after = [row["id"] for row in events if row["created_at"] >= first]
        before = [row["id"] for row in events if row["created_at"] <= first]
        during = [row["id"] for row in events
                  if first <= row["created_at"] <= first + timedelta(hours=5)]  # fmt: skip
        assert found(admin, created_at_min=since) == after
        assert found(admin, created_at_max=since) == before
        assert found(admin, created_at_min=since, created_at_max=until) == during
        assert found(admin, created_at_min=since, after=events[50]["id"]) == [
            number for number in after if number > events[50]["id"]
        ]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_times_at_the_ends_of_the_calendar(admin, events, time):
    every = [row["id"] for row in events]
    assert found(admin, created_at_min=time) == (every if time < "2" else [])
    assert found(admin, created_at_max=time) == ([] if time < "2" else every)


def test_period_of_a_feed_without_events(admin):
    assert found(admin, created_at_min="2020-01-01", created_at_max="2030-01-01") == []


@pytest.mark.both_databases
def test_records_of_any_resource_are_found_by_their_id(admin, events):
    for resource_id in range(6):
        wanted = [row["id"] for row in events if row["resource_id"] == resource_id]
        assert found(admin, resource_id=resource_id) == wanted
        of_orders = [row["id"] for row in events
                     if row["resource_id"] == resource_id and row["resource"] == "order"]  # fmt: skip
        assert found(admin, resource_id=resource_id, resource="order") == of_orders


@pytest.mark.both_databases
def test_unnumbered_events_of_a_period_are_numbered_first(app, admin):
    with app.app_context():
        run_in_transaction(
            lambda session: record(session, None, [NewEvent("coupon.updated", 1, {})])
        )
        run_in_transaction(lambda session: session.execute(update(EVENTS).values(created_at=START)))
    assert len(found(admin, created_at_min=START.isoformat())) == 1
