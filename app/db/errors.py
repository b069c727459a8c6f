"""Classification of database errors."""

import sqlite3
from collections.abc import Callable

from sqlalchemy.exc import (
    DatabaseError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_FOREIGN_KEY_VIOLATION = {"23503", "SQLITE_CONSTRAINT_FOREIGNKEY"}
# PostgreSQL: unique_violation, serialization_failure, deadlock_detected.
_RETRYABLE = {*_FOREIGN_KEY_VIOLATION, "23505", "40001", "40P01", "SQLITE_CONSTRAINT_UNIQUE"}
# PostgreSQL: undefined_table, undefined_column.
_SCHEMA_MISMATCH = {"42P01", "42703"}
_FULL_DISK = {"53100", "SQLITE_FULL"}

# PostgreSQL: connection exception, insufficient resources, operator intervention (except 57014, a
# statement timeout), lock not available, system errors such as I/O, read-only standby.
_UNAVAILABLE = (
    "08",
    "53",
    "57P",
    "55P03",
    "58",
    "25006",
    "25P03",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_CANTOPEN",
    "SQLITE_IOERR",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_NOTADB",
)

# Of what psycopg cannot read, without a code, also while it connects.
_OF_DRIVER = {DatabaseError, InterfaceError, InternalError, OperationalError}


class TryAgain(Exception):  # it is not an error
    """A transaction read what has changed since, so it starts again.

    Args:
        before: called after the rollback, before the next attempt.
    """

    def __init__(self, before: Callable[[], object] | None = None) -> None:
        super().__init__("The transaction starts again.")
        self.before = before


class OutcomeUnknown(DBAPIError):
    """The connection was lost during a commit, so the transaction may have been committed."""

    def __init__(self, error: DBAPIError) -> None:
        cause = error.orig or error
        super().__init__(error.statement, error.params, cause, connection_invalidated=True)


def first_line(error: BaseException | None) -> str:
    """Return the first line of the message of a driver, without hints and a period at the end."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


def _code(error: BaseException) -> str:
    """Return the SQLSTATE of PostgreSQL, the name of the error of SQLite, or an empty string."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", ""))


def is_retryable(error: BaseException) -> bool:
    """Return whether a transaction can have failed because of a conflict with another transaction.

    A reference to a missing record counts, because another transaction can have deleted the record
    after it was read.
    """
    return _code(error) in _RETRYABLE


def is_foreign_key_violation(error: BaseException) -> bool:
    """Return whether a statement failed because a record refers to a record that does not exist."""
    return _code(error) in _FOREIGN_KEY_VIOLATION


def is_schema_mismatch(error: BaseException) -> bool:
    """Return whether the database schema differs from the models, as it can during a migration."""
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
        return str(error.orig).startswith(("no such table", "no such column"))
    return _code(error) in _SCHEMA_MISMATCH


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that the database is unavailable or overloaded.

    A statement that the database rejects is a bug and does not count. A lost connection counts
    whatever the class of its error, which depends on where the last message of the server ended.
    """
    if not isinstance(error, DBAPIError):
        return isinstance(error, PoolTimeoutError)
    if error.connection_invalidated:  # also OutcomeUnknown
        return True
    if code := _code(error):
        return code.startswith(_UNAVAILABLE)
    return type(error) in _OF_DRIVER and not isinstance(error.orig, sqlite3.Error)


def is_full_disk(error: BaseException) -> bool:
    """Return whether the disk of the database has no space left."""
    return _code(error) in _FULL_DISK
