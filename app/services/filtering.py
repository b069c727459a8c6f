"""What matches a query, and how many that are (decisions 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Select, false, func, select, true
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.db.read_pool import Fetch, snapshot
from app.models import RowCount

MAX_SELECTS = 100
"""How many selects of counters are kept: one for each role or set of statuses in use."""

FEW = 1000
"""Up to this number, matches are found first and sorted then; more are read in the order of the
list from an index, page by page."""

FEW_FOUND = 10_000
"""The same for matches that an index of their own finds: those of a search, or of a role."""


_COUNTS: Any = RowCount.__table__.c


@dataclass(frozen=True, slots=True)
class RowCountFilter:
    """Records of a table, or of some of its partitions, that ``RowCount`` counts.

    Args:
        table_name: the counted table.
        timestamp: column that determines the week, as the select of IDs sees it.
        partitions: counted partitions of the table; None for all.
        without: a partition that is not counted; None for none.
    """

    table_name: str
    timestamp: ColumnElement[datetime]
    partitions: tuple[str, ...] | None = None
    without: str | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many records there are."""
        return int(fetch(_sum_of_counts(self.table_name, self.partitions, self.without))[0][0])

    def skip(self, fetch: Fetch, offset: int, order: str) -> tuple[ColumnElement[bool], int]:
        """Return how to pass over the first records without reading them.

        Returns:
            A condition that leaves out whole weeks, and how many records are to skip after that.
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
    """The records that match a query.

    Args:
        ids: selects their ids, without an order.
        row_count: the counted records, if the list consists of exactly these.
        found: selects the same ids, faster where they are few: from the index of a condition
            instead of the index of the order.
        finds_quickly: whether ``found`` reads an index of a search or a role: it is used for up to
            FEW_FOUND matches instead of FEW.
        sorted_up_to: up to how many matches are found first and sorted then, if these are more.
        number: their number, if known, or a select of it that is faster than counting ``ids``.
        key: what the list is sorted by, as ``ids`` sees it; None for the column of the record.
        key_from: where ``key`` comes from, if ``ids`` does not read it: an id and a value, for
            some of the records.
    """

    ids: Select[Any]
    row_count: RowCountFilter | None = None
    found: Select[Any] | None = None
    finds_quickly: bool = False
    sorted_up_to: int = 0
    number: int | Select[Any] | None = None
    key: ColumnElement[Any] | None = None
    key_from: FromClause | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many they are."""
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
"""Returns what matches a query, by what it looks up in the snapshot of the list."""


def count(find: Find) -> int:
    """Return how many records match."""
    with snapshot() as fetch:
        return find(fetch).total(fetch)


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
            if (moment := query[f"{name}_min"]) is not None:
                conditions.append(columns[name] >= moment)
            if (moment := query[f"{name}_max"]) is not None:
                conditions.append(columns[name] <= moment)
    return conditions
