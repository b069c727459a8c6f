"""Inserting many rows at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any

import orjson
import psycopg
from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    String,
    Table,
    TableValuedAlias,
    bindparam,
    cast,
    column,
    func,
    insert,
    literal_column,
    select,
    table,
    text,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningInsert

from app.db.read_pool import ReadRow
from app.db.sql.databases import uses_sqlite
from app.db.sql.types import JsonFields, Money, UtcDateTime

_STAGED = "staged_rows"

MOST_VALUES = 8000
"""Values of a statement on SQLite, as those of 100 orders. Longer ones are not faster."""


@contextmanager
def loading(connection: Connection) -> Iterator[None]:
    """Let a block fill a whole database, within a transaction.

    SQLite compares foreign keys at the commit. PostgreSQL gets statistics; reports of SQLite with
    statistics read other indexes than those that were made for them.
    """
    on_sqlite = uses_sqlite(connection)
    if on_sqlite:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    yield
    if not on_sqlite:
        connection.exec_driver_sql("ANALYZE")


def insert_into(session: Session, table: Table) -> Any:
    """Return an INSERT of the database of a session, which can have ON CONFLICT."""
    on_sqlite = uses_sqlite(session.get_bind())
    return sqlite.insert(table) if on_sqlite else postgresql.insert(table)


def insert_unless_stored(
    table: Table, *returned: ColumnElement[object]
) -> Callable[[Session], ReturningInsert[Any]]:
    """Return a function: the INSERT of a row for the database of a session.

    It returns columns of the row, or nothing if a unique index has the row. It is built once,
    because that takes 0.1 ms.
    """
    on_sqlite, on_postgresql = (
        database.insert(table).on_conflict_do_nothing().returning(*returned)
        for database in (sqlite, postgresql)
    )
    return lambda session: on_sqlite if uses_sqlite(session.get_bind()) else on_postgresql


def insert_rows(
    session: Session,
    into: Table,
    rows: Sequence[Mapping[str, Any]],
    returning: Sequence[Column[object]] = (),
) -> Sequence[ReadRow]:
    """Insert rows, in their order, and return some columns of each, in any order.

    PostgreSQL receives several rows as one JSON array, because COPY returns no columns. Reading a
    placeholder for each value took the driver 40 % of a bulk request. SQLite receives them without
    SQLAlchemy's work for each row, during which other writers would wait.

    Args:
        rows: at least one row. All rows have the same columns.
        returning: the columns to return, which are numbers and texts; none for those of the primary
            key.
    """
    connection = session.connection()
    dialect = connection.dialect
    statement = insert(into).returning(*(returning or into.primary_key))
    if len(rows) == 1:
        return connection.execute(statement, rows[0]).all()
    names = tuple(rows[0])
    if uses_sqlite(connection):
        found = _bound(connection, into, names, map(itemgetter(*names), rows))
        names_of_returned = [column.name for column in returning or into.primary_key]
        return _insert_values(connection, into.name, names, found, names_of_returned)
    converters = {
        name: kind.process_bind_param
        for name in names
        if isinstance(kind := into.c[name].type, JsonFields | Money | UtcDateTime)
    }
    objects = [
        {
            name: converters[name](value, dialect) if name in converters else value
            for name, value in row.items()
        }
        for row in rows
    ]
    source = _records(into, objects, names)
    selected = select(*(source.c[name] for name in names))
    return connection.execute(statement.from_select(names, selected)).all()


def upsert_rows(session: Session, into: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert or update rows in one statement; those with the ID None get new ones, in order."""
    connection = session.connection()
    updated = [name for name in rows[0] if name != "id"]
    inserting = insert_into(session, into)
    changes = {name: inserting.excluded[name] for name in updated}
    if uses_sqlite(connection):
        upsert = inserting.on_conflict_do_update(index_elements=["id"], set_=changes)
        connection.execute(upsert, list(rows))
        return
    names = tuple(rows[0])
    source = _records(into, rows, names)
    next_id = func.nextval(func.pg_get_serial_sequence(into.name, "id"))
    values = [func.coalesce(source.c.id, next_id) if n == "id" else source.c[n] for n in names]
    inserting = inserting.from_select(names, select(*values))
    connection.execute(inserting.on_conflict_do_update(index_elements=["id"], set_=changes))


