"""Totals and weeks of the records that database triggers count (``RowCount``)."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, false, func, select, true

from app.db.read_pool import MAX_SELECTS, Fetch
from app.models import ROW_COUNTS

_COUNTS: Any = ROW_COUNTS.c


@dataclass(frozen=True, slots=True)
class RowCountFilter:
    """Records that ``RowCount`` counts: those of a table, or of some of its partitions.

    Args:
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

    def of_weeks(self, first: datetime | None, end: datetime | None) -> ColumnElement[int]:
        """Return the number of records of whole weeks, as a part of a statement.

        Args:
            first: the beginning of the first week. None for all weeks before ``end``.
            end: the end of the last week. None for all weeks since ``first``.
        """
        weeks = select(func.coalesce(func.sum(_COUNTS.count), 0))
        if first is not None:
            weeks = weeks.where(_COUNTS.week >= first.date())
        if end is not None:
            weeks = weeks.where(_COUNTS.week < end.date())
        return _of_table(weeks, self.table_name, self.partitions, self.without).scalar_subquery()

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


def whole_weeks(
    since: datetime | None, until: datetime | None
) -> tuple[datetime | None, datetime | None] | None:
    """Return the beginning of the first whole week of a period and the end of its last one.

    Returns:
        None if the period contains no whole week. A bound that is None has no limit.
    """
    try:
        first = since if since is None else _monday(since + timedelta(days=7, microseconds=-1))
    except OverflowError:
        return None
    end = until if until is None else _monday(until)
    return None if first and end and first >= end else (first, end)


def _monday(moment: datetime) -> datetime:
    """Return the beginning of a week in UTC."""
    day = moment.astimezone(UTC).date()
    return datetime.combine(day - timedelta(days=day.weekday()), time.min, UTC)


# Building one of these selects costs as much as running it, so they are cached.
@lru_cache(MAX_SELECTS)
def _sum_of_counts(
    table_name: str, partitions: tuple[str, ...] | None, without: str | None
) -> Select[Any]:
    number = select(func.coalesce(func.sum(_COUNTS.count), 0))
    return _of_table(number, table_name, partitions, without)


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
