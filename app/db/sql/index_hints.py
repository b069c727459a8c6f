"""Conditions that let the query planner use the right indexes.

PostgreSQL ignores ``unindexed`` and ``frequent``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, String, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in two equivalent forms.

    Args:
        in_order: for many matches, which are read from an index in the order of a list.
        by_index: for few matches, which are looked up in the index of the condition.
    """

    in_order: ColumnElement[bool]
    by_index: ColumnElement[bool]


def has_constant(column: ColumnElement[Any], value: StrEnum) -> ColumnElement[bool]:
    """Return whether a column has a value that is part of the statement instead of a parameter.

    A partial index is used only if the statement contains the text of its condition. In addition,
    SQLite compiles a statement again for each execution if it compares a column of such a condition
    with a parameter, which takes ten times as long as finding a coupon by its code.
    """
    return column == literal_column(f"'{value}'")


class unindexed(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """A column whose index SQLite must not use.

    SQLite assumes that every value of an index is rare. For a column with few distinct values, it
    would read all records with a value and look up each record in the search results.
    """

    inherit_cache = True
    type = String()


@compiles(unindexed)
def _column(element: unindexed, compiler: Any, **kwargs: Any) -> str:
    return str(compiler.process(element.clauses, **kwargs))


@compiles(unindexed, "sqlite")
def _column_on_sqlite(element: unindexed, compiler: Any, **kwargs: Any) -> str:
    return f"+{compiler.process(element.clauses, **kwargs)}"


class frequent(FunctionElement[bool]):  # noqa: N801  # named as a function of SQL
    """A condition that is true for most records.

    SQLite assumes that every value of an index is rare. With this hint, SQLite reads an index in
    the order of the list and checks the condition for each record, instead of sorting nearly all
    records. Unlike with ``unindexed``, a partial index with this condition remains usable.
    """

    inherit_cache = True  # has no type, because SQLAlchemy would add "= 1" on SQLite


@compiles(frequent)
def _condition(element: frequent, compiler: Any, **kwargs: Any) -> str:
    return str(compiler.process(element.clauses, **kwargs))


@compiles(frequent, "sqlite")
def _condition_on_sqlite(element: frequent, compiler: Any, **kwargs: Any) -> str:
    return f"likelihood({compiler.process(element.clauses, **kwargs)}, 0.9)"
