"""Whether keys may have changed: what a cache of them asks before it answers from memory."""

from __future__ import annotations

import sqlite3
import time
from threading import Lock
from typing import Any, ClassVar, Protocol

import psycopg
from sqlalchemy import Engine, event

from app.db import sqlite

CHANNEL = "shop_keys"
"""Where PostgreSQL tells that a key, or a role of somebody with a key, has changed: by triggers."""

SECONDS = 1.0
"""How long, at most, a change by another process goes unnoticed on PostgreSQL.

Usually none: it is told within a millisecond. A pooler between, that hands connections from one
client to another, may swallow what it tells."""


class Watch(Protocol):
    """Sees what other processes commit."""

    def mark(self) -> object:
        """Return a mark that another process's commit changes."""

    def close(self) -> None:
        """Give back what it holds open; the next mark opens it again."""


class Changes:
    """Notices commits: those of this process, by any app in it, and those of others."""

    _own: ClassVar[object] = object()

    def __init__(self, engine: Engine) -> None:
        on_sqlite = engine.dialect.name == "sqlite"
        self._watch: Watch = _SQLite(engine) if on_sqlite else _PostgreSQL(engine)
        self._lock = Lock()
        event.listen(engine, "engine_disposed", self._close)

    def committed(self) -> None:
        """Be told that this process has committed something."""
        Changes._own = object()

    def mark(self) -> object:
        """Return a mark; two of them are equal only when nothing can have changed in between."""
        own = self._own
        if not self._lock.acquire(timeout=0.1):
            return object()  # equal to nothing: somebody is waiting for the database
        try:
            return own, self._watch.mark()
        except (sqlite3.Error, psycopg.Error):
            self._watch.close()
            return object()  # whoever reads next meets the error
        finally:
            self._lock.release()

    def _close(self, _: Engine) -> None:
        with self._lock:
            self._watch.close()


class _SQLite:
    """SQLite counts the commits of all other connections to a file."""

    def __init__(self, engine: Engine) -> None:
        self._name: str = engine.url.database or ""
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that the connection has opened

    def mark(self) -> object:
        file = sqlite.identity(self._name)
        if file is None:
            raise sqlite3.OperationalError
        if self._connection is None or file != self._file:
            self.close()
            # Of no pool: that is for those who read.
            self._connection = sqlite3.connect(self._name, check_same_thread=False)
            self._file = file
        return file, self._connection.execute("PRAGMA data_version").fetchone()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _PostgreSQL:
    """PostgreSQL tells those who listen. What has arrived is seen without asking."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Any = None
        self._heard = 0
        self._again = 0.0

    def mark(self) -> object:
        moment = time.monotonic()
        if self._connection is None:
            if moment < self._again:
                return object()
            self._again = moment + SECONDS
            self._connection = self._listen()
        self._connection.pgconn.consume_input()
        while self._connection.pgconn.notifies():
            self._heard += 1
        return self._heard, int(moment / SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()  # of an app that nobody has closed

    def _listen(self) -> Any:
        arguments, options = self._engine.dialect.create_connect_args(self._engine.url)
        connection: Any = self._engine.dialect.connect(*arguments, **options, connect_timeout=5)
        connection.autocommit = True
        connection.execute(f"LISTEN {CHANNEL}")
        self._heard += 1
        return connection
