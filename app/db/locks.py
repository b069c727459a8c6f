"""Locks that SQLite does not need, because one transaction writes at a time."""

from typing import Any

from sqlalchemy import BigInteger, bindparam, func, select
from sqlalchemy.orm import Session

from app.db.session import db
from app.db.sql.databases import uses_sqlite

_VERSION = "data_version"
_LOCK = select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger)))


def has_one_writer(session: Session) -> bool:
    """Return whether the database runs one transaction that writes at a time, as SQLite does."""
    return uses_sqlite(session.get_bind())


def others_have_written() -> bool:
    """Return whether others have written to a SQLite database since the last call in this thread.

    Their writes wait for each other. On PostgreSQL, where they do not, the result is False. Writes
    of the calling thread do not count, because it uses one connection of the pool.
    """
    if not uses_sqlite(db.engine):
        return False
    with db.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        (version,) = driver.execute("PRAGMA data_version").fetchone()
        before = connection.info.setdefault(_VERSION, version)
        connection.info[_VERSION] = version
    return bool(version != before)


def lock_until_commit(session: Session, key: int) -> None:
    """Wait until no other transaction has the lock with this key, and keep it until the commit.

    Args:
        key: any number that identifies no other lock of the service.
    """
    if not has_one_writer(session):
        session.execute(_LOCK, {"key": key})
