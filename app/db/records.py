"""Reading of records with cached selects, and writing of records.

Building a select of all columns takes longer than running it, so selects are cached.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from sqlalchemy import ColumnElement, Select, Table, bindparam, select, type_coerce, update
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeEngine

from app.db.bulk_inserts import insert_rows
from app.db.read_pool import MAX_SELECTS, Fetch, ReadRow
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList

Record = dict[str, Any]
"""A row that is written, by the names of its columns."""

Columns = Sequence[ColumnElement[object]]
NamedColumns = Mapping[str, ColumnElement[Any]]
Row = Sequence[Any]
T = TypeVar("T")

WANTED = "wanted"
"""The name of the parameter for the condition of ``select_where``."""


@lru_cache(MAX_SELECTS)
def select_where(
    columns: tuple[ColumnElement[object], ...],
    record_id: ColumnElement[int],
    condition: ColumnElement[bool] | None,
    *order: ColumnElement[object],
) -> Select[Any]:
    """Return a select of the formatted columns of records, followed by their ID.

    Args:
        record_id: the column with the ID of the records.
        condition: the WHERE condition. Pass the same object each time for the cache. None for the
            records whose ID is in the list WANTED.
        order: the columns to sort by.
    """
    if condition is None:
        condition = is_one_of(record_id, bindparam(WANTED, type_=IdList))
    return select(*map(as_printed, columns), record_id).where(condition).order_by(*order)


def fetch_by_ids(
    fetch: Fetch, columns: Columns, record_id: ColumnElement[int], ids: Sequence[int]
) -> list[Row]:
    """Return the records with these IDs in the given order, as selected by ``select_where``."""
    if not ids:
        return []
    rows = fetch(select_where(tuple(columns), record_id, None), {WANTED: ids})
    by_id = {row[-1]: row for row in rows}
    return [by_id[record] for record in ids if record in by_id]


def write_records(
    session: Session,
    table: Table,
    *,
    created: Sequence[dict[str, object]],
    updated: Sequence[Mapping[str, object]],
    key: str,
) -> None:
    """Insert and update records, with one statement for each.

    Args:
        created: new records by column name. The function sets the ``id`` of each record.
        updated: complete existing records, in the order of the updates. They are written first, so
            that unique values they no longer use are available for new records.
        key: a column with unique values among the new records.
    """
    if updated:
        session.connection().execute(
            update(table).where(table.c.id == bindparam("this")),
            [{**record, "this": record["id"]} for record in updated],
        )
    if created:
        rows = insert_rows(session, table, created, (table.c[key], table.c.id))
        ids = {row[0]: row[1] for row in rows}
        for record in created:
            record["id"] = ids[record[key]]


def row_dicts(rows: Iterable[ReadRow]) -> list[Any]:
    """Return rows of a statement by column name.

    The caller declares their type, which is beside the model: ``list[RedemptionRow]``.
    """
    found = list(rows)
    names = found[0]._fields if found else ()
    return [dict(zip(names, row, strict=True)) for row in found]


def with_columns(row: T, columns: Mapping[str, object]) -> T:
    """Return a row with other values of some columns."""
    given: Any = row
    return cast("T", {**given, **columns})


def changed_columns(before: Mapping[str, object], after: Mapping[str, object]) -> Record:
    """Return the columns of a row whose values differ from those before."""
    return {name: value for name, value in after.items() if value != before[name]}


def as_printed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column whose values are read as formatted text, if its type supports it.

    Responses only print the values, so converting them to Python objects first would be wasted.
    """
    printed: TypeEngine[object] | None = getattr(column.type, "printed", None)
    return column if printed is None else type_coerce(column, printed)
