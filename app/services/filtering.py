"""What matches a query, and how many that are (decisions 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, false, func, select, true

from app.db.functions import equals_any
from app.db.read_pool import Fetch, fetch, reader
from app.db.ready import MAX_SELECTS, Ready
from app.db.search import Search, comparable, has_part, number_found
from app.models import RowCount

FEW = 1000
"""So many matches are found first and sorted then; more are found in their order, page by page."""

FEW_FOUND = 10_000
"""The same for a search, which finds its matches in an index."""


@dataclass(frozen=True, slots=True)
class RowCountFilter:
    """All records of a kind, or those with some labels: a list that ``RowCount`` knows.

    Args:
        kind: whose tallies.
        moment: the column by whose weeks they are kept, as the ids of the list see it.
        labels: which of them; None for all.
        without: a label to leave out of all.
    """

    kind: str
    moment: ColumnElement[datetime]
    labels: tuple[str, ...] | None = None
    without: str | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many records there are."""
        return int(fetch(_sum_of_tallies(self.kind, self.labels, self.without))[0][0])

    def skip(self, fetch: Fetch, offset: int, order: str) -> tuple[ColumnElement[bool], int]:
        """Return how to pass over the first records without reading them.

        Returns:
            A condition that leaves out whole weeks, and how many records are to skip after that.
        """
        ascending = order == "asc"
        ahead: ColumnElement[bool] = true()
        weeks = fetch(_sums_of_weeks(self.kind, self.labels, self.without))
        for week, number in weeks if ascending else reversed(weeks):
            begins = datetime.combine(week, time.min, UTC)
            if number > offset:
                return self.moment >= begins if ascending else ahead, offset
            ahead = self.moment < begins
            offset -= int(number)
        return false(), 0


@lru_cache(MAX_SELECTS)
def _sum_of_tallies(kind: str, labels: tuple[str, ...] | None, without: str | None) -> Ready:
    return _of_kind(select(func.coalesce(func.sum(RowCount.number), 0)), kind, labels, without)


@lru_cache(MAX_SELECTS)
def _sums_of_weeks(kind: str, labels: tuple[str, ...] | None, without: str | None) -> Ready:
    weeks: Any = select(RowCount.week, func.sum(RowCount.number))
    return _of_kind(weeks.group_by(RowCount.week).order_by(RowCount.week), kind, labels, without)


def _of_kind(
    sums: Select[Any], kind: str, labels: tuple[str, ...] | None, without: str | None
) -> Ready:
    sums = sums.where(RowCount.kind == kind)
    if without is not None:
        sums = sums.where(RowCount.label != without)
    if labels is not None:
        sums = sums.where(equals_any(RowCount.__table__.c.label, labels))
    return Ready(sums)


@dataclass(frozen=True, slots=True)
class IndexCount:
    """What a search finds in a whole table, of which nearly everything is in the list.

    Args:
        number: how many records it finds.
        records: selects the ids of all that contain the text, by looking at each.
        outside: returns the ids of the records that are not in the list; None where they are many.
    """

    number: ColumnElement[int]
    records: Select[Any]
    outside: Callable[[Fetch], Sequence[int] | None]

    def total(self, fetch: Fetch) -> int | None:
        """Return how many of them are in the list; None where this is not the way to count."""
        found: int = fetch(select(self.number))[0][0]
        if found <= FEW or (outside := self.outside(fetch)) is None:
            return None
        if not outside:
            return found
        (record_id,) = self.records.selected_columns
        return found - len(fetch(self.records.where(record_id.in_(outside))))


def count_in_index(
    search: ColumnElement[Any],
    record_id: ColumnElement[int],
    text: str | None,
    outside: Callable[[Fetch], Sequence[int] | None],
) -> IndexCount | None:
    """Return how a search for a text is counted in its index; None where it cannot be.

    Args:
        search: the column that is searched.
        record_id: the ids of its table.
        text: what is searched; None for more than a text.
        outside: of ``IndexCount``.
    """
    number = None if text is None else number_found(search, text)
    if text is None or number is None:
        return None
    exact = select(record_id).where(has_part(search, comparable(text)))
    return IndexCount(number, exact, outside)


@dataclass(frozen=True, slots=True)
class FilteredSet:
    """The records that match a query.

    Args:
        ids: selects their ids, without an order.
        tallied: the list, where they are all of one that is.
        found: selects the same ids by way of a search, which is quicker where it finds few.
        anywhere: counts them by way of a search, which is quicker where it finds many.
    """

    ids: Select[Any]
    tallied: RowCountFilter | None = None
    found: Select[Any] | None = None
    anywhere: IndexCount | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many they are."""
        if self.tallied:
            return self.tallied.total(fetch)
        if self.anywhere and (total := self.anywhere.total(fetch)) is not None:
            return total
        ids = self.ids if self.found is None else self.found
        counted = ids.with_only_columns(func.count(), maintain_column_froms=True)
        return int(fetch(counted)[0][0])

    def where(self, conditions: Sequence[ColumnElement[bool]]) -> FilteredSet:
        """Return those of them that meet conditions, too."""
        return FilteredSet(self.ids.where(*conditions)) if conditions else self

    def searched(
        self,
        search: Search,
        conditions: Sequence[ColumnElement[bool]],
        anywhere: Callable[[], IndexCount | None],
    ) -> FilteredSet:
        """Return those of them that a search finds, and that meet conditions, too.

        Args:
            anywhere: returns how they are counted where there are no conditions.
        """
        found = self.ids if self.found is None else self.found
        return FilteredSet(
            self.ids.where(*conditions, search.many),
            found=found.where(*conditions, search.few),
            anywhere=None if conditions else anywhere(),
        )


def count(matching: FilteredSet) -> int:
    """Return how many records match."""
    if matching.anywhere is None:
        return matching.total(fetch)  # one statement
    with reader().snapshot() as fetch_here:
        return matching.total(fetch_here)


def between(table: Table, query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of ``created_at_min``, ``…_max`` and ``updated_at_…``, inclusive."""
    conditions = []
    for name in ("created_at", "updated_at"):
        if (moment := query[f"{name}_min"]) is not None:
            conditions.append(table.c[name] >= moment)
        if (moment := query[f"{name}_max"]) is not None:
            conditions.append(table.c[name] <= moment)
    return conditions
