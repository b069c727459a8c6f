"""Copies of erased rows in the file of SQLite, which VACUUM removes.

``secure_delete`` overwrites a deleted row, but not the copies that SQLite left in the free space of
pages when it moved the row to another page, which no setting prevents. An erasure therefore counts
up the ``user_version`` of the file, which nothing else uses, and the worker runs VACUUM.

Readers do not wait for VACUUM, but writers do. It is given up before a request could fail.
"""

import logging
import math
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

from flask import current_app
from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from app.db import timeouts
from app.db.read_pool import READ, fetch
from app.db.session import db, truncate_write_ahead_log
from app.db.sql.databases import uses_sqlite
from app.db.sqlite import WAIT_SECONDS

PAUSE_SECONDS = 60.0
"""Least interval in seconds between two runs of VACUUM."""

SHARE = 100
"""Writers wait for at most this part of the time: a run of 3 seconds is followed by 5 minutes."""

LONG_PAUSE_SECONDS = 3600.0
"""Seconds until the next attempt, after VACUUM took too long or failed."""

_STEPS = 10_000
"""Number of SQLite steps between two checks of the time, which take about a millisecond."""

_LOCK_SECONDS = 1.0
"""How long VACUUM waits for other writers."""

_VERSION = text("PRAGMA user_version")

_log = logging.getLogger(__name__)


def note_erasure(session: Session) -> None:
    """Note that the file contains copies of erased rows once the transaction is committed."""
    connection = session.connection()
    if uses_sqlite(connection):
        driver = _driver(connection)
        (number,) = driver.execute("PRAGMA user_version").fetchone()
        driver.execute(f"PRAGMA user_version = {number % 2**30 + 1}")


def may_have_copies() -> bool:
    """Return whether the file can contain copies of erased rows. False on PostgreSQL."""
    return uses_sqlite(db.engines[READ]) and fetch(_VERSION)[0][0] > 0


def remove_copies() -> float:
    """Run VACUUM after erasures, and empty the write-ahead log.

    Returns:
        Seconds after which to call this again.
    """
    engine = db.engines[READ]
    if not uses_sqlite(engine):
        return math.inf
    if not may_have_copies():
        return PAUSE_SECONDS
    start = time.monotonic()
    try:
        with timeouts.unlimited(engine) as connection:
            _vacuum(_driver(connection), Path(engine.url.database or ""))
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            return PAUSE_SECONDS
        _log.warning("VACUUM was given up, so the file can contain erased rows: %s", error)
        return LONG_PAUSE_SECONDS
    truncate_write_ahead_log()
    return max(PAUSE_SECONDS, SHARE * (time.monotonic() - start))


def _vacuum(driver: sqlite3.Connection, file: Path) -> None:
    """Run VACUUM, and note it, unless there were further erasures meanwhile.

    Raises:
        OperationalError: another transaction writes, VACUUM took too long, or the disk is full.
    """
    if shutil.disk_usage(file.parent).free < 3 * file.stat().st_size:  # a copy, and the log
        raise sqlite3.OperationalError("the disk has too little free space")
    (number,) = driver.execute("PRAGMA user_version").fetchone()
    # The copy that can be interrupted takes less than half of the time that writers wait.
    seconds = min(current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"] or math.inf, WAIT_SECONDS) / 5
    end = time.monotonic() + _LOCK_SECONDS + seconds
    driver.execute(f"PRAGMA busy_timeout = {_LOCK_SECONDS * 1000:.0f}")
    driver.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    driver.execute("VACUUM")
    driver.set_progress_handler(None, 0)
    driver.execute("BEGIN IMMEDIATE")
    if driver.execute("PRAGMA user_version").fetchone() == (number,):
        driver.execute("PRAGMA user_version = 0")
    driver.execute("COMMIT")


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
