"""Database engines, sessions and transactions.

Reads use an engine in AUTOCOMMIT mode, without transactions. Writes use the engine of the session,
with one transaction per request.
"""

from __future__ import annotations

import logging
import random
import select
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import orjson
from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import (
    MetaData,
    Table,
    bindparam,
    event,
    insert,
    inspect,
    text,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import DeclarativeBase, Session

from app.db import sqlite, timeouts
from app.db.read_pool import READ, STREAM, fetch, fetching_from, read_engine

T = TypeVar("T")

Usable = Callable[[Any, Any], bool]
"""Function that returns whether a driver connection, given its pool record info, is usable."""

_log = logging.getLogger(__name__)

MIGRATIONS = Path(__file__).parents[2] / "migrations"

MAX_ATTEMPTS = 30
"""How often a transaction is tried after conflicts with other transactions.

This is more than the number of concurrent requests on a machine. At least one of the conflicting
transactions succeeds each time."""

RETRY_SECONDS = 0.005
"""Wait before the second attempt. It is twice as long before the third attempt, three times as long
before the fourth, and so on, up to two seconds in total. Each wait is shortened at random to avoid
another conflict."""

LOGGED_RETRY = 3
"""The retry that is logged, as a sign of contention."""

_TURN = "shop_api_turn_to_write"
"""Where an app keeps the lock of its writers on SQLite, on ``app.extensions``."""

_IS_RUNNING = "shop_api_is_running"
"""Key in ``Session.info`` while ``run_in_transaction`` uses the session."""

_AFTER_COMMIT = "shop_api_after_commit"
"""The functions to call after the commit, on ``Session.info``."""

# PostgreSQL: unique_violation, serialization_failure, deadlock_detected.
_RETRYABLE = {"23505", "40001", "40P01"}

# PostgreSQL: undefined_table, undefined_column.
_SCHEMA_MISMATCH = {"42P01", "42703"}

# Connection exception, insufficient resources, operator intervention (except 57014, a statement
# timeout), lock not available, system errors such as I/O, read-only standby.
_POSTGRESQL_UNAVAILABLE = ("08", "53", "57P", "55P03", "58", "25006", "25P03")
_SQLITE_UNAVAILABLE = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR",
                        "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_NOTADB")  # fmt: skip


class Base(DeclarativeBase):
    """Base class of all models, with a naming convention for constraints in migrations."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


db = SQLAlchemy(
    model_class=Base,
    # Keep the values of committed objects, so that responses do not read them again.
    session_options={"expire_on_commit": False},
)


def init_app(app: Flask) -> None:
    """Create the engines of an app for ``DATABASE_URL``: write, read and stream."""
    url = app.config["DATABASE_URL"]
    seconds = app.config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
    options: dict[str, Any] = {
        "url": url,
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        "hide_parameters": True,  # no parameter values in errors and logs
    }
    on_sqlite = make_url(url).get_backend_name() == "sqlite"
    if on_sqlite:
        # Seconds that a write transaction waits for the lock.
        options["connect_args"] = {"timeout": sqlite.WAIT_SECONDS} | timeouts.sqlite_option(seconds)
    else:
        options["connect_args"] = {
            "options": f"-c timezone=UTC {timeouts.postgresql_option(seconds)}",
            "connect_timeout": 5,
            # Detect a lost server by seconds without traffic and by milliseconds without an
            # acknowledgement. The defaults of the operating system are hours and minutes.
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 15_000,
        }
    threads = app.config["WEB_THREADS"]
    options |= {"pool_size": threads, "pool_use_lifo": True}
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = options | {"max_overflow": threads}
    app.config["SQLALCHEMY_BINDS"] = {
        READ: options
        | {
            "max_overflow": threads,
            "isolation_level": "AUTOCOMMIT",
            "skip_autocommit_rollback": True,
        },
        # The client determines how long a stream takes, so do not wait for a connection.
        STREAM: options | {"max_overflow": 0, "pool_timeout": 0},
    }
    db.init_app(app)
    with app.app_context():
        is_usable = sqlite.is_of_its_file if on_sqlite else _is_open
        for engine in db.engines.values():
            if on_sqlite:
                sqlite.prepare(engine)
            event.listen(engine, "checkout", partial(_check_connection, is_usable))
        if on_sqlite:
            sqlite.begin_immediately(db.engine)
        app.extensions[_TURN] = threading.Lock() if on_sqlite else None


def _check_connection(is_usable: Usable, connection: Any, record: Any, _: Any) -> None:
    """Make the pool replace a connection that is no longer usable."""
    if not is_usable(connection, record.info):
        raise DisconnectionError


def _is_open(connection: Any, _: Any) -> bool:
    """Return whether the server has kept a connection open.

    A server sends nothing on an idle connection until it closes the connection. Polling the socket
    takes a microsecond, while ``pool_pre_ping`` would send a query each time.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def run_in_transaction(work: Callable[[Session], T]) -> T:
    """Run ``work`` in one write transaction and commit.

    ``work`` checks before it writes, so that errors have their specified order. After a conflict
    with another transaction (a unique violation or a deadlock), the transaction is rolled back and
    ``work`` is called again. It then sees the changes of the other transaction.

    Within another ``run_in_transaction``, the work is part of that transaction.

    Args:
        work: called with a session, up to MAX_ATTEMPTS times. It must not have other side effects.

    Returns:
        The return value of ``work``.

    Raises:
        IntegrityError: a constraint is violated, and retrying does not help.
    """
    session = db.session()
    if session.info.get(_IS_RUNNING):
        return work(session)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        # Each attempt has its own: what an attempt that is rolled back has added is not called.
        after_commit: list[Callable[[], None]] = []
        session.info[_AFTER_COMMIT] = after_commit
        try:
            with _turn_to_write(), session, session.begin():
                session.info[_IS_RUNNING] = True
                result = work(session)
        except DBAPIError as error:
            if attempt == MAX_ATTEMPTS or not is_retryable(error):
                raise
            if attempt == LOGGED_RETRY:
                _log.warning("A transaction is retried for the third time because of conflicts.")
        else:
            break
        finally:
            session.info[_IS_RUNNING] = False
        time.sleep(RETRY_SECONDS * attempt * random.uniform(0.5, 1))  # noqa: S311  # nosec B311  # no secret
    # After the commit: these functions must not run in a transaction that can be retried.
    for function in after_commit:
        function()
    return result
    raise AssertionError("unreachable")


