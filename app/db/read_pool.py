"""How selects run: on connections that are kept, in AUTOCOMMIT.

A select is a statement, not a transaction. To take a connection out of the pool and to give it back
costs more than to read a record: so a reader keeps connections between requests, as many as
there were requests at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import BoundedSemaphore
from typing import Any

import psycopg
from flask import current_app
from sqlalchemy import Connection, Engine, Executable, Result, Row, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.db import timeouts
from app.db.ready import Parameters, Ready

READER = "shop_api_reader"
"""Where an app keeps its reader, on ``app.extensions``."""

WAIT_SECONDS = 30

Usable = Callable[[Any, Any], bool]
"""Tells of a connection of the driver, and of what is noted about it, whether it is still good."""


Fetch = Callable[..., Sequence[Any]]
"""Returns all rows of a select: takes it, and its parameters where it has some."""


class Reader:
    """Runs selects, each on a connection that nobody else uses meanwhile.

    Args:
        engine: opens connections whose statements commit by themselves; it keeps none itself.
        usable: looks at a connection that was kept, without asking the server.
        most: selects at once, for whose end others wait; and streams at once, which last as long as
            their clients like, so that others do not.
    """

    def __init__(self, engine: Engine, usable: Usable, most: int) -> None:
        self.engine = engine
        self.in_use: Callable[[int], object] = lambda _: None  # told +1 and -1
        self.failed: Callable[[DBAPIError], object] = lambda _: None  # told what engines do not see
        self._usable = usable
        self._free = BoundedSemaphore(most)
        self._free_streams = BoundedSemaphore(most)
        self._kept: deque[Connection] = deque()
        event.listen(engine, "engine_disposed", self._end_what_is_kept)

    def fetch(
        self, statement: Executable | Ready, parameters: Parameters | None = None
    ) -> Sequence[Any]:
        """Return all rows of a select."""
        connection = self.take()
        try:
            rows = self._rows(connection, statement, parameters)
        except BaseException:
            self.end(connection)
            raise
        self.give_back(connection)
        return rows

    @contextmanager
    def snapshot(self) -> Iterator[Fetch]:
        """Give a ``fetch`` of which all calls see the same moment of the database."""
        connection = self.take()
        on_sqlite = self.engine.dialect.name == "sqlite"
        driver: Any = connection.connection.driver_connection
        # Neither can fail in SQLite, where they are a tenth of SQLAlchemy's way.
        run = driver.execute if on_sqlite else connection.exec_driver_sql
        try:
            run("BEGIN" if on_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield partial(self._rows, connection)
            run("COMMIT")
        except BaseException:
            self.end(connection)
            raise
        self.give_back(connection)

    def _rows(
        self,
        connection: Connection,
        statement: Executable | Ready,
        parameters: Parameters | None = None,
    ) -> Sequence[Any]:
        if isinstance(statement, Ready):
            if not _is_listened_to(connection):
                try:
                    return statement.rows(connection, parameters or {})
                except DBAPIError as error:
                    self.failed(error)
                    raise
            statement = statement.select
        return connection.execute(statement, dict(parameters or {})).all()

    def take(self) -> Connection:
        """Return a connection, for a caller who gives it back or ends it."""
        refusal = f"no connection to read was free for {WAIT_SECONDS} seconds"
        return self._taken(self._free, WAIT_SECONDS, refusal, self._kept_or_new)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next one who reads; nothing runs on it."""
        self._kept.append(connection)
        self.in_use(-1)
        self._free.release()

    def end(self, connection: Connection) -> None:
        """Close a connection that is not as it was, or lost."""
        self._ended(self._free, connection)

    def take_for_stream(self) -> Connection:
        """Return a connection whose settings may be changed, for a caller who ends the stream."""
        refusal = "as many long lists are being read as may be at once"
        return self._taken(self._free_streams, 0, refusal, self.engine.connect)

    def end_stream(self, connection: Connection) -> None:
        """Close a connection that was taken for a stream."""
        self._ended(self._free_streams, connection)

    def _taken(
        self, free: BoundedSemaphore, seconds: float, refusal: str, get: Callable[[], Connection]
    ) -> Connection:
        if not free.acquire(timeout=seconds):
            raise PoolTimeoutError(refusal)
        try:
            connection = get()
        except BaseException:
            free.release()
            raise
        self.in_use(1)
        return connection

    def _ended(self, free: BoundedSemaphore, connection: Connection) -> None:
        try:
            _end(connection)
        finally:
            self.in_use(-1)
            free.release()

    def _kept_or_new(self) -> Connection:
        while self._kept:
            with suppress(IndexError):  # another thread was quicker
                connection = self._kept.pop()
                if self._is_good(connection):
                    return connection
                _end(connection)
        return self.engine.connect()

    def _is_good(self, connection: Connection) -> bool:
        pooled = connection.connection
        try:
            return self._usable(pooled.dbapi_connection, pooled.info)
        except (OSError, psycopg.Error):  # closed already, or a file that cannot be looked at
            return False

    def _end_what_is_kept(self, _: Engine) -> None:
        while self._kept:
            _end(self._kept.pop())


def _is_listened_to(connection: Connection) -> bool:
    """Tell whether anybody traces or counts SQLAlchemy's statements, who shall miss none."""
    heard = connection.dispatch
    return bool(
        heard.before_cursor_execute
        or heard.after_cursor_execute
        or heard.before_execute
        or heard.after_execute
    )


def _end(connection: Connection) -> None:
    """Close a connection to the database: the pool does not get it back."""
    connection.invalidate()
    connection.close()


def reader() -> Reader:
    """Return the reader of the current app."""
    found: Reader = current_app.extensions[READER]
    return found


_own_connection: ContextVar[Connection | None] = ContextVar("own_connection", default=None)


def fetch(statement: Executable | Ready, parameters: Parameters | None = None) -> Sequence[Any]:
    """Return all rows of a select."""
    if (connection := _own_connection.get()) is not None:
        select = statement.select if isinstance(statement, Ready) else statement
        return connection.execute(select, dict(parameters or {})).all()
    return reader().fetch(statement, parameters)


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

    The first batch is read at once, so that a statement that fails does so here. The connection
    is given back at the end, after an error, or by ``close``.
    """

    def __init__(
        self, statement: Executable, parameters: dict[str, Any] | None = None, batch: int = 500
    ) -> None:
        self._reader = reader()
        self._result: Result[Any] | None = None
        self._is_closed = False
        self._connection = self._reader.take_for_stream()
        try:
            if self._connection.dialect.name == "postgresql":
                # A server-side cursor lives in a transaction.
                self._connection.execution_options(isolation_level="REPEATABLE READ")
            connection = self._connection.execution_options(yield_per=batch)
            self._result = connection.execute(statement, parameters)
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
        """Give the connection back, also before the end, and also a lost one."""
        if self._is_closed:
            return
        self._is_closed = True
        # What was read is read: that the database went away then concerns nobody here.
        with suppress(DBAPIError):
            if self._result is not None:
                self._result.close()
        self._reader.end_stream(self._connection)

    def __del__(self) -> None:
        """Give back the connection of an answer that nobody sent."""
        if hasattr(self, "_connection"):
            self.close()
