"""Statement timeouts (``SHOP_STATEMENT_TIMEOUT_SECONDS``).

PostgreSQL limits each statement and each batch of a long list. ``LimitedConnection`` (``sqlite``)
does the same for SQLite. Behind a pooler in transaction mode, each transaction sets its own limit.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Config
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from app.db import deadline
from app.db.sql.databases import uses_sqlite
from app.db.sqlite import LimitedConnection

MORE_IDLE_SECONDS = 5.0
"""How much longer than a request a write transaction may be idle."""

LOCAL_LIMIT = "shop_local_limit"
"""Execution option of an engine: statement that limits each transaction, behind a pooler."""

_UNLIMITED = "shop_unlimited"
"""Key in ``Connection.info`` of a connection whose transactions have no limit."""

_QUERY_CANCELED = "57014"


def idle_seconds(config: Config) -> float:
    """Return after how many idle seconds the server ends a write transaction, or 0 for no limit.

    A process or a pooler that is frozen, or whose machine is cut off, would keep its locks. The
    requests of a process that runs have ended before.
    """
    seconds: float = config["SHOP_REQUEST_TIMEOUT_SECONDS"]
    return seconds + MORE_IDLE_SECONDS if seconds else 0


def postgresql_options(seconds: float, idle_seconds: float) -> str:
    """Return the connection options for the timeouts. 0 seconds means no timeout."""
    return " ".join(f"-c {name}={value}" for name, value in _limits(seconds, idle_seconds))


def _limits(seconds: float, idle_seconds: float) -> Iterator[tuple[str, int]]:
    yield "statement_timeout", math.ceil(seconds * 1000)
    if idle_seconds:
        yield "idle_in_transaction_session_timeout", math.ceil(idle_seconds * 1000)


def local_limit(seconds: float) -> str:
    """Return the statement that limits the statements of a transaction. 0 means no timeout."""
    return f"SET LOCAL statement_timeout = {math.ceil(seconds * 1000)}"


def limit_transactions(engine: Engine, seconds: float, idle_seconds: float) -> None:
    """Let each transaction of an engine on PostgreSQL set its own limit.

    Behind a pooler in transaction mode, a limit of the session would apply to other clients.
    """
    limits = [f"SET LOCAL {name} = {value}" for name, value in _limits(seconds, idle_seconds)]
    limit, no_limit = "; ".join(limits), local_limit(0)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(no_limit if connection.info.get(_UNLIMITED) else limit)


def restart_clock(connection: Connection) -> None:
    """Restart the time for the next batch of a list, so that slow clients do not cause timeouts."""
    deadline.restart()
    driver = connection.connection.driver_connection
    if isinstance(driver, LimitedConnection):
        driver.restart()


def without_limit(connection: Connection) -> None:
    """Remove the timeout of a connection, and detach the connection from the pool."""
    _lift_session_limit(connection)  # first: a detached connection no longer has its driver
    connection.detach()


@contextmanager
def unlimited(engine: Engine) -> Iterator[Connection]:
    """Yield a connection without timeout that can change its isolation level, and close it."""
    with engine.connect() as connection:
        try:
            _lift_session_limit(connection)
            yield connection
        finally:
            connection.invalidate()


def _lift_session_limit(connection: Connection) -> None:
    driver = connection.connection.driver_connection
    connection.info[_UNLIMITED] = True
    if LOCAL_LIMIT in connection.get_execution_options():
        return  # `SET` would change the session of other clients
    if not uses_sqlite(connection):
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        connection.commit()
    elif isinstance(driver, LimitedConnection):
        driver.seconds = math.inf


def lift_limit(connection: Connection) -> None:
    """Remove the timeout of a transaction, for commands."""
    if not uses_sqlite(connection):
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        return
    driver = connection.connection.driver_connection
    if isinstance(driver, LimitedConnection):
        driver.seconds = math.inf


def is_statement_timeout(error: BaseException) -> bool:
    """Return whether an error means that a statement exceeded its timeout."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorname", "") == "SQLITE_INTERRUPT"
    return getattr(error.orig, "sqlstate", None) == _QUERY_CANCELED
