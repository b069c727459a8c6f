"""What a list shows: the records that match a filter (decisions 6)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Select, true
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.db.read_pool import Fetch
from app.db.sql.index_hints import Condition
from app.errors import InvalidParams
from app.services.common.row_counts import RowCountFilter

_ALL = true()


@dataclass(frozen=True, slots=True)
class Subset:
    """A part of a table, such as the published coupons, which a list shows or filters.

    Args:
        condition: the condition of its records, for reading them in the order of the list.
        by_index: the same condition for an index of its own, if there is one.
        counted: the row counts of exactly these records, if they are counted.
        others: all other records of the table: their condition, or the IDs of a few. None if they
            are unknown.
        leads: whether the indexes of the sort orders begin with the columns of the condition, so
            that the others are not between the records of the part.
    """

    condition: ColumnElement[bool] = _ALL
    by_index: ColumnElement[bool] | None = None
    counted: RowCountFilter | None = None
    others: ColumnElement[bool] | Sequence[int] | None = None
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """A sort key that is stored in a table of its own, where some of the values are out of date.

    Args:
        key_of: function that returns the exact key of the record whose ID is in a column.
        summed: a select of the IDs and exact keys of all records with a key other than 0.
        index: the columns of the table with the IDs and the stored keys, which an index contains
            in this order of the list. None if the table cannot be used.
        stale: a select of the IDs whose stored keys are out of date.
        fresh: a select of these IDs, each once, and their exact keys.
    """

    key_of: Callable[[ColumnElement[int]], ColumnElement[Any]]
    summed: FromClause
    index: tuple[ColumnElement[int], ColumnElement[Any]] | None
    stale: Select[Any]
    fresh: FromClause


@dataclass(frozen=True, slots=True)
class Matching:
    """The records that match a query: those of a part of a table that meet all conditions.

    Args:
        conditions: conditions that are compared with each record.
        search: a condition with an index of its own, such as a search.
        few: how many matches are found by ``search`` and then sorted, if not the usual number.
        key: the sort key, if it is not a column of the record.
        ranking: the sort key, if it is stored in a table of its own.
        number: their number, if it is found sooner than by counting them.
    """

    record_id: ColumnElement[int]
    conditions: Sequence[ColumnElement[bool]] = ()
    part: Subset = Subset()
    search: Condition | None = None
    few: int | None = None
    key: ColumnElement[Any] | None = None
    ranking: Ranking | None = None
    number: ColumnElement[int] | None = None


Find = Matching | Callable[[Fetch], Matching]
"""The matching records, or a function that returns them after selects in the list's snapshot."""


def require_known_status(query: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise InvalidParams, which lists the known statuses, if ``filter[status]`` has another."""
    for status in query["status"] or ():
        if status not in known:
            reason = f"unknown status {status!r}. Known statuses: {', '.join(known)}."
            raise InvalidParams({"filter[status]": reason})


def between(
    columns: Mapping[str, ColumnElement[Any]] | ReadOnlyColumnCollection[str, Column[Any]],
    query: Mapping[str, Any],
) -> list[ColumnElement[bool]]:
    """Return the conditions of ``created_at_min``, ``…_max`` and ``updated_at_…``, inclusive.

    Args:
        columns: ``created_at`` and ``updated_at``, or one of them.
    """
    conditions = []
    for name in ("created_at", "updated_at"):
        if name in columns:
            if (timestamp := query[f"{name}_min"]) is not None:
                conditions.append(columns[name] >= timestamp)
            if (timestamp := query[f"{name}_max"]) is not None:
                conditions.append(columns[name] <= timestamp)
    return conditions