def call_after_commit(session: Session, function: Callable[[], None]) -> None:
    """Call a function once the transaction of ``run_in_transaction`` is committed.

    It is not called if the transaction fails, and once if the transaction is retried. It must not
    raise: the changes are stored already.
    """
    session.info[_AFTER_COMMIT].append(function)


@contextmanager
def reading_own_writes() -> Iterator[None]:
    """Let ``fetch`` read within the transaction of ``run_in_transaction``, if one runs.

    What it has written is then part of the response, also before the commit.
    """
    session = db.session()
    if not session.info.get(_IS_RUNNING):
        yield
        return
    with fetching_from(session.connection()):
        yield


@contextmanager
def _turn_to_write() -> Iterator[None]:
    """Let the threads of a process write to SQLite one after the other.

    Those that wait are woken as soon as the one before has committed, in which order they came.
    SQLite itself lets each of them sleep for up to 100 ms, however long the others came later.
    """
    turn: threading.Lock | None = current_app.extensions[_TURN]
    if turn is None:
        yield
        return
    if not turn.acquire(timeout=sqlite.WAIT_SECONDS):
        raise PoolTimeoutError(f"no turn to write came within {sqlite.WAIT_SECONDS} seconds")
    try:
        yield
    finally:
        turn.release()


def write_records(
    session: Session,
    table: Table,
    *,
    created: Sequence[dict[str, Any]],
    edited: Sequence[dict[str, Any]],
    key: str,
) -> None:
    """Insert and update records, with one statement for each.

    Args:
        created: new records by column name. The function sets the ``id`` of each record.
        edited: complete existing records, in the order of the updates. They are written first, so
            that unique values they no longer use are available for new records.
        key: a column with unique values among the new records.
    """
    if edited:
        session.execute(
            update(table).where(table.c.id == bindparam("this")),
            [{**record, "this": record["id"]} for record in edited],
        )
    if created:
        rows = session.execute(insert(table).returning(table.c[key], table.c.id), list(created))
        ids = {row[0]: row[1] for row in rows}
        for record in created:
            record["id"] = ids[record[key]]


def is_retryable(error: DBAPIError) -> bool:
    """Return whether a transaction failed because of a conflict with another transaction."""
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    return getattr(error.orig, "sqlstate", None) in _RETRYABLE


def is_schema_mismatch(error: BaseException) -> bool:
    """Return whether the database schema differs from the models, as it can during a migration."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return str(error.orig).startswith(("no such table", "no such column"))
    return getattr(error.orig, "sqlstate", None) in _SCHEMA_MISMATCH


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that the database is unavailable or overloaded.

    A statement that the database rejects is a bug and does not count.
    """
    if isinstance(error, PoolTimeoutError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        name = getattr(error.orig, "sqlite_errorname", "")
        return name.startswith(_SQLITE_UNAVAILABLE)
    if state := getattr(error.orig, "sqlstate", None):
        return str(state).startswith(_POSTGRESQL_UNAVAILABLE)
    return isinstance(error, OperationalError | InterfaceError)


def schema_is_current() -> bool:
    """Return whether the database has the latest migration of this version."""
    if not inspect(read_engine()).has_table("alembic_version"):
        return False
    return {row[0] for row in fetch(text("SELECT version_num FROM alembic_version"))} == _heads()


@cache
def _heads() -> set[str]:
    # Import on first use, because only /readyz needs Alembic and the import is slow.
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # see above

    return set(ScriptDirectory(str(MIGRATIONS)).get_heads())


def now() -> datetime:
    """Return the current time as stored in records: UTC, in whole seconds (decisions 6).

    Responses would not show fractions of a second, but filters would compare them.
    """
    return datetime.now(UTC).replace(microsecond=0)
