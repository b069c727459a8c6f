"""A statement that takes too long is stopped (``SHOP_STATEMENT_TIMEOUT_SECONDS``).

PostgreSQL does it by itself, for each statement, and for each batch of a long list. SQLite is
made to do the same.
"""

from __future__ import annotations

import math
import sqlite3
import time
from functools import partial
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

STEPS = 100_000
"""How often SQLite looks at the clock: every few milliseconds, which costs nothing measurable.

Looking needs Python's lock, and each time a busy thread can keep it for a while: every 1000 steps
make a long statement take 2.6 times as long."""

_QUERY_CANCELED = "57014"


class LimitedConnection(sqlite3.Connection):
    """A connection to SQLite that stops a statement after a time, as PostgreSQL does by itself.

    A new cursor begins a new statement: so SQLAlchemy uses it. Its event before each statement
    would cost 20 microseconds; this costs one.
    """

    def __init__(self, *args: Any, seconds: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seconds = seconds
        self.restart()
        self.set_progress_handler(self._has_run_out, STEPS)

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        """Begin a statement."""
        self.restart()
        return super().cursor(*args, **kwargs)

    def restart(self) -> None:
        """Give the statement its time once more."""
        self._end = time.monotonic() + self.seconds

    def _has_run_out(self) -> bool:
        return time.monotonic() > self._end


def postgresql_option(seconds: float) -> str:
    """Return the option of a connection that limits its statements; 0 seconds: not at all."""
    return f"-c statement_timeout={math.ceil(seconds * 1000)}"


def sqlite_option(seconds: float) -> dict[str, Any]:
    """Return the argument of ``sqlite3.connect`` that limits statements; 0 seconds: none."""
    return {"factory": partial(LimitedConnection, seconds=seconds)} if seconds else {}


def restart_clock(connection: Connection) -> None:
    """Give the next batch of a list the time of a statement, however long the client took."""
    driver = connection.connection.driver_connection
    if isinstance(driver, LimitedConnection):
        driver.restart()


def without_limit(connection: Connection) -> None:
    """Let the statements of a connection, which nobody will use afterwards, take their time."""
    driver = connection.connection.driver_connection
    connection.detach()
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.commit()
    elif isinstance(driver, LimitedConnection):
        driver.seconds = math.inf


def lift_limit(connection: Connection) -> None:
    """Let the statements of a transaction take their time; for commands, which nobody waits for."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        return
    driver = connection.connection.driver_connection
    if isinstance(driver, LimitedConnection):
        driver.seconds = math.inf


def took_too_long(error: BaseException) -> bool:
    """Tell whether an error says that a statement was stopped."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorname", "") == "SQLITE_INTERRUPT"
    return getattr(error.orig, "sqlstate", None) == _QUERY_CANCELED
