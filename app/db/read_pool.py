"""How selects run: on connections of the read engine, whose statements commit by themselves.

A select is a statement, not a transaction: ``fetch`` runs one, ``snapshot`` several that see the
same state of the database, and ``RowStream`` one whose rows are too many for memory.
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
"""The engines that read, by their names in ``SQLALCHEMY_BINDS``."""

MAX_SELECTS = 100
"""How many selects of a kind are kept, so that they are not built again for each request."""

Fetch = Callable[..., Sequence[Any]]
"""Returns all rows of a select: takes it, and its parameters where it has some."""


def read_engine() -> Engine:
    """Return the engine of the current app whose statements commit by themselves."""
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
    """Give a ``fetch`` of which all calls see the same state of the database."""
    with read_engine().connect() as connection:
        driver: Any = connection.connection.driver_connection
        on_sqlite = connection.dialect.name == "sqlite"
        # On SQLite neither can fail, and the driver's own call takes a tenth of the time.
        run = driver.execute if on_sqlite else connection.exec_driver_sql

        def fetch_here(
            statement: Executable, parameters: Mapping[str, Any] | None = None
        ) -> Sequence[Any]:
            return connection.execute(statement, parameters).all()

        try:
            run("BEGIN" if on_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield fetch_here
            run("COMMIT")
        except BaseException:
            connection.invalidate()  # nobody else gets a connection with an open transaction
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
    """The rows of a select in batches, as one snapshot, in constant memory.

    The first batch is read at once, so that a statement that fails does so here. There is a
    connection for each of as many streams as there are threads; one more is refused at once,
    since a stream lasts as long as its client likes. The connection is released at the end, after
    an error, or by ``close``.
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
        """Return the batches, none of them empty."""
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
        with suppress(DBAPIError):  # the rows that were read are not affected
            if self._result is not None:
                self._result.close()
        self._connection.invalidate()  # it may be lost, or in the middle of a result
        self._connection.close()

    def __del__(self) -> None:
        """Release the connection of a response that was never sent."""
        if hasattr(self, "_connection"):
            self.close()
