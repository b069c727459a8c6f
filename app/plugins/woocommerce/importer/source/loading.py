"""Loading of a source into the staging file: from a dump, or from a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pymysql
from pymysql.connections import Connection
from pymysql.converters import encoders
from pymysql.cursors import Cursor

from app.config.urls import parse_database_url
from app.plugins.woocommerce.importer.dump.scanner import DumpScanner
from app.plugins.woocommerce.importer.dump.values import meant, repaired
from app.plugins.woocommerce.importer.source.staging import Staging
from app.plugins.woocommerce.importer.tables import SOURCE_TABLES, Row, SourceError, SourceTable
from app.services.common.progress import NoteProgress

RANGE = 20_000
"""Number of IDs in the range of one statement."""

SECONDS = 10
"""Timeout for the connection, in seconds."""

_SCHEMES = ("mysql", "mariadb")


def is_server(source: str) -> bool:
    """Return whether a source is the URL of a database instead of a file."""
    return "://" in source and source.startswith(_SCHEMES)


Take = Callable[[str, SourceTable, Sequence[Row]], None]
Say = Callable[[str], None]


def _read_server(
    url: str, tables: Mapping[str, SourceTable], take: Take, progress: NoteProgress, warn: Say
) -> set[str]:
    """Read the tables of a server, and return the names of all tables of its database.

    Args:
        url: ``mysql+pymysql://user:password@host:3306/database``.
        take: called with "", the table, and some of its rows, in the order of its columns.
        progress: called with the number of rows that have been read.
        warn: called with a message for the operator.

    Raises:
        SourceError: the server cannot be reached, or the user lacks a privilege.
    """
    try:
        with closing(_connection(url)) as connection, connection.cursor() as cursor:
            # REPEATABLE READ: every statement sees the database as it is now.
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            present = _tables_of(cursor)
            read = {name: table for name, table in tables.items() if name in present}
            others = sorted(name for name in read if present[name][0] not in {"InnoDB", None})
            if others:
                warn(
                    f"{', '.join(others)}: these tables have no consistent snapshot, because they "
                    "are not InnoDB. Stop the shop while it is imported, or import a dump."
                )
            number = 0
            for name, table in read.items():
                is_latin1 = (present[name][1] or "").startswith("latin1")
                for rows in _rows_of(cursor, name, table, is_latin1=is_latin1):
                    if rows:
                        take("", table, rows)
                    progress(number := number + len(rows))
    except pymysql.MySQLError as error:
        reason = error.args[1] if len(error.args) > 1 else str(error)
        raise SourceError(f"The source database cannot be read: {reason}.") from error
    return set(present)


def _connection(address: str) -> Connection[Cursor]:
    try:
        url = parse_database_url(address, "mysql+pymysql://USER:PASSWORD@HOST/DATABASE")
    except ValueError as error:
        raise SourceError(f"SOURCE: {error}") from None
    if not url.database:
        raise SourceError("The URL of the source has no database: mysql+pymysql://…/NAME.")
    return pymysql.connect(
        host=url.host or "localhost",
        port=url.port or 3306,
        user=url.username or "",
        password=url.password or "",
        database=url.database,
        charset="utf8mb4",
        # Values as text, as in a dump: Python has no zero date.
        conv=dict(encoders.items()),
        connect_timeout=SECONDS,
        # All other parameters are for SQLAlchemy.
        unix_socket=cast("str | None", url.query.get("unix_socket")),
    )


def _tables_of(cursor: Cursor) -> dict[str, tuple[str | None, str | None]]:
    """Return engine and collation of the tables of the database, by name."""
    cursor.execute(
        "SELECT table_name, engine, table_collation FROM information_schema.tables "
        "WHERE table_schema = DATABASE()"
    )
    rows = (tuple(map(_text, row)) for row in cursor.fetchall())
    return {name: (engine, collation) for name, engine, collation in rows if name}


def _rows_of(
    cursor: Cursor, name: str, table: SourceTable, *, is_latin1: bool
) -> Iterator[list[Row]]:
    """Yield the selected rows of a table in ranges of its primary key."""
    cursor.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s",
        (name,),
    )
    present = {_text(row[0]) for row in cursor.fetchall()}
    columns = ", ".join(f"`{column}`" if column in present else "NULL" for column in table.columns)
    marks = ", ".join(["%s"] * len(table.values))
    where = f" AND `{table.filtered}` IN ({marks})" if table.filtered else ""
    # The next range begins at the next ID: plugins and moved shops leave gaps of any size.
    following = f"SELECT min(`{table.primary}`) FROM `{name}` WHERE `{table.primary}` >= %s"  # nosec B608  # names of a constant table
    start = 0
    while cursor.execute(following, (start,)) and (row := cursor.fetchone()) and row[0] is not None:
        start = int(row[0])
        cursor.execute(
            f"SELECT {columns} FROM `{name}` WHERE `{table.primary}` >= %s "  # nosec B608  # names of a constant table
            f"AND `{table.primary}` < %s{where} ORDER BY `{table.primary}`",
            (start, start + RANGE, *table.values),
        )
        yield [
            tuple(_stored(value, is_latin1=is_latin1) for value in row) for row in cursor.fetchall()
        ]
        start += RANGE


def _text(value: bytes | str | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _stored(value: object, *, is_latin1: bool) -> str | None:
    if isinstance(value, bytes):
        value = meant(value.decode(errors="surrogateescape"), from_latin1=is_latin1)
    elif isinstance(value, str) and is_latin1:
        value = repaired(value)
    return None if value is None else str(value)


REQUIRED = ("users", "usermeta", "posts", "postmeta", "woocommerce_order_items")
"""Tables of every shop."""

_MARK = "woocommerce_order_items"


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a source.

    Args:
        source: the URL of a database, or the path of a file.
        prefix: the prefix of the tables of the shop.
        users_prefix: the prefix of the tables of users, which several shops can share; None for
            ``prefix``.
        database: the database to read if a dump contains several shops.
    """

    source: str
    prefix: str = "wp_"
    users_prefix: str | None = None
    database: str | None = None

    def tables(self) -> dict[str, SourceTable]:
        """Return the tables to read, by their full name."""
        of_users = self.prefix if self.users_prefix is None else self.users_prefix
        return {
            f"{of_users if table.of_users else self.prefix}{name}": table
            for name, table in SOURCE_TABLES.items()
        }

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 for a server."""
        return 0 if is_server(self.source) else Path(self.source).stat().st_size


def load(location: Location, staging: Staging, progress: NoteProgress, warn: Say) -> None:
    """Load a source.

    Args:
        progress: called with the number of bytes read so far, or of rows from a server.
        warn: called with a message for the operator.

    Raises:
        SourceError: the source cannot be read, or is not a shop.
        OSError: the file cannot be read.
    """
    tables = location.tables()
    if is_server(location.source):
        names = _read_server(location.source, tables, staging.take, progress, warn)
        staging.finish("")
        _require(location, tables, {"": names})
        return
    scanner = DumpScanner(tables, staging.take, progress)
    scanner.scan(Path(location.source))
    if scanner.lacks_its_end:
        warn("The dump does not end with '-- Dump completed'. It may be incomplete.")
    staging.finish(_require(location, tables, scanner.names))


def _require(location: Location, tables: dict[str, SourceTable], names: dict[str, set[str]]) -> str:
    """Return the database that contains the shop."""
    required = {name for name, table in tables.items() if table.name in REQUIRED}
    found = [database for database, present in names.items() if required <= present]
    if location.database is not None:
        found = [database for database in found if database == location.database]
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(
            f"The dump contains several shops, in the databases {', '.join(sorted(found))}. "
            "Choose one with --database."
        )
    everything = set().union(*names.values())
    prefixes = sorted({name.removesuffix(_MARK) for name in everything if name.endswith(_MARK)})
    if prefixes and location.prefix not in prefixes:
        raise SourceError(
            f"There are no tables with the prefix {location.prefix!r}. The tables of a shop have "
            f"the prefix {', '.join(map(repr, prefixes))}: add --prefix {prefixes[0]}"
        )
    missing = sorted(required - everything)
    of_users = {name for name, table in tables.items() if table.of_users}
    if missing and of_users.issuperset(missing) and (others := _prefixes_of_users(everything)):
        raise SourceError(
            f"The table {missing[0]} is missing. Several shops can share user tables, here "
            f"with the prefix {', '.join(map(repr, others))}: add --users-prefix {others[0]}"
        )
    if missing:
        raise SourceError(f"This is not a WooCommerce database. Missing: {', '.join(missing)}.")
    if location.database is not None:
        raise SourceError(f"There is no shop in the database {location.database!r}.")
    raise SourceError("No database of the dump contains all tables of a shop.")


def _prefixes_of_users(names: set[str]) -> list[str]:
    """Return the prefixes for which tables of users and of their metadata exist."""
    found = (name.removesuffix("usermeta") for name in names if name.endswith("usermeta"))
    return sorted(prefix for prefix in found if f"{prefix}users" in names)
