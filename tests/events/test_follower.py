"""The program of docs/events.md that keeps a copy of the customers."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update
from werkzeug.serving import make_server

from app.db.session import now, run_in_transaction
from app.models import Event
from app.services.events.retention import remove_expired_data
from tests.webhooks.receivers import PATIENCE, until

DOCS = (Path(__file__).parents[2] / "docs" / "events.md").read_text()


@pytest.fixture
def url(app):
    """The address of the app."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.daemon_threads = False  # so that server_close waits for requests
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(PATIENCE)
    server.server_close()


@pytest.fixture
def follower(admin, url, tmp_path):
    """Return a context manager: the program runs."""
    (program,) = re.findall(r"^```python\n(.+?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    assert "time.sleep(5)" in program
    (tmp_path / "follow.py").write_text(program.replace("time.sleep(5)", "time.sleep(0.05)"))

    @contextmanager
    def run():
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "follow.py", url],
            cwd=tmp_path,
            env=os.environ | {"KEY": f"{admin.key.consumer_key}:{admin.key.consumer_secret}"},
        )
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()

    return run


@pytest.fixture
def wait_until_current(admin, tmp_path):
    """Return a function: wait until the copy has the customers of the shop and all events."""

    def rows(statement):
        try:
            with closing(sqlite3.connect(tmp_path / "customers.db", timeout=120)) as copy:
                return copy.execute(statement).fetchall()
        except sqlite3.OperationalError:  # the program has not created the tables yet
            return []

    def wait():
        query = {"filter[limit]": -1, "filter[role]": "all", "filter[orderby]": "id"}
        expected = admin.get("/customers", query).get_json()["customers"]
        expected.sort(key=lambda customer: customer["id"])
        events = admin.get("/events", {"filter[limit]": 1000}).get_json()["events"]
        position = [(events[-1]["id"] if events else None,)]

        def is_current():
            copied = [json.loads(row[0]) for row in rows("SELECT data FROM customers ORDER BY id")]
            return copied == expected and rows("SELECT event_id FROM cursor") == position

        until(is_current, "a current copy")

    return wait


def expire_events(app):
    with app.app_context():
        old = {"created_at": now() - timedelta(days=31)}
        run_in_transaction(lambda session: session.execute(update(Event).values(old)))
        assert remove_expired_data().removed


def test_copy_follows_the_customers(admin, follower, wait_until_current, make_customer):
    kept, deleted = make_customer(), make_customer()
    with follower():
        wait_until_current()
        make_customer()
        admin.put(f"/customers/{kept['id']}", {"customer": {"first_name": "Ada"}})
        admin.delete(f"/customers/{deleted['id']}")
        wait_until_current()


def test_removed_events_of_other_resources_are_not_missed(
    app, admin, follower, wait_until_current, make_customer, make_coupon
):
    with follower():
        wait_until_current()
        make_coupon()
        wait_until_current()
        expire_events(app)
        make_customer()
        wait_until_current()


def test_copy_is_read_again_if_events_were_removed(
    app, admin, follower, wait_until_current, make_customer
):
    deleted = make_customer()
    with follower():
        wait_until_current()
    make_customer()
    admin.delete(f"/customers/{deleted['id']}")
    expire_events(app)
    with follower():
        wait_until_current()  # without an event
        make_customer()
        wait_until_current()
