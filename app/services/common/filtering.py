"""What a list shows: the records that match a filter (decisions 6)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Self

from sqlalchemy import Column, ColumnElement, Select, select, true
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.db.read_pool import Fetch
from app.db.records import NamedColumns
from app.db.search import Search, is_match
from app.errors import InvalidParams, Sentence
from app.services.common.row_counts import RowCountFilter

_ALL = true()


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """What a list, a count, a report or an export may ask. Each noun adds its own filters.

    Args:
        page: number of the page, from 1.
        limit: records on a page; None or 0 for the default, -1 for all records.
        offset: records to skip, which takes precedence over ``page``.
        order: ``asc`` or ``desc``.
        orderby: the sort key, one of those of the list.
        created_at_min: bound of the creation time, inclusive, as the other three.
        metadata: keys that records have in their metadata, each with its value, or None for any.
    """

    page: int = 1
    limit: int | None = None
    offset: int | None = None
    order: str = "desc"
    orderby: str = "date"
    created_at_min: datetime | None = None
    created_at_max: datetime | None = None
    updated_at_min: datetime | None = None
    updated_at_max: datetime | None = None
    metadata: Sequence[tuple[str, str | None]] = ()

    @classmethod
    def of(cls, loaded: Mapping[str, Any]) -> Self:
        """Return the query that a schema has loaded, without what only its response depends on."""
        return cls(**{name: loaded[name] for name in cls.__dataclass_fields__ if name in loaded})


class OtherIndex(NamedTuple):
    """Another table with an index in the order of a list, which the list is read from.

    Args:
        ids: a select of the IDs of the matching records.
        record_id: the column with the ID in that table.
        key: the sort key in that table.
        finds_few: whether it finds a few matches by the conditions of ``ids`` as well.
    """

    ids: Select[int]
    record_id: ColumnElement[int]
    key: ColumnElement[object]
    finds_few: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """The records that match a query.

    Args:
        conditions: the conditions of the filters.
        part: the condition of the records that the list shows without a filter.
        counted: the row counts of exactly that part, if they are counted.
        search: the search for a text.
        others: the condition of the records that are not in that part, if these are few.
        number: the number of matches, if it is found sooner than by counting them.
        index: another table that the list is read from.
        few: up to which number matches are found first and then sorted, if more than FEW.
    """

    record_id: ColumnElement[int]
    conditions: Sequence[ColumnElement[bool]] = ()
    part: ColumnElement[bool] = _ALL
    counted: RowCountFilter | None = None
    search: Search | None = None
    others: ColumnElement[bool] | None = None
    number: ColumnElement[int] | None = None
    index: OtherIndex | None = None
    few: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether all records of the part match."""
        return not self.conditions and self.search is None

    def found(self, *, for_page: bool = False) -> Select[int]:
        """Return a select of the matching IDs, of which a search finds those of its text.

        Args:
            for_page: whether to look only at the newest records, if the search has so many.
        """
        search = self.search
        if search is None:
            return self._where(_ALL)
        if for_page and search.newest is not None:
            return self._where(self.record_id.in_(search.newest))
        return self._where(search.by_index)

    def first(self, limit: int) -> Select[int]:
        """Return a select of so many of the matching IDs of a page, without an order."""
        search = self.search
        ids = None if search is None or search.own is None else search.ids
        if search is not None and search.newest is not None:
            ids = search.newest
        if ids is None:
            return self.found().limit(limit)
        matches = ids.subquery("matches")
        (match,) = matches.c
        joined = select(self.record_id).join(matches, is_match(match, self.record_id))
        return joined.where(self.part, *self.conditions).limit(limit)

    def compared(self) -> Select[int]:
        """Return the same select, where a search compares its text with each record."""
        return self._where(_ALL if self.search is None else self.search.in_order)

    def _where(self, search: ColumnElement[bool]) -> Select[int]:
        return select(self.record_id).where(self.part, *self.conditions, search)


Find = Matching | Callable[[Fetch], Matching]
"""The matching records, or a function that returns them after selects in the list's snapshot."""


def require_known_status(statuses: Sequence[str] | None, known: Collection[str]) -> None:
    """Raise InvalidParams, which lists the known statuses, if ``filter[status]`` has another."""
    for status in statuses or ():
        if status not in known:
            reason = Sentence(
                "unknown status {0}. Known statuses: {1}.", repr(status), ", ".join(known)
            )
            raise InvalidParams({"filter[status]": reason})


def between(
    columns: NamedColumns | ReadOnlyColumnCollection[str, Column[object]], query: ListQuery
) -> list[ColumnElement[bool]]:
    """Return the conditions of ``created_at_min``, ``…_max`` and ``updated_at_…``, inclusive.

    Args:
        columns: ``created_at`` and ``updated_at``, or one of them.
    """
    conditions: list[ColumnElement[bool]] = []
    for name, first, last in (
        ("created_at", query.created_at_min, query.created_at_max),
        ("updated_at", query.updated_at_min, query.updated_at_max),
    ):
        if name in columns:
            conditions += [] if first is None else [columns[name] >= first]
            conditions += [] if last is None else [columns[name] <= last]
    return conditions


def within(
    value: ColumnElement[object], least: Decimal | None, most: Decimal | None
) -> list[ColumnElement[bool]]:
    """Return the conditions that a value is within bounds, inclusive."""
    conditions = [] if least is None else [value >= least]
    return conditions if most is None else [*conditions, value <= most]
