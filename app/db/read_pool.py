"""Execution of selects on the read engine, which is in AUTOCOMMIT mode.

``fetch`` runs one select, ``snapshot`` runs several selects that see the same state of the
database, and ``RowStream`` runs a select with more rows than fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from flask import current_app
from sqlalchemy import Connection, Engine, Executable, Result, Row
from sqlalchemy.exc import DBAPIError

from app.db import timeouts

READ, STREAM = "read", "stream"
"""The names of the read engines in ``SQLALCHEMY_BINDS``."""

MAX_SELECTS = 100
"""Cache size for compiled selects of one kind."""

Fetch = Callable[..., Sequence[Any]]
"""Function that takes a select and optional parameters and returns all rows."""


def read_engine() -> Engine:
    """Return the read engine of the current app."""
    return _engine(READ)


def _engine(name: str) -> Engine:
    engine: Engine = current_app.extensions["sqlalchemy"].engines[name]
    return engine


_own_connection: ContextVar[Connection | None] = ContextVar("own_connection", default=None)


def fetch(statement: Executable, parameters: Mapping[str, Any] | None = None) -> Sequence[Any]:
    """Return all rows of a select."""
    if (own := _own_connection.get()) is not None:
        return own.execute(statement, parameters).all()
    with read_engine().connect() as connection:
        return connection.execute(statement, parameters).all()


@contextmanager
def snapshot() -> Iterator[Fetch]:
    """Yield a ``fetch`` function whose calls all see the same state of the database."""
    with read_engine().connect() as connection:
        driver: Any = connection.connection.driver_connection
        on_sqlite = connection.dialect.name == "sqlite"
        # On SQLite these statements cannot fail, and the driver's method takes a tenth of the time.
        run = driver.execute if on_sqlite else connection.exec_driver_sql

        def fetch_in_snapshot(
            statement: Executable, parameters: Mapping[str, Any] | None = None
        ) -> Sequence[Any]:
            return connection.execute(statement, parameters).all()

        try:
            run("BEGIN" if on_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield fetch_in_snapshot
            run("COMMIT")
        except BaseException:
            connection.invalidate()  # do not reuse a connection with an open transaction
            raise


@contextmanager
def fetching_from(connection: Connection) -> Iterator[None]:
    """Let ``fetch`` read on a connection, which sees what its own transaction has written."""
    token = _own_connection.set(connection)
    try:
        yield
    finally:
        _own_connection.reset(token)


class RowStream:
    """The rows of a select in batches, from one snapshot and in constant memory.

    The constructor reads the first batch, so that it raises the errors of the statement. The pool
    has one connection per thread. With all of them in use, another stream fails immediately,
    because the client determines how long a stream takes. The connection is released at the end,
    after an error, or by ``close``.
    """

    def __init__(
        self, statement: Executable, parameters: dict[str, Any] | None = None, batch: int = 500
    ) -> None:
        self._result: Result[Any] | None = None
        self._connection = _engine(STREAM).connect().execution_options(yield_per=batch)
        try:
            self._result = self._connection.execute(statement, parameters)
            self._rest = self._result.partitions()
            self._first = next(self._rest, ())
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[Sequence[Row[Any]]]:
        """Yield the batches, which are never empty."""
        try:
            batch = self._first
            while batch:
                yield batch
                timeouts.restart_clock(self._connection)
                batch = next(self._rest, ())
        finally:
            self.close()

    def close(self) -> None:
        """Release the connection. Safe to call early, twice, or after the connection is lost."""
        if self._connection.closed:
            return
        with suppress(DBAPIError):  # does not affect the rows that have been read
            if self._result is not None:
                self._result.close()
        self._connection.invalidate()  # it may be lost, or in the middle of a result
        self._connection.close()

    def __del__(self) -> None:
        """Release the connection if the response was never sent."""
        if hasattr(self, "_connection"):
            self.close()
