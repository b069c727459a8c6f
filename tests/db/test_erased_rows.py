"""Copies of erased rows in the file of SQLite, and VACUUM by the worker (people 5)."""

import math
import sqlite3
import subprocess
from contextlib import closing
from types import SimpleNamespace

import pytest

from app.db import backups, erased_rows
from app.db.erased_rows import LONG_PAUSE_SECONDS, PAUSE_SECONDS, may_have_copies, remove_copies
from app.db.session import db, run_in_transaction
from tests.webhooks.receivers import running_worker, until

pytestmark = pytest.mark.one_database

MARK = b"zqcopyofarow"
COPIES = """
    PRAGMA secure_delete = OFF; CREATE TABLE copies (text TEXT);
    INSERT INTO copies SELECT 'zqcopyofarow' || hex(randomblob(100)) FROM sqlite_schema;
    DELETE FROM copies; DROP TABLE copies; PRAGMA wal_checkpoint(TRUNCATE)
"""


@pytest.fixture
def file(make_app, admin, make_customer, database_url):
    """The file of an app with copies of deleted rows, as SQLite leaves them, after an erasure."""
    app = make_app()
    with app.app_context():
        if "sqlite" not in database_url:
            yield app, ""
            return
        name = db.engine.url.database
        with closing(sqlite3.connect(name)) as connection:
            connection.executescript(COPIES)
        assert admin.delete(f"/customers/{make_customer()['id']}").status_code == 200
        yield app, name


def content(name):
    """The bytes of a file. The test process must not open it, which would end SQLite's locks."""
    return subprocess.run(["cat", name], capture_output=True, check=True).stdout


@pytest.mark.both_databases
def test_the_worker_removes_copies_after_an_erasure(file, monkeypatch):
    app, name = file
    if not name:
        assert not may_have_copies()
        assert remove_copies() == math.inf
        return
    assert may_have_copies()
    assert MARK in content(name)
    monkeypatch.setattr("app.worker.loop.PAUSE_SECONDS", 0)
    with running_worker(app):
        until(lambda: not may_have_copies(), "VACUUM")
    assert MARK not in content(name) + content(f"{name}-wal")
    assert remove_copies() == PAUSE_SECONDS


def test_vacuum_is_given_up_before_requests_fail(file, admin, monkeypatch):
    app, name = file
    monkeypatch.setattr(erased_rows, "WAIT_SECONDS", 0)
    monkeypatch.setattr(erased_rows, "_LOCK_SECONDS", 0)
    monkeypatch.setattr(erased_rows, "_STEPS", 1)
    assert remove_copies() == LONG_PAUSE_SECONDS
    assert may_have_copies()
    assert MARK in content(name)
    shown = app.test_cli_runner().invoke(args=["doctor"]).output
    assert "warn   erased rows: the database file can still contain copies of erased rows" in shown
    assert admin.post("/coupons", {"coupon": {"code": "later"}}).status_code == 201


def test_vacuum_waits_for_other_writers(file, monkeypatch):
    _app, name = file
    monkeypatch.setattr(erased_rows, "_LOCK_SECONDS", 0.01)
    with closing(sqlite3.connect(name, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert remove_copies() == PAUSE_SECONDS
        writer.execute("ROLLBACK")
    assert may_have_copies()
    assert remove_copies() >= PAUSE_SECONDS
    assert not may_have_copies()


def test_vacuum_needs_free_space_on_the_disk(file, monkeypatch):
    monkeypatch.setattr(erased_rows.shutil, "disk_usage", lambda _path: SimpleNamespace(free=10))
    assert remove_copies() == LONG_PAUSE_SECONDS
    assert may_have_copies()


def test_a_backup_has_no_copies(file, tmp_path):
    _app, name = file
    assert MARK in content(name)
    backups.dump(db.engine, tmp_path / "copy")
    copy = content(tmp_path / "copy")
    assert MARK not in copy
    with closing(sqlite3.connect(tmp_path / "copy")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_an_erasure_during_vacuum_is_not_forgotten(file, monkeypatch):
    """The next run removes its copies."""
    driver_of = erased_rows._driver

    class Driver:
        def __init__(self, connection):
            self._driver = driver_of(connection)

        def __getattr__(self, name):
            return getattr(self._driver, name)

        def execute(self, statement):
            found = self._driver.execute(statement)
            if statement == "VACUUM":
                monkeypatch.setattr(erased_rows, "_driver", driver_of)
                run_in_transaction(erased_rows.note_erasure)
            return found

    monkeypatch.setattr(erased_rows, "_driver", Driver)
    remove_copies()
    assert may_have_copies()
    remove_copies()
    assert not may_have_copies()
