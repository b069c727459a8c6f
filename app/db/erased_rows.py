"""Copies of erased rows in the file of SQLite, which VACUUM removes.

``secure_delete`` overwrites a deleted row, but not the copies that SQLite left in the free space of
pages when it moved the row to another page, which no setting prevents. An erasure therefore counts
up the ``user_version`` of the file, which nothing else uses, and the worker removes the copies. The
number says what is missing:

- odd: VACUUM, which writes the pages without copies to the write-ahead log.
- even: the checkpoint, which writes the log to the file, once nothing reads its old pages.
- 0 or negative: nothing.

No number returns, so a worker cannot pass over an erasure while another one removes copies.
Readers do not wait for VACUUM, but writers do. It is given up before a request could fail.
"""

import logging
import math
import os
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
"""Least interval in seconds between two attempts."""

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
        following = (abs(_number(driver)) % 2**30 + 1) | 1
        driver.execute(f"PRAGMA user_version = {following}")


def may_have_copies() -> bool:
    """Return whether the file can contain copies of erased rows. False on PostgreSQL."""
    return uses_sqlite(db.engines[READ]) and fetch(_VERSION)[0][0] > 0


def remove_copies() -> float:
    """Do what is missing after erasures: VACUUM, and the checkpoint.

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
            _remove(_driver(connection), Path(engine.url.database or ""))
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            _log.warning("VACUUM was given up, so the file can contain erased rows: %s", error)
            return LONG_PAUSE_SECONDS
    return max(PAUSE_SECONDS, SHARE * (time.monotonic() - start))


def _remove(driver: sqlite3.Connection, file: Path) -> None:
    """Do what is missing.

    Raises:
        OperationalError: another transaction writes, VACUUM took too long, or the disk is full.
        DatabaseError: the file is damaged.
        OSError: the file is missing.
    """
    driver.execute(f"PRAGMA busy_timeout = {_LOCK_SECONDS * 1000:.0f}")
    number = _number(driver)
    if number % 2:
        _vacuum(driver, file)
        _replace(driver, number, number + 1)
        number += 1
    if number > 0 and truncate_write_ahead_log():
        _replace(driver, number, -number)


def _vacuum(driver: sqlite3.Connection, file: Path) -> None:
    _require_space(file)
    # The copy that can be interrupted takes less than half of the time that writers wait.
    seconds = min(current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"] or math.inf, WAIT_SECONDS) / 5
    end = time.monotonic() + _LOCK_SECONDS + seconds
    driver.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    driver.execute("VACUUM")
    driver.set_progress_handler(None, 0)


def _require_space(file: Path) -> None:
    """Require space for a copy in SQLite's folder for temporary files, and for one in the log."""
    size = file.stat().st_size
    folders = (file.parent, _temporary_folder())
    devices = [folder.stat().st_dev for folder in folders]
    for folder, device in zip(folders, devices, strict=True):
        if shutil.disk_usage(folder).free < size * devices.count(device):
            raise sqlite3.OperationalError(f"the disk of {folder} has too little free space")


def _temporary_folder() -> Path:
    """Return the first folder that SQLite can write to (https://sqlite.org/tempfiles.html, 5)."""
    configured = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"))
    # Only how much is free there is read.
    folders = (*configured, "/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108  # nosec B108  # see above
    usable = (each for each in folders if each and os.access(each, os.W_OK | os.X_OK))
    return Path(next(usable, "."))


def _replace(driver: sqlite3.Connection, number: int, following: int) -> None:
    """Replace a number, unless there was another erasure meanwhile."""
    driver.execute("BEGIN IMMEDIATE")
    if _number(driver) == number:
        driver.execute(f"PRAGMA user_version = {following}")
    driver.execute("COMMIT")


def _number(driver: sqlite3.Connection) -> int:
    number: int = driver.execute("PRAGMA user_version").fetchone()[0]
    return number


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
