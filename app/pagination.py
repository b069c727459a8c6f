"""A page of a list: its rows, its totals and the headers that tell them (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Table,
    asc,
    bindparam,
    desc,
    false,
    func,
    or_,
    select,
    true,
)

from app.models import Tally
from app.reading import Fetch, RowStream, fetch, reader
from app.ready import MOST_SELECTS, Ready, ready
from app.records import Columns, Row, as_printed, fetch_by_ids
from app.sanitize import INT64_MAX
from app.search import Search, comparable, number_found

STREAM_ABOVE = 1000
"""Longer pages are not collected in memory but written row by row."""

FEW = 1000
"""So many matches are found first and sorted then; more are found in their order, page by page."""

FEW_FOUND = 10_000
"""The same for a search, which finds its matches in an index."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list and where they stand in it.

    Args:
        rows: what the page shows; of a long page they come in batches.
        total: how many rows match, whatever the offset and the page size.
        number: the page that was asked for, from 1.
        size: rows on a page; None when one page holds everything.
    """

    rows: Sequence[Any] | RowStream
    total: int
    number: int
    size: int | None

    @property
    def pages(self) -> int:
        """Return ceil(total / size), or 1 without a limit (spec 4.2)."""
        return 1 if self.size is None else -(-self.total // self.size)

    def headers(self, address: str, query: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return ``X-Total``, ``X-TotalPages`` and, where one applies, one ``Link`` (RFC 8288).

        Args:
            address: the absolute URL of the list, without its query.
            query: the parameters of the request; the links keep all but ``page``.
        """
        kept = urlencode([(name, value) for name, value in query if name != "page"])
        before = f"<{address}?{kept}&page=" if kept else f"<{address}?page="
        targets = {
            "first": 1 if self.number > 1 else None,
            "prev": self.number - 1 if self.number > 1 else None,
            "next": self.number + 1 if self.number < self.pages else None,
            "last": self.pages if self.pages not in {0, self.number} else None,
        }
        links = [f'{before}{page}>; rel="{relation}"' for relation, page in targets.items() if page]
        headers = {"X-Total": str(self.total), "X-TotalPages": str(self.pages)}
        return headers | {"Link": ", ".join(links)} if links else headers


def page_size(query: Mapping[str, Any], default: int) -> int | None:
    """Return the rows on a page: ``limit``, where -1 is no limit and 0 the default (spec 4.2)."""
    limit = query.get("limit")  # where a list knows it
    return None if limit == -1 else limit or default


