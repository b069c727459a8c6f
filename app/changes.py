"""Whether the database may have changed: what a cache asks before it answers from memory."""

from __future__ import annotations

import sqlite3
import time
from threading import Lock
from typing import Any, ClassVar

from sqlalchemy import Engine, event

from app import sqlite

SECONDS = 1.0
"""How long, at most, a commit of another process goes unnoticed on PostgreSQL."""


class Changes:
    """Notices commits.

    SQLite tells of every commit, whoever made it. Elsewhere a commit of this process, by any app
    in it, is noticed at once, that of another process after SECONDS at most.
    """

    _own: ClassVar[object] = object()

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._watch: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # that it has opened
        event.listen(engine, "engine_disposed", self._close)

    def committed(self) -> None:
        """Be told that this process has committed something."""
        Changes._own = object()

    def mark(self) -> object:
        """Return a mark; two of them are equal only when nothing can have changed in between."""
        if self._engine.dialect.name == "sqlite":
            return self._own, self._version()
        return self._own, int(time.monotonic() / SECONDS)

    def _version(self) -> Any:
        """Return a number that another connection's commit changes, and the file that it is of."""
        name: str = self._engine.url.database or ""
        file = sqlite.identity(name)
        with self._lock:
            try:
                if self._watch is None or file != self._file:
                    if self._watch is not None:
                        self._watch.close()
                    self._watch, self._file = _open(name, file), file
                return file, self._watch.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                return object()  # equal to nothing; whoever reads next meets the error

    def _close(self, _: Engine) -> None:
        with self._lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None


def _open(name: str, file: tuple[int, int] | None) -> sqlite3.Connection:
    """Return a connection that no pool has: the pool is for those who read."""
    if file is None:
        raise sqlite3.OperationalError
    return sqlite3.connect(name, check_same_thread=False)
