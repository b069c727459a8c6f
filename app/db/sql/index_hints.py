"""Conditions that let the query planner use the right indexes.

PostgreSQL ignores ``unindexed`` and ``frequent``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, String, literal_column

from app.db.sql.templates import Templated


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in two equivalent forms.

    Args:
        in_order: for many matches, which are read from an index in the order of a list.
        by_index: for few matches, which are looked up in the index of the condition.
        index: selects the IDs of the matches, each once, from that index alone, if it can.
    """

    in_order: ColumnElement[bool]
    by_index: ColumnElement[bool]
    index: Select[Any] | None = None


def has_constant(column: ColumnElement[Any], value: StrEnum) -> ColumnElement[bool]:
    """Return whether a column has a value that is part of the statement instead of a parameter.

    A partial index is used only if the statement contains the text of its condition. In addition,
    SQLite compiles a statement again for each execution if it compares a column of such a condition
    with a parameter, which takes ten times as long as finding a coupon by its code.
    """
    return column == literal_column(f"'{value}'")


class unindexed(Templated[Any]):  # noqa: N801  # named as a function of SQL
    """A column whose index SQLite must not use.

    SQLite assumes that every value of an index is rare. For a column with few distinct values, it
    would read all records with a value and look up each record in the search results.
    """

    type = String()
    sqlite = "+{0}"
    postgresql = "{0}"


class frequent(Templated[bool]):  # noqa: N801  # named as a function of SQL
    """A condition that is true for most records.

    SQLite assumes that every value of an index is rare. With this hint, SQLite reads an index in
    the order of the list and checks the condition for each record, instead of sorting nearly all
    records. Unlike with ``unindexed``, a partial index with this condition remains usable.
    """

    sqlite = "likelihood({0}, 0.9)"
    postgresql = "({0})"
