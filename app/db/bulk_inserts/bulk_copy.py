"""Inserting many rows into a table on PostgreSQL with COPY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def copy_rows(
    connection: Connection, table: str, names: Iterable[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows with COPY, which takes a fraction of the time of INSERT.

    Args:
        connection: to PostgreSQL, in a transaction.
        table: name of the table.
        names: its columns.
        rows: their values, as the driver takes them.

    Raises:
        DBAPIError: as for an INSERT.
    """
    quote = connection.dialect.identifier_preparer.quote
    statement = f"COPY {quote(table)} ({', '.join(map(quote, names))}) FROM STDIN"
    driver: Any = connection.connection.dbapi_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:  # as SQLAlchemy raises it for its own statements
        raise DBAPIError.instance("COPY", None, error, psycopg.Error) from error
