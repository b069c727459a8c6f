"""How many write at a time: one transaction on SQLite, and on PostgreSQL any number, with locks."""

from typing import Any

from sqlalchemy import BigInteger, bindparam, func, select
from sqlalchemy.orm import Session

from app.db.session import db
from app.db.sql.databases import uses_sqlite

_LOCK = select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger)))


def has_one_writer(session: Session) -> bool:
    """Return whether the database runs one transaction that writes at a time, as SQLite does."""
    return uses_sqlite(session.get_bind())


def version_of_others() -> int | None:
    """Return a number that changes when others write to a SQLite database; None on PostgreSQL.

    On PostgreSQL, writers do not wait for each other. Writes of the calling thread do not count,
    because a thread uses one connection of the pool.
    """
    if not uses_sqlite(db.engine):
        return None
    with db.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        version: int = driver.execute("PRAGMA data_version").fetchone()[0]
    return version


def lock_until_commit(session: Session, key: int) -> None:
    """Wait until no other transaction has the lock with this key, and keep it until the commit.

    Args:
        key: any number that identifies no other lock of the service.
    """
    if not has_one_writer(session):
        session.execute(_LOCK, {"key": key})
