"""How records are read: by a select of their columns that is kept ready.

To build a select of all columns takes longer than to run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, select, type_coerce
from sqlalchemy.types import TypeEngine

from app.db.functions import is_one_of
from app.db.read_pool import Fetch
from app.db.ready import MAX_SELECTS, Ready
from app.db.types import IdList

Columns = Sequence[ColumnElement[Any]]
Row = Sequence[Any]

WANTED = "wanted"
"""The parameter by which the condition of ``select_where`` finds its record."""


@lru_cache(MAX_SELECTS)
def select_where(
    columns: tuple[ColumnElement[Any], ...],
    record_id: ColumnElement[int],
    condition: ColumnElement[bool],
    *order: ColumnElement[Any],
) -> Ready:
    """Return the select of records, kept ready: their columns as they are printed, then their id.

    Args:
        columns: what to select; there may be none.
        record_id: the column of the records' ids.
        condition: which records; one that is the same object each time.
        order: what they are sorted by.
    """
    printed = (as_printed(column) for column in columns)
    return Ready(select(*printed, record_id).where(condition).order_by(*order))


def fetch_by_ids(
    fetch: Fetch, columns: Columns, record_id: ColumnElement[int], ids: Sequence[int]
) -> list[Row]:
    """Return the records with these ids, in their order, as ``select_where`` selects them."""
    if not ids:
        return []
    found = fetch(select_where(tuple(columns), record_id, _is_wanted(record_id)), {WANTED: ids})
    by_id = {row[-1]: row for row in found}
    return [by_id[record] for record in ids if record in by_id]


def as_printed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a column whose values are read as the text that answers print, where it has one.

    Nobody computes with them on the way: the value of Python in between would be for nothing.
    """
    printed: TypeEngine[Any] | None = getattr(column.type, "printed", None)
    return column if printed is None else type_coerce(column, printed)


@lru_cache(MAX_SELECTS)
def _is_wanted(record_id: ColumnElement[int]) -> ColumnElement[bool]:
    return is_one_of(record_id, bindparam(WANTED, type_=IdList))
