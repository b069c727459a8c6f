"""SQLite as a service needs it: durable commits, writers in a queue, and always the same file."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, event

WAIT_SECONDS = 20
"""How long a writer waits for its turn."""


def prepare(engine: Engine) -> None:
    """Set up each connection of an engine, and hold it to its file."""
    event.listen(engine, "connect", _set_up)
    _stay_with_the_file(engine)


def begin_immediately(engine: Engine) -> None:
    """Begin each transaction of an engine as one that writes.

    A deferred BEGIN that turns into a write fails at once when another writer is at work.
    """
    event.listen(engine, "begin", _begin)
    event.listen(engine, "connect", _keep_journals_of_statements_in_memory)


def _begin(connection: Connection) -> None:
    """Begin as soon as no other process writes; look again every millisecond.

    SQLite would sleep for up to 100 ms between two looks, and let others pass meanwhile.
    """
    driver: Any = connection.connection.dbapi_connection
    end = time.monotonic() + WAIT_SECONDS
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
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # raises what SQLAlchemy makes of an error
    finally:
        driver.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")


def _keep_journals_of_statements_in_memory(connection: sqlite3.Connection, _: Any) -> None:
    # A statement that triggers follow has a journal of its own, whose file would cost as much as
    # the statement. Not on connections that read: a long list has to be sorted somewhere.
    connection.execute("PRAGMA temp_store = MEMORY")


def _set_up(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit is on the disk before it is answered: also a power cut loses nothing.
    connection.execute("PRAGMA synchronous = FULL")
    # The same on macOS, whose fsync leaves data in the cache of the disk.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")


def _stay_with_the_file(engine: Engine) -> None:
    """Hold a SQLite engine to the file that it opened.

    A file that was removed or replaced still takes writes, which nobody would ever read. Nor is a
    missing one made anew once there was one: somebody will bring it back.
    """
    opened: set[str] = set()

    def refuse_to_create(_: Any, __: Any, arguments: Sequence[str], ___: Any) -> None:
        if arguments[0] in opened and identity(arguments[0]) is None:
            error = sqlite3.OperationalError("the file of the database is gone")
            error.sqlite_errorname = "SQLITE_CANTOPEN"
            raise error

    def note(connection: sqlite3.Connection, record: Any) -> None:
        file = connection.execute("PRAGMA database_list").fetchone()[2]
        record.info["file"] = file, identity(file)
        opened.add(file)

    event.listen(engine, "do_connect", refuse_to_create)
    event.listen(engine, "connect", note)


def is_of_its_file(_: Any, info: Any) -> bool:
    """Tell whether the file that a connection opened still has its name."""
    file, opened_as = info["file"]
    return bool(identity(file) == opened_as)


def identity(file: str) -> tuple[int, int] | None:
    """Return what tells a file from another one of the same name; None when none is to be seen."""
    try:
        found = os.stat(file)  # noqa: PTH116  # several times a request, and thrice as fast
    except OSError:
        return None
    return found.st_dev, found.st_ino
