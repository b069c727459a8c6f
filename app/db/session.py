"""The database: its engines, and how a transaction runs.

Reads go through an engine in AUTOCOMMIT: a select is a statement, not a transaction. Writes go
through the session's engine, one transaction a request, whole or not at all.
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
"""Tells of a connection of the driver, and of what is noted about it, whether it is still good."""

_log = logging.getLogger(__name__)

MIGRATIONS = Path(__file__).parents[2] / "migrations"

ATTEMPTS = 30
"""How often a transaction starts again after another one came first.

More than a machine runs requests at once: each time at least one of them gets through."""

RETRY_SECONDS = 0.005
"""How long a transaction waits before its second attempt; twice as long before the third, and so
on: two seconds in total. Each wait is shortened at random, so that two do not meet again."""

LOGGED_RETRY = 3
"""The retry that is logged: one is chance, this many are contention."""

_TURN = "shop_api_turn_to_write"
"""Where an app keeps the lock of its writers on SQLite, on ``app.extensions``."""

_IS_RUNNING = "shop_api_is_running"
"""Where a session notes that one of our transactions runs in it, on ``Session.info``."""

_AFTER_COMMIT = "shop_api_after_commit"
"""The functions to call after the commit, on ``Session.info``."""

# PostgreSQL: unique_violation, serialization_failure, deadlock_detected.
_ANOTHER_CAME_FIRST = {"23505", "40001", "40P01"}

# PostgreSQL: undefined_table, undefined_column.
_NOT_THERE = {"42P01", "42703"}

# Connection exception, insufficient resources, operator intervention (57014, a statement that took
# too long, is none of them), lock not available, trouble with files, a standby that cannot write.
_POSTGRESQL_OUT_OF_REACH = ("08", "53", "57P", "55P03", "58", "25006", "25P03")
_SQLITE_OUT_OF_REACH = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR",
                        "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_NOTADB")  # fmt: skip


class Base(DeclarativeBase):
    """What the tables have in common: constraints with names that migrations can speak of."""

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
    # A committed object keeps its values: nothing is read twice for a response.
    session_options={"expire_on_commit": False},
)


def init_app(app: Flask) -> None:
    """Open the engines of an app on ``DATABASE_URL``: to write, to read, and to stream."""
    url = app.config["DATABASE_URL"]
    seconds = app.config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
    options: dict[str, Any] = {
        "url": url,
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        "hide_parameters": True,  # no value of a statement in an error or a log
    }
    on_sqlite = make_url(url).get_backend_name() == "sqlite"
    if on_sqlite:
        options["connect_args"] = {"timeout": sqlite.WAIT_SECONDS} | timeouts.sqlite_option(seconds)
    else:
        options["connect_args"] = {
            "options": f"-c timezone=UTC {timeouts.postgresql_option(seconds)}",
            "connect_timeout": 5,
            # Seconds after which a server that vanished without a word is given up, of silence and
            # of a packet that nobody confirms; the system's own limits are hours and minutes.
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
        # Streams last as long as their clients like, so that nobody waits for the end of one.
        STREAM: options | {"max_overflow": 0, "pool_timeout": 0},
    }
    db.init_app(app)
    with app.app_context():
        usable = sqlite.is_of_its_file if on_sqlite else _is_open
        for engine in db.engines.values():
            if on_sqlite:
                sqlite.prepare(engine)
            event.listen(engine, "checkout", partial(_refuse_unless, usable))
        if on_sqlite:
            sqlite.begin_immediately(db.engine)
        app.extensions[_TURN] = threading.Lock() if on_sqlite else None


def _refuse_unless(usable: Usable, connection: Any, record: Any, _: Any) -> None:
    """Let the pool open another connection in place of one that is of no use any more."""
    if not usable(connection, record.info):
        raise DisconnectionError


def _is_open(connection: Any, _: Any) -> bool:
    """Tell whether the server has closed a connection.

    To an idle connection a server says nothing until it ends it. To look whether anything has
    arrived takes a microsecond, where ``pool_pre_ping`` asks the server each time.
    """
    arrived = select.poll()
    arrived.register(connection.fileno(), select.POLLIN)
    return not arrived.poll(0)


def run_in_transaction(work: Callable[[Session], T]) -> T:
    """Run ``work`` in one write transaction and commit.

    ``work`` looks before it writes, so that refusals have their specified order. When another
    transaction came first all the same (a unique index was violated, or the database broke a
    deadlock), the work starts again and then sees what the other one wrote.

    Within another ``run_in_transaction``, the work is part of that transaction.

    Args:
        work: called with a session, at most ATTEMPTS times; it must have no effect elsewhere.

    Returns:
        What ``work`` returned.

    Raises:
        IntegrityError: a constraint is violated in a way that looking again does not explain.
    """
    session = db.session()
    if session.info.get(_IS_RUNNING):
        return work(session)
    for attempt in range(1, ATTEMPTS + 1):
        # Each attempt has its own: what an attempt that is rolled back has added is not called.
        after_commit: list[Callable[[], None]] = []
        session.info[_AFTER_COMMIT] = after_commit
        try:
            with _turn_to_write(), session, session.begin():
                session.info[_IS_RUNNING] = True
                result = work(session)
        except DBAPIError as error:
            if attempt == ATTEMPTS or not is_retryable(error):
                raise
            if attempt == LOGGED_RETRY:
                _log.warning(
                    "A transaction is retried for the third time because of other transactions."
                )
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
    """Write records that are known by their column names, in one statement for each kind.

    Args:
        created: new records; each is given its ``id``.
        edited: whole records that are there already, in the order of their edits. They are
            written first: what they give up is free for the new ones.
        key: a column whose values are unique among the new records.
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
    """Tell whether a transaction failed only because of another one at the same time."""
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    return getattr(error.orig, "sqlstate", None) in _ANOTHER_CAME_FIRST


def is_schema_mismatch(error: BaseException) -> bool:
    """Tell whether a statement failed because the database has other tables or columns.

    So it does while a migration runs, and it is all there a moment later.
    """
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return str(error.orig).startswith(("no such table", "no such column"))
    return getattr(error.orig, "sqlstate", None) in _NOT_THERE


def is_unavailable(error: BaseException) -> bool:
    """Tell whether an error says that the database cannot be reached, or not now.

    Not whether it refused a statement: that is a mistake of ours.
    """
    if isinstance(error, PoolTimeoutError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        name = getattr(error.orig, "sqlite_errorname", "")
        return name.startswith(_SQLITE_OUT_OF_REACH)
    if state := getattr(error.orig, "sqlstate", None):
        return str(state).startswith(_POSTGRESQL_OUT_OF_REACH)
    return isinstance(error, OperationalError | InterfaceError)


def schema_is_current() -> bool:
    """Tell whether the database has the newest migration of this version."""
    if not inspect(read_engine()).has_table("alembic_version"):
        return False
    return {row[0] for row in fetch(text("SELECT version_num FROM alembic_version"))} == _heads()


@cache
def _heads() -> set[str]:
    # Alembic is wanted by /readyz only, and its import would slow every start.
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # see above

    return set(ScriptDirectory(str(MIGRATIONS)).get_heads())


def now() -> datetime:
    """Return the present moment as records keep it: UTC, whole seconds (decisions 6).

    A fraction would be invisible in answers but not to filters.
    """
    return datetime.now(UTC).replace(microsecond=0)
