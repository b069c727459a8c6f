"""Which database a connection uses. Types and templates of SQL get the dialect from SQLAlchemy."""

from typing import Protocol

from sqlalchemy import Dialect


class Bind(Protocol):
    """A connection, an engine, or what a session is bound to."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the database."""


def database_name(bind: Bind) -> str:
    """Return ``sqlite`` or ``postgresql``."""
    return bind.dialect.name


def uses_sqlite(bind: Bind) -> bool:
    """Return whether the database is SQLite, not PostgreSQL."""
    return database_name(bind) == "sqlite"
