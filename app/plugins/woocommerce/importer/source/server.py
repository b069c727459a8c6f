"""Reading of a source from a MySQL or MariaDB server, without changing it.

One connection reads everything in one consistent snapshot, in ranges of the primary key.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import pymysql
from pymysql.converters import encoders

from app.config.urls import parse_database_url
from app.plugins.woocommerce.importer.dump.values import meant, repaired
from app.plugins.woocommerce.importer.errors import SourceError
from app.plugins.woocommerce.importer.tables import Row, SourceTable

RANGE = 20_000
"""Number of IDs in the range of one statement."""

SECONDS = 10
"""Timeout for the connection, in seconds."""

_SCHEMES = ("mysql", "mariadb")


def is_server(source: str) -> bool:
    """Return whether a source is the URL of a database instead of a file."""
    return "://" in source and source.startswith(_SCHEMES)


class ServerSource:
    """Reads the tables of a server.

    Args:
        url: ``mysql+pymysql://user:password@host:3306/database``.
        take: called with "", the table, and some of its rows, in the order of its columns.
        progress: called with the number of rows that have been read.
        warn: called with a message for the operator.

    Attributes:
        names: the tables of the database.
    """

    def __init__(
        self,
        url: str,
        tables: Mapping[str, SourceTable],
        take: Callable[[str, SourceTable, Sequence[Row]], None],
        progress: Callable[[int], None],
        warn: Callable[[str], None],
    ) -> None:
        self._url = url
        self._tables = tables
        self._take = take
        self._progress = progress
        self._warn = warn
        self._read_rows = 0
        self.names: set[str] = set()

    def read(self) -> None:
        """Read all tables.

        Raises:
            SourceError: the server cannot be reached, or the user lacks a privilege.
        """
        try:
            with closing(self._connect()) as connection, connection.cursor() as cursor:
                # REPEATABLE READ: every statement sees the database as it is now.
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                self._read(cursor)
        except pymysql.MySQLError as error:
            reason = error.args[1] if len(error.args) > 1 else str(error)
            raise SourceError(f"The source database cannot be read: {reason}.") from error

    def _connect(self) -> Any:
        try:
            url = parse_database_url(self._url, "mysql+pymysql://USER:PASSWORD@HOST/DATABASE")
        except ValueError as error:
            raise SourceError(f"SOURCE: {error}") from None
        if not url.database:
            raise SourceError("The URL of the source has no database: mysql+pymysql://…/NAME.")
        # All other parameters are for SQLAlchemy.
        query: Any = {key: value for key, value in url.query.items() if key == "unix_socket"}
        return pymysql.connect(
            host=url.host or "localhost",
            port=url.port or 3306,
            user=url.username or "",
            password=url.password or "",
            database=url.database,
            charset="utf8mb4",
            # Values as text, as in a dump: Python has no zero date.
            conv=cast("Any", encoders),
            connect_timeout=SECONDS,
            **query,
        )

    def _read(self, cursor: Any) -> None:
        cursor.execute(
            "SELECT table_name, engine, table_collation FROM information_schema.tables "
            "WHERE table_schema = DATABASE()"
        )
        tables = {_text(row[0]): (_text(row[1]), _text(row[2])) for row in cursor.fetchall()}
        self.names = {name for name in tables if name}
        read = {name: table for name, table in self._tables.items() if name in tables}
        others = sorted(name for name in read if tables[name][0] not in {"InnoDB", None})
        if others:
            self._warn(
                f"{', '.join(others)}: these tables have no consistent snapshot, because they are "
                "not InnoDB. Stop the shop while it is imported, or import a dump."
            )
        for name, table in read.items():
            is_latin1 = (tables[name][1] or "").startswith("latin1")
            self._read_table(cursor, name, table, is_latin1=is_latin1)

    def _read_table(self, cursor: Any, name: str, table: SourceTable, *, is_latin1: bool) -> None:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = DATABASE() AND table_name = %s",
            (name,),
        )
        present = {_text(row[0]) for row in cursor.fetchall()}
        columns = ", ".join(
            f"`{column}`" if column in present else "NULL" for column in table.columns
        )
        where, values = _condition(table)
        cursor.execute(f"SELECT min(`{table.primary}`), max(`{table.primary}`) FROM `{name}`")  # nosec B608  # names of a constant table
        first, last = (_text(value) for value in cursor.fetchone())
        if first is None or last is None:
            return
        for start in range(int(first), int(last) + 1, RANGE):
            cursor.execute(
                f"SELECT {columns} FROM `{name}` WHERE `{table.primary}` >= %s "  # nosec B608  # names of a constant table
                f"AND `{table.primary}` < %s{where} ORDER BY `{table.primary}`",
                (start, start + RANGE, *values),
            )
            rows = [
                tuple(_stored(value, is_latin1=is_latin1) for value in row)
                for row in cursor.fetchall()
            ]
            if rows:
                self._take("", table, rows)
            self._read_rows += len(rows)
            self._progress(self._read_rows)


def _condition(table: SourceTable) -> tuple[str, tuple[str, ...]]:
    """Return the condition that selects rows, with a leading AND, and its values."""
    if not table.filtered:
        return "", ()
    marks = ", ".join(["%s"] * len(table.values))
    condition = f"`{table.filtered}` IN ({marks})"
    return f" AND {condition}", table.values


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _stored(value: object, *, is_latin1: bool) -> str | None:
    if isinstance(value, bytes):
        value = meant(value.decode(errors="surrogateescape"), from_latin1=is_latin1)
    elif isinstance(value, str) and is_latin1:
        value = repaired(value)
    return None if value is None else str(value)