def _records(
    into: Table, objects: Sequence[Mapping[str, object]], names: Sequence[str]
) -> TableValuedAlias:
    """Return objects as rows of a table, on PostgreSQL."""
    array = bindparam("rows", orjson.dumps(objects).decode(), String)
    stored = func.json_populate_recordset(literal_column(f"NULL::{into.name}"), cast(array, JSON))
    return stored.table_valued(*names)


def insert_ignore(
    session: Session,
    into: Table,
    shared: Mapping[str, object],
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> int:
    """Insert rows and skip those that violate a unique constraint.

    PostgreSQL receives the rows with COPY, and SQLite as one JSON array. Either way, the shared
    values are sent once, and one statement inserts all rows.

    Args:
        shared: the values that all rows have, by column name.
        names: text columns with a value of their own in each row.

    Returns:
        The number of inserted rows.
    """
    given = {name: bindparam(None, value, into.c[name].type) for name, value in shared.items()}
    values: list[ColumnElement[object]] = list(given.values())
    if not uses_sqlite(session.connection()):
        _copy(session, names, rows)
        source: FromClause = table(_STAGED, *(column(name, String) for name in names))
        # In a select, a parameter has no type of its own.
        values = [cast(value, value.type) for value in values]
        values += source.c
    else:
        array = bindparam(None, orjson.dumps(rows).decode(), String)
        source = func.json_each(array).table_valued(column("value", String))
        values += [
            func.json_extract(source.c.value, literal_column(f"'$[{place}]'"))
            for place in range(len(names))
        ]
    # SQLite needs the WHERE, because ON CONFLICT could belong to a join.
    selected = select(*values).select_from(source).where(true())
    inserting = (
        insert_into(session, into).from_select([*shared, *names], selected).on_conflict_do_nothing()
    )
    inserting = inserting.execution_options(preserve_rowcount=True)
    return session.connection().execute(inserting).rowcount


def _copy(session: Session, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Copy rows to a temporary table that the commit drops."""
    columns = ", ".join(f"{name} text" for name in names)
    for statement in (
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {_STAGED} ({columns}) ON COMMIT DROP",
        f"TRUNCATE {_STAGED}",
    ):
        session.execute(text(statement))
    copy_rows(session.connection(), _STAGED, names, rows)


def insert_records(session: Session, into: Table, records: Sequence[Mapping[str, object]]) -> None:
    """Insert records that have the same columns (at least two columns)."""
    if len(records) == 1:
        session.connection().execute(insert(into).inline(), records[0])
        return
    names = tuple(records[0])
    insert_many(session.connection(), into, names, map(itemgetter(*names), records))


def insert_many(
    connection: Connection, into: Table, names: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert many rows in a third of the time that SQLAlchemy takes for each of them."""
    insert_values(connection, into.name, names, _bound(connection, into, names, rows))


def _bound(
    connection: Connection, into: Table, names: Sequence[str], rows: Iterable[Sequence[object]]
) -> list[tuple[object, ...]]:
    """Return the values of rows as the driver takes them."""
    dialect = connection.dialect
    bound = [into.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in names]
    columns = zip(bound, zip(*rows, strict=True), strict=False)  # without rows, no columns
    return list(zip(*(map(bind, each) if bind else each for bind, each in columns), strict=True))


def insert_values(
    connection: Connection, table: str, names: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """Insert rows with COPY, or into SQLite with several in each statement.

    Args:
        rows: their values, as the driver takes them.
    """
    if uses_sqlite(connection):
        _insert_values(connection, table, names, rows)
    else:
        copy_rows(connection, table, names, rows)


def _insert_values(
    connection: Connection,
    table: str,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    returning: Sequence[str] = (),
) -> list[ReadRow]:
    """Insert rows into SQLite, several with each statement, and return some columns of each."""
    quote = connection.dialect.identifier_preparer.quote
    columns = ", ".join(map(quote, names))
    statement = f"INSERT INTO {quote(table)} ({columns}) VALUES "  # nosec B608  # names of a model
    marks = f"({', '.join('?' * len(names))})"
    returned = f" RETURNING {', '.join(map(quote, returning))}" if returning else ""
    size, found = max(1, MOST_VALUES // len(names)), list[ReadRow]()
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        values = tuple(chain.from_iterable(part))
        inserting = statement + ", ".join([marks] * len(part)) + returned
        result = connection.exec_driver_sql(inserting, values)
        found += result.all() if returning else ()
    return found


def copy_rows(
    connection: Connection, table: str, names: Iterable[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert rows with COPY, which takes a fraction of the time of INSERT.

    Args:
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
