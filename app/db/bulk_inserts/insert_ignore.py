"""Bulk INSERT … ON CONFLICT DO NOTHING, for rows that share most of their values."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    CursorResult,
    FromClause,
    String,
    Table,
    bindparam,
    cast,
    column,
    func,
    literal_column,
    select,
    table,
    text,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.db.bulk_inserts.bulk_copy import copy_rows

_STAGED = "staged_rows"


def insert_ignore(
    session: Session,
    into: Table,
    shared: Mapping[str, Any],
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> int:
    """Insert rows and skip those that violate a unique constraint.

    PostgreSQL receives the rows with COPY, and SQLite as one JSON array. Either way, the shared
    values are sent once, and one statement inserts all rows.

    Args:
        session: the session of a transaction.
        into: the table.
        shared: the values that all rows have, by column name.
        names: text columns with a value of their own in each row.
        rows: their values.

    Returns:
        The number of inserted rows.
    """
    given = {name: bindparam(None, value, into.c[name].type) for name, value in shared.items()}
    values: list[ColumnElement[Any]] = list(given.values())
    if session.connection().dialect.name == "postgresql":
        _copy(session, names, rows)
        source: FromClause = table(_STAGED, *(column(name, String) for name in names))
        # In a select, a parameter has no type of its own.
        values = [cast(value, value.type) for value in values]
        values += source.c
        statement: Any = postgresql.insert(into)
    else:
        array = bindparam(None, orjson.dumps(rows).decode(), String)
        source = func.json_each(array).table_valued(column("value", String))
        values += [
            func.json_extract(source.c.value, literal_column(f"'$[{place}]'"))
            for place in range(len(names))
        ]
        statement = sqlite.insert(into)
    # SQLite needs the WHERE, because ON CONFLICT could belong to a join.
    selected = select(*values).select_from(source).where(true())
    inserting = statement.from_select([*shared, *names], selected).on_conflict_do_nothing()
    result = session.execute(inserting, execution_options={"preserve_rowcount": True})
    return typing.cast("CursorResult[Any]", result).rowcount


def _copy(session: Session, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Copy rows to a temporary table that the commit drops."""
    columns = ", ".join(f"{name} text" for name in names)
    for statement in (
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {_STAGED} ({columns}) ON COMMIT DROP",
        f"TRUNCATE {_STAGED}",
    ):
        session.execute(text(statement))
    copy_rows(session.connection(), _STAGED, names, rows)
