"""Best-effort writes, which are skipped instead of waiting for a lock or a standby."""

import logging

from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.db import sqlite
from app.db.read_pool import read_engine
from app.db.session import DO_NOT_WAIT_FOR_STANDBY, db
from app.db.sql.databases import uses_sqlite

_log = logging.getLogger(__name__)


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
