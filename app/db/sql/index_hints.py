"""Conditions that let the query planner use the right indexes."""

from enum import StrEnum

from sqlalchemy import ColumnElement, literal_column

from app.db.sql.templates import Templated


def has_constant(column: ColumnElement[object], value: StrEnum) -> ColumnElement[bool]:
    """Return whether a column has a value that is part of the statement instead of a parameter.

    A partial index is used only if the statement contains the text of its condition. In addition,
    SQLite compiles a statement again for each execution if it compares a column of such a condition
    with a parameter, which takes ten times as long as finding a coupon by its code.
    """
    return column == literal_column(f"'{value}'")


class frequent(Templated[bool]):  # noqa: N801  # named as a function of SQL
    """A condition that is true for most records.

    SQLite assumes that every value of an index is rare. Without this hint, it reads all published
    coupons to find a few by their codes or IDs, which takes 20 ms for a hundred thousand.
    """

    sqlite = "likelihood({0}, 0.9)"
    postgresql = "({0})"
