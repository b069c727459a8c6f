"""Transactions that are retried after conflicts, and queued writers on SQLite."""

import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from app.db import session as database
from app.db import sqlite
from app.db.read_pool import fetch
from app.db.session import call_after_commit, is_trial, now, run_in_transaction, try_in_transaction
from app.models import CouponBatch, IdempotencyRecord
from tests.api_client import codes

pytestmark = pytest.mark.pooler


@pytest.fixture
def waits(monkeypatch):
    """The seconds that transactions would have waited for."""
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
            "response_body": b"",
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


def test_first_attempt_does_not_wait(app, waits):
    with app.app_context():
        assert run_in_transaction(refused(0)) == 1
    assert waits == []


def test_retries_end(app, waits):
    with app.app_context(), pytest.raises(IntegrityError):
        run_in_transaction(refused(100))
    assert len(waits) == database.MAX_ATTEMPTS - 1
    assert sum(waits) < 3


def test_reference_to_a_missing_record_is_retried_twice(app, waits):
    row = {"author_id": 99, "count": 1, "prefix": "", "pattern": "", "charset": ""}

    def work(session):
        session.execute(insert(CouponBatch).values(row | {"created_at": now()}))

    with app.app_context(), pytest.raises(IntegrityError):
        run_in_transaction(work)
    assert len(waits) == database.MAX_ATTEMPTS_WITH_MISSING_RECORD - 1 == 2


@pytest.mark.parametrize(("times", "lines"), [(2, 0), (3, 1), (6, 1)])
def test_third_retry_is_logged(app, waits, caplog, times, lines):
    with app.app_context():
        run_in_transaction(refused(times))
    assert [record.getMessage() for record in caplog.records] == [
        "A transaction is retried for the third time because of conflicts."
    ] * lines


# Writers of PostgreSQL do not wait for each other.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_writer_that_waits_too_long_gets_503(admin, monkeypatch):
    monkeypatch.setattr(sqlite, "WAIT_SECONDS", 0.01)
    with admin.app.extensions[database._WRITE_LOCK]:
        response = admin.post("/coupons", {"coupon": {"code": "summer"}})
    assert codes(response) == (503, "shop_api_unavailable")
    assert admin.post("/coupons", {"coupon": {"code": "summer"}}).status_code == 201


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_writer_waits_for_another_process(app, admin):
    with app.app_context():
        file = database.db.engine.url.database
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        commit = threading.Timer(0.2, other.execute, ["COMMIT"])
        commit.start()
        response = admin.post("/coupons", {"coupon": {"code": "summer"}})
        commit.join()
    assert response.status_code == 201


def test_write_lock_is_released_after_an_error(app):
    def fail(session):
        raise KeyError

    with app.app_context():
        for _ in range(2):
            with pytest.raises(KeyError):
                run_in_transaction(fail)
        assert run_in_transaction(lambda session: 1) == 1


@pytest.mark.both_databases
def test_a_trial_within_a_transaction_leaves_nothing(app):
    called = []

    def note(session, name):
        row = {"request_hash": name, "body_hash": "", "status": 200, "response_body": b""}
        session.execute(insert(IdempotencyRecord).values(row | {"created_at": now()}))
        call_after_commit(session, lambda: called.append(name))

    def tried(session):
        assert is_trial()
        run_in_transaction(lambda inner: note(inner, "tried"))

    def work(session):
        note(session, "before")
        try_in_transaction(tried)
        assert not is_trial()
        note(session, "after")

    with app.app_context():
        run_in_transaction(work)
        try_in_transaction(tried)
        stored = {each.request_hash for each in fetch(select(IdempotencyRecord.request_hash))}
    assert stored == {"before", "after"}
    assert called == ["before", "after"]
