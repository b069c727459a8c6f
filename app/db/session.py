"""Database engines, sessions and transactions.

Reads use an engine in AUTOCOMMIT mode, without transactions. Writes use the engine of the session,
with one transaction per request.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import ClassVar, TypeVar

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Executable, MetaData, Table, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import DeclarativeBase, Session

from app.db import deadline, engines, sqlite
from app.db.errors import (
    OutcomeUnknown,
    TryAgain,
    is_foreign_key_violation,
    is_retryable,
    is_schema_mismatch,
)
from app.db.migrations import (
    SCHEMA_VERSION,
    SchemaState,
    SchemaVersion,
    is_schema_current,
    state_of,
)
from app.db.read_pool import (
    READ,
    fetch,
    fetching_from,
    read_engine,
    read_from_primary,
    reading_connection,
)
from app.db.replicas import routing as replicas
from app.db.sql.databases import uses_sqlite

T = TypeVar("T")

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 30
"""How often a transaction is tried after conflicts with other transactions.

This is more than the number of concurrent requests on a machine. At least one of the conflicting
transactions succeeds each time."""

MAX_ATTEMPTS_WITH_MISSING_RECORD = 3
"""How often a transaction is tried that refers to a missing record.

The second attempt finds that the record was deleted. Otherwise, another attempt does not help."""

RETRY_SECONDS = 0.005
"""Wait before the second attempt. It is twice as long before the third attempt, three times as long
before the fourth, and so on, up to two seconds in total. Each wait is shortened at random to avoid
another conflict."""

LOGGED_RETRY = 3
"""The retry that is logged, as a sign of contention."""

DO_NOT_WAIT_FOR_STANDBY = text("SET LOCAL synchronous_commit = local")
"""Lets the commit of the transaction wait for the disk of the primary only."""

_WRITE_LOCK = "shop_api_write_lock"
"""Key in ``app.extensions`` of the lock for writers on SQLite."""

_IS_RUNNING = "shop_api_is_running"
"""Key in ``Session.info`` while ``run_in_transaction`` uses the session."""

_HAS_COMMITTED = "shop_api_has_committed"
"""Key in ``Session.info`` once ``run_in_transaction`` has committed."""

_AFTER_COMMIT = "shop_api_after_commit"
"""Key in ``Session.info`` of the functions to call after the commit."""

_IS_TRIAL = "shop_api_is_trial"
"""Key in ``Session.info`` while ``try_in_transaction`` runs."""


class Model(DeclarativeBase):
    """Base class of all models, with a naming convention for constraints in migrations."""

    __table__: ClassVar[Table]  # every model is one table

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
    model_class=Model,
    # Keep the values of committed objects, so that responses do not read them again.
    session_options={"expire_on_commit": False},
)


def init_app(app: Flask) -> None:
    """Create the engines of an app for ``DATABASE_URL``: write, read and stream."""
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engines.write_options(app.config)
    app.config["SQLALCHEMY_BINDS"] = engines.binds(app.config)
    db.init_app(app)
    with app.app_context():
        engines.prepare(db.engines, app.config)
        replicas.init_app(app, db.engines, is_schema_current)
    app.extensions[_WRITE_LOCK] = threading.Lock() if engines.is_sqlite(app.config) else None


def open_connections(app: Flask) -> None:
    """Open a connection for reads and one for writes, if the server permits it.

    A worker that has them can serve requests while the server accepts no other connections.
    """
    if engines.is_sqlite(app.config):
        return
    with app.app_context():
        for engine in (db.engine, db.engines[READ]):
            with suppress(SQLAlchemyError), engine.connect():
                pass


def run_in_transaction(work: Callable[[Session], T], *, is_internal: bool = False) -> T:
    """Run ``work`` in one write transaction and commit.

    ``work`` checks before it writes, so that errors have their specified order. After a conflict
    with another transaction (a unique or foreign key violation, a deadlock, or ``TryAgain``), the
    transaction is rolled back and ``work`` is called again. It then sees the changes of the other
    transaction.

    Within another ``run_in_transaction``, the work is part of that transaction.

    Args:
        work: called with a session, up to MAX_ATTEMPTS times. It must not have other side effects.
        is_internal: whether the transaction stores nothing that the client has sent, but only what
            the service notes about the request. The commit then does not wait for a standby, and
            the client need not know its outcome.

    Returns:
        The return value of ``work``.

    Raises:
        IntegrityError: a constraint is violated, and retrying does not help.
        OutcomeUnknown: the connection was lost during the commit.
    """
    session = db.session()
    if session.info.get(_IS_RUNNING):
        return work(session)
    read_from_primary()
    for attempt in range(1, MAX_ATTEMPTS + 1):
        # Each attempt has its own list, so functions from a rolled back attempt are not called.
        after_commit: list[Callable[[], None]] = []
        session.info[_AFTER_COMMIT] = after_commit
        try:
            result = _run_once(session, work, is_internal=is_internal)
            break
        except OutcomeUnknown:
            raise
        except (TryAgain, DBAPIError) as error:
            _prepare_retry(error, attempt)
        time.sleep(RETRY_SECONDS * attempt * random.uniform(0.5, 1))  # nosec B311  # no secret
    if not is_internal:
        session.info[_HAS_COMMITTED] = True
    # Not within the transaction, because it could be retried.
    for function in after_commit:
        function()
    return result


class _RolledBackError(Exception):
    """Ends a trial."""


def try_in_transaction(work: Callable[[Session], object]) -> None:
    """Run ``work`` in one write transaction and roll it back, to find out whether it would fail.

    Within ``run_in_transaction``, only the work is rolled back. ``is_trial`` is true meanwhile, for
    what is noted outside of the transaction.
    """

    def trial(session: Session) -> None:
        session.info[_IS_TRIAL] = True
        with savepoint(session):
            work(session)
            raise _RolledBackError

    try:
        run_in_transaction(trial)
    except _RolledBackError:
        pass
    finally:
        db.session().info[_IS_TRIAL] = False


def is_trial() -> bool:
    """Return whether ``try_in_transaction`` runs in this app context."""
    return bool(db.session().info.get(_IS_TRIAL))


def _prepare_retry(error: TryAgain | DBAPIError, attempt: int) -> None:
    """Raise the error of an attempt, unless another attempt can help."""
    if isinstance(error, TryAgain):
        if attempt >= MAX_ATTEMPTS:
            raise error
        if error.before:
            error.before()
        return
    is_missing = is_foreign_key_violation(error)
    most = MAX_ATTEMPTS_WITH_MISSING_RECORD if is_missing else MAX_ATTEMPTS
    if attempt >= most or not is_retryable(error):
        raise error
    if attempt == LOGGED_RETRY:
        _log.warning("A transaction is retried for the third time because of conflicts.")


def run_statement(
    statement: Executable, rows: Sequence[Mapping[str, object]] | None = None
) -> None:
    """Run a statement, once for each of some rows of parameters, in a write transaction."""

    def work(session: Session) -> None:
        session.execute(statement, rows)

    run_in_transaction(work)


def _run_once(session: Session, work: Callable[[Session], T], *, is_internal: bool) -> T:
    is_committing = False
    try:
        with _write_lock(), session, session.begin():
            session.info[_IS_RUNNING] = True
            if is_internal and not uses_sqlite(db.engine):
                session.execute(DO_NOT_WAIT_FOR_STANDBY)
            result = work(session)
            session.flush()
            deadline.reserve(deadline.COMMIT_SECONDS)
            is_committing = True
    except DBAPIError as error:
        if is_committing and not is_internal and error.connection_invalidated:
            raise OutcomeUnknown(error) from error
        raise
    finally:
        session.info[_IS_RUNNING] = False
    return result


def truncate_write_ahead_log() -> bool:
    """Write what SQLite has committed into the database file, and empty its write-ahead log.

    The log contains pages as they were before an erasure. While another connection reads from it,
    it stays, and a later call empties it.

    Returns:
        Whether the file contains all, and the log nothing. True on PostgreSQL.
    """
    is_busy = False
    engine = db.engines[READ]
    if uses_sqlite(engine):
        with engine.connect() as connection, sqlite.without_waiting(connection):
            # First what writers need not wait for. Only then few pages are left for the second.
            for kind in ("PASSIVE", "TRUNCATE"):
                checkpoint = connection.exec_driver_sql(f"PRAGMA wal_checkpoint({kind})")
                is_busy = checkpoint.one()[0] == 1
    return not is_busy


def has_committed() -> bool:
    """Return whether ``run_in_transaction`` has committed in this app context."""
    return db.session.registry.has() and _HAS_COMMITTED in db.session().info


def call_after_commit(session: Session, function: Callable[[], None]) -> None:
    """Call a function once the transaction of ``run_in_transaction`` is committed.

    It is not called if the transaction fails, and only once if the transaction is retried. It must
    not raise an exception, because the changes are already stored.
    """
    session.info[_AFTER_COMMIT].append(function)


@contextmanager
def savepoint(session: Session) -> Iterator[None]:
    """Undo only the work of the block if it raises an exception, and raise it again.

    The functions that the block passed to ``call_after_commit`` are then not called.
    """
    functions = session.info.get(_AFTER_COMMIT, [])
    number = len(functions)
    try:
        with session.begin_nested():
            yield
    except BaseException:
        del functions[number:]
        raise


@contextmanager
def reading_session() -> Iterator[Session]:
    """Yield a session that reads one state of the database, without a lock and without writes."""
    with reading_connection() as connection, Session(connection) as session:
        yield session


@contextmanager
def reading_own_writes() -> Iterator[None]:
    """Let ``fetch`` read within the transaction of ``run_in_transaction``, if one runs.

    Its changes are then visible before the commit.
    """
    session = db.session()
    if not session.info.get(_IS_RUNNING):
        yield
        return
    with fetching_from(session.connection()):
        yield


@contextmanager
def _write_lock() -> Iterator[None]:
    """Let the threads of a process write to SQLite one at a time, in the order of their arrival.

    A waiting thread continues as soon as the previous thread has committed. Without this lock, it
    would sleep for up to 100 ms in SQLite, and later threads could go first.
    """
    lock: threading.Lock | None = current_app.extensions[_WRITE_LOCK]
    if lock is None:
        yield
        return
    if not lock.acquire(timeout=max(min(sqlite.WAIT_SECONDS, deadline.left()), 0)):
        raise PoolTimeoutError("other writers did not finish in time")
    try:
        yield
    finally:
        lock.release()


def schema_state(failed: BaseException | None = None) -> SchemaState:
    """Return whether this version of the service can use the database.

    A newer version of the service migrates the database while this version still runs. The database
    contains the oldest version that can use its schema (docs/upgrades.md).

    Args:
        failed: the error of a statement. A table or column that is missing from a schema of the
            right version makes it OLD.
    """
    try:
        state = state_of(SchemaVersion(*row) for row in fetch(SCHEMA_VERSION))
    except DBAPIError as error:
        if is_schema_mismatch(error):
            return SchemaState.OLD  # without a schema, or before migration 0030
        raise
    is_incomplete = state is SchemaState.CURRENT and failed and is_schema_mismatch(failed)
    return SchemaState.OLD if is_incomplete else state


def now() -> datetime:
    """Return the current time as stored in records: UTC, in whole seconds (decisions 6).

    Responses would not show fractions of a second, but filters would compare them.
    """
    return datetime.now(UTC).replace(microsecond=0)


def precise_now() -> datetime:
    """Return the current time with microseconds, for leases and retries."""
    return datetime.now(UTC)


def try_to_write(statement: Executable) -> bool:
    """Run one statement in a transaction of its own, unless that means waiting for a lock.

    The commit does not wait for a standby.

    On PostgreSQL, the statement must skip locked rows itself.

    Returns:
        False if nothing was written, because another transaction writes or the database is
        read-only or unavailable.
    """
    try:
        if uses_sqlite(db.engine):
            # The read engine begins no transaction, which would wait for the lock.
            with read_engine().connect() as connection, sqlite.without_waiting(connection):
                connection.execute(statement)
        else:
            with db.engine.begin() as connection:
                connection.execute(DO_NOT_WAIT_FOR_STANDBY)
                connection.execute(statement)
    except (DBAPIError, PoolTimeoutError) as error:
        _log.debug("An optional write was skipped: %s", error)
        return False
    return True
