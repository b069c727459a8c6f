"""Execution of selects on the read engine, which is in AUTOCOMMIT mode.

``fetch`` runs one select, ``snapshot`` runs several selects that see the same state of the
database, and ``RowStream`` runs a select with more rows than fit into memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from flask import current_app
from sqlalchemy import Connection, Engine, Executable, Result, Row, Select
from sqlalchemy.exc import DBAPIError

from app.db import timeouts
from app.db.sql.databases import uses_sqlite

READ, STREAM = "read", "stream"
"""The names of the read engines in ``SQLALCHEMY_BINDS``."""

MAX_SELECTS = 100
"""Cache size for compiled selects of one kind."""

STREAM_ABOVE = 1000
"""More rows are not collected in memory but written row by row."""

# A plan of a prepared statement for any values can read all records with a frequent value: a list
# with two filters took ten seconds instead of 90 ms.
_BEGIN_SNAPSHOT = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = force_custom_plan"
)

Parameters = Mapping[str, Any] | None
ReadRow = Row[*tuple[Any, ...]]
"""A row that a select returns, with its values by position and by the names of the columns."""
Fetch = Callable[..., Sequence[ReadRow]]
"""Function that takes a select and optional parameters and returns all rows."""


def read_engine(name: str = READ) -> Engine:
    """Return the engine of the current app for single statements (READ) or for streams (STREAM)."""
    engine: Engine = current_app.extensions["sqlalchemy"].engines[name]
    return engine


def on_postgresql() -> bool:
    """Return whether the database is PostgreSQL."""
    return not uses_sqlite(read_engine())


class Source(Protocol):
    """Where reads can come from instead of the primary."""

    def engine(self, kind: str) -> Engine:
        """Return the engine for single statements (READ) or for streams (STREAM)."""

    def check(self, connection: Connection, lsn: int) -> None:
        """Raise an error if a connection cannot show what was written up to an LSN."""

    def replayed(self, connection: Connection) -> int:
        """Return the LSN up to which a connection shows what was written at most."""


@dataclass
class Reading:
    """Reads from a source.

    Args:
        source: where they come from.
        lsn: they show at least what was written up to this LSN.
        shown: they have shown at most what was written up to this LSN. 0 before the first read.
    """

    source: Source
    lsn: int
    shown: int = 0


_own_connection: ContextVar[Connection | None] = ContextVar("own_connection", default=None)
_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading_from(source: Source, lsn: int) -> Iterator[Reading]:
    """Let the reads of a block come from a source that shows what was written up to an LSN."""
    reading = Reading(source, lsn)
    token = _reading.set(reading)
    try:
        yield reading
    finally:
        _reading.reset(token)


def current_source() -> Source | None:
    """Return the source of reads, or None for the primary."""
    reading = _reading.get()
    return reading.source if reading else None


def read_from_primary() -> None:
    """Let all further reads of ``reading_from`` come from the primary, because a write begins."""
    if _reading.get() is not None:
        _reading.set(None)


def _note_position(connection: Connection) -> None:
    """Note what a read has shown at most, unless it was on the primary.

    The position is read afterwards and on the same connection, because a replica replays on during
    the read, and a replica that was restarted can be behind what it has shown.
    """
    if (reading := _reading.get()) is not None:
        reading.shown = max(reading.shown, reading.source.replayed(connection))


def _open(name: str) -> Connection:
    """Return a connection for reads, which is checked if it is not one to the primary."""
    reading = _reading.get()
    if reading is None:
        return read_engine(name).connect()
    connection = reading.source.engine(name).connect()
    try:
        reading.source.check(connection, reading.lsn)
    except BaseException:
        connection.close()
        raise
    return connection


def stream_connection() -> Connection:
    """Return a connection for reads that take long, which all see the same state of the database.

    Invalidate it afterwards, because its transaction is open.
    """
    connection = _open(STREAM)
    if uses_sqlite(connection):
        connection.exec_driver_sql("BEGIN")
    return connection


def begin_snapshot(connection: Connection) -> None:
    """Begin a transaction that only reads, and whose selects see one state of the database."""
    if uses_sqlite(connection):
        connection.exec_driver_sql("BEGIN")
    else:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def fetch(statement: Executable, parameters: Parameters = None) -> Sequence[ReadRow]:
    """Return all rows of a select."""
    if (own := _own_connection.get()) is not None:
        return own.execute(statement, parameters).all()
    if current_app.config["DATABASE_POOLER"]:  # a transaction sets the statement timeout
        with _transaction("BEGIN READ ONLY") as connection:
            return connection.execute(statement, parameters).all()
    with _open(READ) as connection:
        rows = connection.execute(statement, parameters).all()
        _note_position(connection)
    return rows


@contextmanager
def _transaction(begin: str) -> Iterator[Connection]:
    """Yield a connection of the read engine with a transaction that only reads.

    Args:
        begin: statement that begins the transaction.
    """
    connection, is_usable = _open(READ), False
    limit = connection.get_execution_options().get(timeouts.LOCAL_LIMIT)
    try:
        connection.exec_driver_sql(begin if limit is None else f"{begin}; {limit}")
        yield connection
        _note_position(connection)
        connection.exec_driver_sql("COMMIT")
        is_usable = True
    finally:
        if not is_usable:  # do not reuse a connection with an open transaction
            connection.invalidate()
        connection.close()


@contextmanager
def snapshot() -> Iterator[Fetch]:
    """Yield a ``fetch`` function whose calls all see the same state of the database."""
    with _snapshot() as connection:
        yield fetching(connection)


def _snapshot() -> AbstractContextManager[Connection]:
    return _transaction(_BEGIN_SNAPSHOT if on_postgresql() else "BEGIN")


def fetching(connection: Connection) -> Fetch:
    """Return a ``fetch`` function that reads on a connection."""
    return lambda statement, parameters=None: connection.execute(statement, parameters).all()


@contextmanager
def reading_connection() -> Iterator[Connection]:
    """Yield a connection whose statements see one state of the primary and cannot write.

    It waits for no other transaction, and no other transaction waits for it.
    """
    read_from_primary()
    with _snapshot() as connection:
        yield connection


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

    Args:
        connection: the ``stream_connection`` of other reads that see the same state.

    Attributes:
        first: the first batch, which is empty if there are no rows.
    """

    def __init__(
        self,
        statement: Executable,
        parameters: dict[str, Any] | None = None,
        batch: int = 500,
        connection: Connection | None = None,
    ) -> None:
        self._result: Result[Any] | None = None
        self._reading = _reading.get()
        self._connection = connection or stream_connection()
        in_batches = {"yield_per": batch}
        try:
            self._result = self._connection.execute(
                statement, parameters, execution_options=in_batches
            )
            self._rest = self._result.partitions()
            self.first = next(self._rest, ())
            _note_position(self._connection)
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[Sequence[Row[Any]]]:
        """Yield the batches, which are never empty."""
        try:
            batch = self.first
            while batch:
                yield batch
                timeouts.restart_clock(self._connection)
                batch = next(self._rest, ())
        finally:
            self.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let other reads for the response see the same state of the database."""
        with fetching_from(self._connection):
            yield

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


def every_row(statement: Select[Any], parameters: Parameters = None) -> Sequence[Any] | RowStream:
    """Return all rows of a select: as a stream, if they are more than STREAM_ABOVE.

    Args:
        statement: a select that finds its rows in their order, because its first rows are read
            twice if there are many.
    """
    rows = fetch(statement.limit(STREAM_ABOVE + 1), parameters)
    return rows if len(rows) <= STREAM_ABOVE else RowStream(statement, dict(parameters or {}))