@dataclass(frozen=True, slots=True)
class Tallied:
    """All records of a kind, or those with some labels: a list that ``Tally`` knows.

    Args:
        kind: whose tallies.
        moment: the column by whose weeks they are kept, as the ids of the list see it.
        labels: which of them; None for all.
    """

    kind: str
    moment: ColumnElement[datetime]
    labels: tuple[str, ...] | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many records there are."""
        return int(fetch(_sum_of_tallies(self.kind, self.labels))[0][0])

    def skip(self, fetch: Fetch, offset: int, order: str) -> tuple[ColumnElement[bool], int]:
        """Return how to pass over the first records without reading them.

        Returns:
            A condition that leaves out whole weeks, and how many records are to skip after that.
        """
        ascending = order == "asc"
        ahead: ColumnElement[bool] = true()
        weeks = fetch(_sums_of_weeks(self.kind, self.labels))
        for week, number in weeks if ascending else reversed(weeks):
            begins = datetime.combine(week, time.min, UTC)
            if number > offset:
                return self.moment >= begins if ascending else ahead, offset
            ahead = self.moment < begins
            offset -= int(number)
        return false(), 0


@lru_cache(MOST_SELECTS)
def _sum_of_tallies(kind: str, labels: tuple[str, ...] | None) -> Ready:
    return _of_kind(select(func.coalesce(func.sum(Tally.number), 0)), kind, labels)


@lru_cache(MOST_SELECTS)
def _sums_of_weeks(kind: str, labels: tuple[str, ...] | None) -> Ready:
    weeks: Any = select(Tally.week, func.sum(Tally.number))
    return _of_kind(weeks.group_by(Tally.week).order_by(Tally.week), kind, labels)


def _of_kind(sums: Select[Any], kind: str, labels: tuple[str, ...] | None) -> Ready:
    sums = sums.where(Tally.kind == kind)
    if labels is not None:
        sums = sums.where(or_(false(), *(Tally.label == label for label in labels)))
    return Ready(sums)


@dataclass(frozen=True, slots=True)
class Anywhere:
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


def found_anywhere(
    search: ColumnElement[Any],
    record_id: ColumnElement[int],
    text: str | None,
    outside: Callable[[Fetch], Sequence[int] | None],
) -> Anywhere | None:
    """Return how a search for a text is counted in its index; None where it cannot be.

    Args:
        search: the column that is searched.
        record_id: the ids of its table.
        text: what is searched; None for more than a text.
        outside: of ``Anywhere``.
    """
    number = None if text is None else number_found(search, text)
    if text is None or number is None:
        return None
    exact = search.contains(comparable(text), autoescape=True)
    return Anywhere(number, select(record_id).where(exact), outside)


@dataclass(frozen=True, slots=True)
class Matching:
    """The records that match a query.

    Args:
        ids: selects their ids, without an order.
        tallied: the list, where they are all of one that is.
        found: selects the same ids by way of a search, which is quicker where it finds few.
        anywhere: counts them by way of a search, which is quicker where it finds many.
    """

    ids: Select[Any]
    tallied: Tallied | None = None
    found: Select[Any] | None = None
    anywhere: Anywhere | None = None

    def total(self, fetch: Fetch) -> int:
        """Return how many they are."""
        if self.tallied:
            return self.tallied.total(fetch)
        if self.anywhere and (total := self.anywhere.total(fetch)) is not None:
            return total
        ids = self.ids if self.found is None else self.found
        counted = ids.with_only_columns(func.count(), maintain_column_froms=True)
        return int(fetch(counted)[0][0])

    def where(self, conditions: Sequence[ColumnElement[bool]]) -> Matching:
        """Return those of them that meet conditions, too."""
        return Matching(self.ids.where(*conditions)) if conditions else self

    def searched(
        self,
        search: Search,
        conditions: Sequence[ColumnElement[bool]],
        anywhere: Callable[[], Anywhere | None],
    ) -> Matching:
        """Return those of them that a search finds, and that meet conditions, too.

        Args:
            anywhere: returns how they are counted where there are no conditions.
        """
        found = self.ids if self.found is None else self.found
        return Matching(
            self.ids.where(*conditions, search.many),
            found=found.where(*conditions, search.few),
            anywhere=None if conditions else anywhere(),
        )


def count(matching: Matching) -> int:
    """Return how many records match."""
    if matching.anywhere is None:
        return matching.total(fetch)  # one statement
    with reader().snapshot() as fetch_here:
        return matching.total(fetch_here)


def fetch_page(
    columns: Columns,
    record_id: ColumnElement[int],
    matching: Matching,
    *,
    key: ColumnElement[Any],
    key_of_ids: ColumnElement[Any] | None = None,
    key_from: FromClause | None = None,
    query: Mapping[str, Any],
    size: int | None,
) -> Page:
    """Return a page of records.

    Args:
        columns: what to select of each record; its id comes behind them.
        record_id: the column of the records' ids.
        matching: the records that match.
        key: what the records are sorted by; nulls come last. Equal ones are sorted by id in the
            same direction, so that pages never overlap.
        key_of_ids: the same, as the select of ids can see it; None where it is the same column.
        key_from: where ``key_of_ids`` comes from when that does not read it: an id and a value, for
            some of the records.
        query: ``order``, ``offset`` (absent or 0: by page) and ``page``.
        size: rows on a page; None for all of them.
    """
    # Without a limit there is one page in total; the ones after it are empty.
    offset = min(query["offset"] or (size or INT64_MAX) * (query["page"] - 1), INT64_MAX)
    by = key if key_of_ids is None else key_of_ids
    tallied = matching.tallied
    with reader().snapshot() as fetch_here:
        total = matching.total(fetch_here)
        ids = page = matching.ids
        is_kept = False
        if offset or size is not None:
            # The page is found in an index first: of rows that are skipped, no column is read.
            if tallied and by is tallied.moment and offset:
                condition, offset = tallied.skip(fetch_here, offset, query["order"])
                ids = ids.where(condition)
            few = not tallied and total <= (FEW if matching.found is None else FEW_FOUND)
            if few and matching.found is not None:
                ids = matching.found
            is_kept = tallied is not None and ids is matching.ids
            in_order = _kept_in_order if is_kept else _in_order
            page = in_order(ids, by, key_from, query["order"], few)
        window = {"offset": offset, "limit": INT64_MAX if size is None else min(size, INT64_MAX)}
        rows: Sequence[Row] | RowStream = ()
        if size is not None and size <= STREAM_ABOVE:
            found = [row[0] for row in fetch_here(ready(page) if is_kept else page, window)]
            rows = fetch_by_ids(fetch_here, columns, record_id, found)
    if size is None or size > STREAM_ABOVE:
        printed = (as_printed(column) for column in columns)
        every = select(*printed, record_id).where(record_id.in_(page))
        rows = RowStream(every.order_by(*_order(query["order"], key, record_id)), window)
    return Page(rows, total, query["page"], size)


def _in_order(
    ids: Select[Any],
    key: ColumnElement[Any],
    key_from: FromClause | None,
    order: str,
    few: bool,  # remembered by position
) -> Select[Any]:
    """Return a window of the ids, sorted: its ``offset`` and ``limit`` are parameters."""
    (found_id,) = ids.selected_columns
    if key_from is not None:
        ids = ids.outerjoin(key_from, key_from.c[0] == found_id)
    if few:
        # A limit that limits nothing: without it databases walk an index in the order that is
        # asked for, past a million rows, until they have met the few.
        found = ids.add_columns(key.label("key")).limit(INT64_MAX).subquery()
        sorted_ids = select(found.c[0])
        sorted_ids = sorted_ids.order_by(*_order(order, found.c.key, found.c[0], of=key))
    else:
        sorted_ids = ids.order_by(*_order(order, key, found_id))
    return sorted_ids.offset(bindparam("offset", type_=BigInteger)).limit(
        bindparam("limit", type_=BigInteger)
    )


# For ids that are selected by one and the same select each time.
_kept_in_order = lru_cache(MOST_SELECTS)(_in_order)


def _order(
    order: str,
    key: ColumnElement[Any],
    tie: ColumnElement[int],
    of: ColumnElement[Any] | None = None,
) -> Any:
    direction = asc if order == "asc" else desc
    way = direction(key)
    nullable = getattr(key if of is None else of, "nullable", False)
    return (way.nulls_last() if nullable else way, direction(tie))


def between(table: Table, query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of ``created_at_min``, ``…_max`` and ``updated_at_…``, inclusive."""
    conditions = []
    for name in ("created_at", "updated_at"):
        if (moment := query[f"{name}_min"]) is not None:
            conditions.append(table.c[name] >= moment)
        if (moment := query[f"{name}_max"]) is not None:
            conditions.append(table.c[name] <= moment)
    return conditions
