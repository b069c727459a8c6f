"""SQLite: durable commits, serialized writers, limited statements and checks of the file."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError

from app.db import deadline

WAIT_SECONDS = 20
"""How long a writer waits for the write lock."""

STEPS = 100_000
"""Number of SQLite steps between two checks of the time, which take a few milliseconds.

A check needs the global interpreter lock, which a busy thread can hold for a while. With a check
every 1000 steps, a long statement takes 2.6 times as long."""


class LimitedConnection(sqlite3.Connection):
    """A SQLite connection with a statement timeout.

    The time starts with each new cursor, because SQLAlchemy creates a cursor for each statement.
    This takes 1 microsecond, while an event of SQLAlchemy before each statement takes 20.
    """

    def __init__(self, *args: Any, seconds: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seconds = seconds
        self.restart()
        self.set_progress_handler(self._is_expired, STEPS)

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Start the time of a statement and return a cursor.

        Raises:
            OperationalError: it is too late for a further statement of the request.
        """
        self.restart()
        return super().cursor(*args, **kwargs)

    def restart(self) -> None:
        """Restart the time of the statement, or raise OperationalError after the deadline."""
        seconds = deadline.statement_seconds()
        if not seconds:
            error = sqlite3.OperationalError("the request took too long")
            error.sqlite_errorname = "SQLITE_INTERRUPT"
            error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
            raise error
        self._end = time.monotonic() + min(self.seconds, seconds)

    def _is_expired(self) -> bool:
        return time.monotonic() > self._end


def prepare(engine: Engine) -> None:
    """Configure each connection of an engine and detect a replaced database file."""
    event.listen(engine, "connect", _configure)
    _check_file(engine)


def begin_immediately(engine: Engine) -> None:
    """Begin each transaction of an engine with BEGIN IMMEDIATE.

    A deferred transaction that starts to write fails immediately if another transaction writes.
    """
    event.listen(engine, "begin", _begin)
    event.listen(engine, "connect", _keep_statement_journals_in_memory)


def map_file(engine: Engine) -> None:
    """Let the connections of an engine read pages of the file from memory that all processes share.

    A page in the middle of a long list skips thousands of pages of an index, which are too many for
    the cache of a connection. Without the mapping, copying them takes half of the time.
    """
    event.listen(engine, "connect", _map_file)


def _map_file(connection: sqlite3.Connection, _: object) -> None:
    # The largest value that SQLite accepts by default. A longer file is read as usual from there.
    connection.execute(f"PRAGMA mmap_size = {2**31 - 2**16}")


def _begin(connection: Connection) -> None:
    """Begin a transaction as soon as no other process writes, and check every millisecond.

    SQLite itself would sleep for up to 100 ms between two checks, while other writers go first.
    """
    driver: Any = connection.connection.dbapi_connection
    end = time.monotonic() + min(WAIT_SECONDS, deadline.left())
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while time.monotonic() < end:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    break
                time.sleep(0.001)
            else:
                return
        connection.exec_driver_sql(
            "BEGIN IMMEDIATE"
        )  # raises the error as an exception of SQLAlchemy
    finally:
        driver.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")


@contextmanager
def without_waiting(connection: Connection) -> Iterator[None]:
    """Let the statements of a connection fail immediately while another connection writes."""
    driver: Any = connection.connection.driver_connection
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")


def _keep_statement_journals_in_memory(connection: sqlite3.Connection, _: object) -> None:
    # A statement with triggers has its own journal, and a journal file would take as long as the
    # statement. Read connections still need files to sort long lists.
    connection.execute("PRAGMA temp_store = MEMORY")


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin explicitly
    connection.execute("PRAGMA journal_mode = WAL")
    # Commits are on the disk before the response, so that a power failure loses nothing.
    connection.execute("PRAGMA synchronous = FULL")
    # On macOS, fsync alone leaves data in the cache of the disk.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    # Deleted personal data is overwritten. See also ``erased_rows``.
    connection.execute("PRAGMA secure_delete = ON")


def _check_file(engine: Engine) -> None:
    """Make a SQLite engine use only the file that it opened first.

    Writes to a removed or replaced file would succeed and be lost. A missing file is not created
    again, because it might be restored. A new file is readable by its owner only, and so are its
    journals, to which SQLite gives the same mode.
    """
    opened: set[str] = set()

    def create_once(_: object, __: object, arguments: Sequence[str], ___: object) -> None:
        file = arguments[0]
        if not file.startswith("/") or _identity(file) is not None:
            return
        if file in opened:
            error = sqlite3.OperationalError("the database file is missing")
            error.sqlite_errorname = "SQLITE_CANTOPEN"
            raise error
        with suppress(OSError):  # SQLite reports the reason
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))

    def store_identity(connection: sqlite3.Connection, record: Any) -> None:
        file = connection.execute("PRAGMA database_list").fetchone()[2]
        record.info["file"] = file, _identity(file)
        opened.add(file)

    def require_file(_: object, record: Any, __: object) -> None:
        file, opened_as = record.info["file"]
        if _identity(file) != opened_as:
            raise DisconnectionError  # the pool replaces the connection

    event.listen(engine, "do_connect", create_once)
    event.listen(engine, "connect", store_identity)
    event.listen(engine, "checkout", require_file)


def _identity(file: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if the file does not exist."""
    try:
        found = os.stat(file)  # noqa: PTH116  # called several times per request, and three times as fast
    except OSError:
        return None
    return found.st_dev, found.st_ino
