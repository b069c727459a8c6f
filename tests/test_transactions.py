"""Transactions that start again because another one came first, and writers that take turns."""

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from app.db import session as database
from app.db.session import now, run_in_transaction
from app.models import IdempotencyRecord


@pytest.fixture
def waits(monkeypatch):
    """The seconds that transactions have waited for; nobody waits."""
    seconds = []
    monkeypatch.setattr(database.time, "sleep", seconds.append)
    return seconds


def refused(times):
    """Work that another transaction comes before so many times."""
    attempts = []

    def work(session):
        attempts.append(1)
        row = {
            "request_hash": "x",
            "body_hash": "",
            "status": 200,
            "answer": b"",
            "created_at": now(),
        }
        for _ in range(2 if len(attempts) <= times else 1):
            session.execute(insert(IdempotencyRecord).values(row))
        return len(attempts)

    return work


def test_retries_wait_a_little_longer_each_time(app, waits):
    with app.app_context():
        assert run_in_transaction(refused(6)) == 7
    limits = [database.RETRY_SECONDS * attempt for attempt in range(1, 7)]
    assert len(waits) == 6
    assert all(limit / 2 <= wait <= limit for wait, limit in zip(waits, limits, strict=True))


def test_first_attempt_waits_for_nothing(app, waits):
    with app.app_context():
        assert run_in_transaction(refused(0)) == 1
    assert waits == []


def test_retries_end(app, waits):
    with app.app_context(), pytest.raises(IntegrityError):
        run_in_transaction(refused(100))
    assert len(waits) == database.MAX_ATTEMPTS - 1
    assert sum(waits) < 3


@pytest.mark.parametrize(("times", "lines"), [(2, 0), (3, 1), (6, 1)])
def test_third_retry_is_logged(app, waits, caplog, times, lines):
    with app.app_context():
        run_in_transaction(refused(times))
    assert [record.getMessage() for record in caplog.records] == [
        "A transaction is retried for the third time because of conflicts."
    ] * lines
