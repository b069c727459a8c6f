"""Filtered lists and their totals (decisions 6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Select, false, func, select, true
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.db.read_pool import Fetch, snapshot
from app.errors import InvalidParams
from app.models.tables import ROW_COUNTS

MAX_SELECTS = 100
"""Number of cached selects of row counts, one per role or set of statuses."""

FEW = 1000
"""Up to this number, matches are found first and then sorted. More matches are read page by page
from an index in the order of the list."""

FEW_FOUND = 10_000
"""The same limit for matches from the index of a search or a role."""


_COUNTS: Any = ROW_COUNTS.c


@dataclass(frozen=True, slots=True)
class RowCountFilter:
    """Records that ``RowCount`` counts: those of a table, or of some of its partitions.

    Args:
        table_name: the counted table.
        timestamp: column that determines the week, as the select of IDs sees it.
        partitions: counted partitions of the table; None for all.
        without: a partition to leave out; None to leave out nothing.
    """

    table_name: str
    timestamp: ColumnElement[datetime]
    partitions: tuple[str, ...] | None = None
    without: str | None = None

    def total(self, fetch: Fetch) -> int:
        """Return the number of records."""
        return int(fetch(_sum_of_counts(self.table_name, self.partitions, self.without))[0][0])

    def skip(self, fetch: Fetch, offset: int, order: str) -> tuple[ColumnElement[bool], int]:
        """Return a condition that skips the first records without reading them.

        Returns:
            The condition, which leaves out whole weeks, and the number of records still to skip.
        """
        ascending = order == "asc"
        ahead: ColumnElement[bool] = true()
        weeks = fetch(_sums_of_weeks(self.table_name, self.partitions, self.without))
        for week, number in weeks if ascending else reversed(weeks):
            begins = datetime.combine(week, time.min, UTC)
            if number > offset:
                return self.timestamp >= begins if ascending else ahead, offset
            ahead = self.timestamp < begins
            offset -= int(number)
        return false(), 0


# Building one of these selects costs as much as running it, so they are cached.
@lru_cache(MAX_SELECTS)
def _sum_of_counts(
    table_name: str, partitions: tuple[str, ...] | None, without: str | None
) -> Select[Any]:
    return _of_table(
        select(func.coalesce(func.sum(_COUNTS.count), 0)), table_name, partitions, without
    )


@lru_cache(MAX_SELECTS)
def _sums_of_weeks(
    table_name: str, partitions: tuple[str, ...] | None, without: str | None
) -> Select[Any]:
    weeks = select(_COUNTS.week, func.sum(_COUNTS.count))
    return _of_table(
        weeks.group_by(_COUNTS.week).order_by(_COUNTS.week), table_name, partitions, without
    )


def _of_table(
    sums: Select[Any], table_name: str, partitions: tuple[str, ...] | None, without: str | None
) -> Select[Any]:
    sums = sums.where(_COUNTS.table_name == table_name)
    if without is not None:
        sums = sums.where(_COUNTS.partition != without)
    return sums if partitions is None else sums.where(_COUNTS.partition.in_(partitions))


@dataclass(frozen=True, slots=True)
class FilteredSet:
    """Records that match a query.

    Args:
        ids: selects their IDs, without an order.
        row_count: the counted records, if they are exactly the matching ones.
        found: selects the same IDs from the index of a condition instead of the index of the sort
            order, which is faster for few matches.
        finds_quickly: whether ``found`` reads the index of a search or a role. It is then used for
            up to FEW_FOUND matches instead of FEW.
        sorted_up_to: number of matches up to which they are found first and then sorted, if it is
            higher than FEW or FEW_FOUND.
        number: the number of matches, or a select of it that is faster than counting ``ids``.
        key: the sort key as a column of ``ids``; None to use the column of the record.
        without: the IDs of the few records that ``ids`` omits, if it selects all other records of
            a table. Otherwise None.
        key_from: source of ``key`` if ``ids`` does not contain it: a select of an ID and a value
            for some of the records.
    """

    ids: Select[Any]
    row_count: RowCountFilter | None = None
    found: Select[Any] | None = None
    finds_quickly: bool = False
    sorted_up_to: int = 0
    number: int | Select[Any] | None = None
    without: Sequence[int] | None = None
    key: ColumnElement[Any] | None = None
    key_from: FromClause | None = None

    def total(self, fetch: Fetch) -> int:
        """Return the number of matches."""
        if self.row_count:
            return self.row_count.total(fetch)
        if isinstance(self.number, int):
            return self.number
        if self.number is not None:
            return int(fetch(self.number)[0][0])
        ids = self.ids if self.found is None else self.found
        counted = ids.with_only_columns(func.count(), maintain_column_froms=True)
        return int(fetch(counted)[0][0])


Find = Callable[[Fetch], FilteredSet]
"""Function that returns the matching records. It can run selects in the snapshot of the list."""


def count(find: Find) -> int:
    """Return the number of matching records."""
    with snapshot() as fetch:
        return find(fetch).total(fetch)


def require_known_status(query: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise InvalidParams if a status in ``filter[status]`` does not exist.

    Args:
        query: a loaded filter.
        known: the known statuses, in the order of the message.

    Raises:
        InvalidParams: a status is not known.
    """
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
        query: a loaded filter.
    """
    conditions = []
    for name in ("created_at", "updated_at"):
        if name in columns:
            if (timestamp := query[f"{name}_min"]) is not None:
                conditions.append(columns[name] >= timestamp)
            if (timestamp := query[f"{name}_max"]) is not None:
                conditions.append(columns[name] <= timestamp)
    return conditions
