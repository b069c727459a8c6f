"""Copies of erased rows in the file of SQLite, and VACUUM by the worker (people 5)."""

import gc
import math
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask_migrate import downgrade, upgrade

from app.db import backups, erased_rows
from app.db.erased_rows import LONG_PAUSE_SECONDS, PAUSE_SECONDS, may_have_copies, remove_copies
from app.db.session import db, run_in_transaction
from app.worker import loop
from tests.webhooks.receivers import running_worker, until

pytestmark = pytest.mark.one_database

MARK = b"zqcopyofarow"
COPIES = """
    PRAGMA secure_delete = OFF; CREATE TABLE copies (text TEXT);
    INSERT INTO copies SELECT 'zqcopyofarow' || hex(randomblob(100)) FROM sqlite_schema;
    DELETE FROM copies; DROP TABLE copies
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
            if is_read(connection):
                gc.collect()  # a list of an earlier test that has not been read to its end
                assert not is_read(connection), "an earlier test left a transaction open"
        assert admin.delete(f"/customers/{make_customer()['id']}").status_code == 200
        yield app, name


def is_read(connection):
    """Write the log to the file, and return whether an older transaction prevented it."""
    return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


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


def test_a_file_is_clean_once_the_log_is_written_to_it(file, monkeypatch):
    """As long as a list is being read, the pages without copies are in the log only."""
    _app, name = file
    runs = []
    vacuum = erased_rows._vacuum
    monkeypatch.setattr(erased_rows, "_vacuum", lambda *given: runs.append(vacuum(*given)))
    with closing(sqlite3.connect(name, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM users").fetchall()
        for _attempt in range(2):
            assert remove_copies() >= PAUSE_SECONDS
            assert may_have_copies()
            assert MARK in content(name)
        reader.execute("COMMIT")
    assert remove_copies() == PAUSE_SECONDS
    assert not may_have_copies()
    assert MARK not in content(name) + content(f"{name}-wal")
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("folder", "free", "is_enough"),
    [("database", 0.9, False), ("temporary", 0.9, False), ("neither", 0.9, True)],
)
def test_vacuum_needs_free_space_on_both_disks(
    file, monkeypatch, tmp_path, folder, free, is_enough
):
    """The copy is a temporary file, and the log is beside the database."""
    _app, name = file
    size = Path(name).stat().st_size
    small = {"database": Path(name).parent, "temporary": tmp_path}.get(folder)
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))

    def usage(path):
        return SimpleNamespace(free=size * (free if path == small else 10))

    monkeypatch.setattr(erased_rows.shutil, "disk_usage", usage)
    assert (remove_copies() < LONG_PAUSE_SECONDS) == is_enough
    assert may_have_copies() != is_enough


@pytest.mark.parametrize(
    "error",
    [sqlite3.DatabaseError("database disk image is malformed"), FileNotFoundError("shop.db")],
)
def test_after_any_error_vacuum_is_tried_again_later(file, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(erased_rows, "_vacuum", fail)
    assert remove_copies() == LONG_PAUSE_SECONDS
    assert may_have_copies()


def test_an_error_of_vacuum_does_not_stop_the_sweeps(file, monkeypatch):
    app, _name = file
    swept = []

    def fail():
        raise OSError

    monkeypatch.setattr(loop, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0)
    monkeypatch.setattr(loop, "SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(loop, "remove_copies", fail)
    monkeypatch.setattr(loop.cleanup, "SWEEPS", [lambda: swept.append(1)])
    with running_worker(app):
        until(lambda: len(swept) > 1, "two sweeps")


def test_writers_get_their_time_also_if_the_end_of_vacuum_is_busy(file, monkeypatch):
    """Otherwise, they would wait for the next run a minute later."""
    vacuum = erased_rows._vacuum
    with closing(sqlite3.connect(file[1], isolation_level=None)) as writer:

        def busy(*given):
            vacuum(*given)
            writer.execute("BEGIN IMMEDIATE")

        monkeypatch.setattr(erased_rows, "_LOCK_SECONDS", 0.01)
        monkeypatch.setattr(erased_rows, "_vacuum", busy)
        monkeypatch.setattr(erased_rows, "SHARE", 10**6)
        assert remove_copies() > PAUSE_SECONDS
        writer.execute("ROLLBACK")
    assert may_have_copies()


def test_a_number_of_erasures_never_returns(file):
    """A worker that waits for VACUUM of another one must not pass over the erasure after it."""
    with closing(sqlite3.connect(file[1])) as connection:
        numbers = []
        for _erasure in range(3):
            run_in_transaction(erased_rows.note_erasure)
            numbers += connection.execute("PRAGMA user_version").fetchone()
            remove_copies()
            numbers += connection.execute("PRAGMA user_version").fetchone()
    assert len({*map(abs, numbers)}) == len(numbers)
    assert [number > 0 for number in numbers] == [True, False] * 3


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


@pytest.mark.parametrize("had_rows", [False, True])
def test_the_upgrade_finds_copies_of_earlier_erasures(make_app, migrated_database_url, had_rows):
    """Erasures of earlier versions, also in a backup, did not count up ``user_version``."""
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        downgrade(revision="0071")
        if had_rows:
            with db.engine.begin() as connection:
                connection.exec_driver_sql("INSERT INTO item_ids DEFAULT VALUES")
                connection.exec_driver_sql("DELETE FROM item_ids")
        upgrade()
        assert may_have_copies() == had_rows
        remove_copies()
        assert not may_have_copies()
