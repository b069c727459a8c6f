"""Locks that SQLite does not need, because one transaction writes at a time."""

from sqlalchemy import BigInteger, bindparam, func, select
from sqlalchemy.orm import Session

from app.db.sql.databases import uses_sqlite

_LOCK = select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger)))


def has_one_writer(session: Session) -> bool:
    """Return whether the database runs one transaction that writes at a time, as SQLite does."""
    return uses_sqlite(session.get_bind())


def lock_until_commit(session: Session, key: int) -> None:
    """Wait until no other transaction has the lock with this key, and keep it until the commit.

    Args:
        key: any number that identifies no other lock of the service.
    """
    if not has_one_writer(session):
        session.execute(_LOCK, {"key": key})
