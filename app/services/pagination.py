"""Pages of lists and their headers (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    FromClause,
    PrimaryKeyConstraint,
    Select,
    UniqueConstraint,
    asc,
    bindparam,
    desc,
    false,
    func,
    literal,
    select,
    tuple_,
)

from app.db.index_hints import unindexed
from app.db.read_pool import Fetch, RowStream, read_engine, snapshot
from app.db.records import Columns, Row, as_printed, fetch_by_ids
from app.numbers import INT64_MAX
from app.services.filtering import FEW, FEW_FOUND, Find

MAX_LINK_BYTES = 4000
"""A longer ``Link`` header is omitted: many proxies read 4 KiB of headers (decisions 17)."""

STREAM_ABOVE = 1000
"""Longer pages are not collected in memory but written row by row."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a page, and their position in the list.

    Args:
        rows: the rows; a long page reads them in batches.
        total: the number of matching rows, regardless of offset and page size; None for a list
            without pages, which has no headers.
        number: the requested page, from 1.
        size: rows per page; None if the list has a single page.
    """

    rows: Sequence[Any] | RowStream
    total: int | None
    number: int = 1
    size: int | None = None

    @property
    def pages(self) -> int:
        """Return ceil(total / size), or 1 without a limit (spec 4.2)."""
        return 1 if self.size is None else -(-(self.total or 0) // self.size)

    def headers(self, address: str, query: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return ``X-Total``, ``X-TotalPages`` and, if there are other pages, ``Link`` (RFC 8288).

        A ``Link`` longer than MAX_LINK_BYTES is omitted; the totals remain.

        Args:
            address: the absolute URL of the list, in ASCII, without its query.
            query: the parameters of the request. The links contain all except ``page``.
        """
        if self.total is None:
            return {}
        kept = urlencode([(name, value) for name, value in query if name != "page"])
        before = f"<{address}?{kept}&page=" if kept else f"<{address}?page="
        targets = {
            "first": 1 if self.number > 1 else None,
            "prev": self.number - 1 if self.number > 1 else None,
            "next": self.number + 1 if self.number < self.pages else None,
            "last": self.pages if self.pages not in {0, self.number} else None,
        }
        links = ", ".join(
            f'{before}{page}>; rel="{relation}"' for relation, page in targets.items() if page
        )
        headers = {"X-Total": str(self.total), "X-TotalPages": str(self.pages)}
        return headers | {"Link": links} if 0 < len(links) <= MAX_LINK_BYTES else headers


def page_size(query: Mapping[str, Any], default: int) -> int | None:
    """Return the rows per page: ``limit``, where -1 means no limit and 0 the default (spec 4.2)."""
    limit = query.get("limit")  # some lists have no limit parameter
    return None if limit == -1 else limit or default


def fetch_page(
    columns: Columns,
    record_id: ColumnElement[int],
    find: Find,
    *,
    key: ColumnElement[Any],
    query: Mapping[str, Any],
    default_size: int,
    may_read: bool,
) -> Page:
    """Return a page of records, which is empty if the actor may not read them (spec 5).

    Args:
        columns: the columns to select, which the record's ID follows.
        record_id: the column with the ID.
        find: returns the matching records.
        key: the sort key. Nulls come last. Equal keys are sorted by ID in the same direction, so
            that pages never overlap. Unique keys need no ID.
        query: ``order``, ``offset`` (if absent or 0, ``page`` determines it) and ``page``.
        default_size: rows per page if the query has no limit.
        may_read: whether the actor may read these records.
    """
    size = page_size(query, default_size)
    if not may_read:
        return Page([], 0, query["page"], size or default_size)
    # Without a limit, the list has a single page, and all later pages are empty.
    offset = min(query["offset"] or (size or INT64_MAX) * (query["page"] - 1), INT64_MAX)
    with snapshot() as fetch_here:
        matching = find(fetch_here)
        by = key if matching.key is None else matching.key
        row_count = matching.row_count
        total = matching.total(fetch_here)
        ids = page = matching.ids
        if offset or size is not None:
            # IDs are read from an index first, so that no columns of skipped rows are read.
            in_weeks = row_count is not None and by is row_count.timestamp
            most = max(FEW_FOUND if matching.finds_quickly else FEW, matching.sorted_up_to)
            few = total <= most and (matching.found is not None or row_count is None)
            few = few and not in_weeks
            if few:
                ids = ids if matching.found is None else matching.found
            elif row_count is not None and in_weeks and offset:
                condition, offset = row_count.skip(fetch_here, offset, query["order"])
                ids = ids.where(condition)
            elif matching.without is not None and isinstance(by, Column) and offset > FEW:
                place = _Place(by, record_id, query["order"])
                condition, offset = place.after(fetch_here, offset, total, matching.without)
                ids = ids.where(condition)
            page = _in_order(ids, by, matching.key_from, query["order"], few=few)
        window = {"offset": offset, "limit": INT64_MAX if size is None else min(size, INT64_MAX)}
        rows: Sequence[Row] | RowStream = ()
        if size is not None and size <= STREAM_ABOVE:
            found = [row[0] for row in fetch_here(page, window)]
            rows = fetch_by_ids(fetch_here, columns, record_id, found)
    if size is None or size > STREAM_ABOVE:
        printed = (as_printed(column) for column in columns)
        every = select(*printed, record_id).where(record_id.in_(page))
        rows = RowStream(every.order_by(*_order(query["order"], key, record_id)), window)
    return Page(rows, total, query["page"], size)


class _Place(NamedTuple):
    """A place in the list of all records of a table.

    Args:
        key: the sort key, which has no nulls.
        record_id: the column with the ID.
        order: ``asc`` or ``desc``.
    """

    key: Column[Any]
    record_id: ColumnElement[int]
    order: str

    def after(
        self, fetch: Fetch, offset: int, total: int, without: Sequence[int]
    ) -> tuple[ColumnElement[bool], int]:
        """Return a condition that skips records without reading their index entries.

        A database skips index entries in a third of the time if it does not compare each one with
        the conditions of the list. The entries are skipped from the nearer end of the index.

        Args:
            offset: how many records of the list to skip.
            total: the length of the list.
            without: IDs of all records that are not in the list.

        Returns:
            The condition, and the number of records of the list still to skip.
        """
        last = total + len(without) - 1
        if offset > last:
            return false(), 0
        is_near = offset <= last // 2
        order = self.order if is_near else {"asc": "desc", "desc": "asc"}[self.order]
        columns = [self.key] if _is_unique(self.key) else [self.key, self.record_id]
        nth = select(*columns).order_by(*_order(order, self.key, self.record_id))
        (place,) = fetch(nth.limit(1).offset(offset if is_near else last - offset))
        here = tuple_(*map(literal, place, (column.type for column in columns)))
        there = tuple_(*columns)
        is_before, is_after = (
            (there < here, there >= here) if self.order == "asc" else (there > here, there <= here)
        )
        left_out = select(func.count()).where(self.record_id.in_(without), is_before)
        return is_after, fetch(left_out)[0][0] if without else 0


def _in_order(
    ids: Select[Any],
    key: ColumnElement[Any],
    key_from: FromClause | None,
    order: str,
    *,
    few: bool,
) -> Select[Any]:
    """Return the sorted IDs, limited by the parameters ``offset`` and ``limit``."""
    (found_id,) = ids.selected_columns
    if key_from is not None:
        ids = ids.outerjoin(key_from, key_from.c[0] == found_id)
    if few and read_engine().dialect.name == "sqlite":
        sorted_ids = ids.order_by(*_order(order, unindexed(key), found_id, of=key))
    elif few:
        # This limit has no effect on the result, but without it, PostgreSQL reads the index of the
        # sort order, up to a million entries, until it has found the few matches.
        found = ids.add_columns(key.label("key")).limit(INT64_MAX).subquery()
        sorted_ids = select(found.c[0]).order_by(*_order(order, found.c.key, found.c[0], of=key))
    else:
        sorted_ids = ids.order_by(*_order(order, key, found_id))
    return sorted_ids.offset(bindparam("offset", type_=BigInteger)).limit(
        bindparam("limit", type_=BigInteger)
    )


def _order(
    order: str,
    key: ColumnElement[Any],
    tie: ColumnElement[int],
    of: ColumnElement[Any] | None = None,
) -> Any:
    direction = asc if order == "asc" else desc
    way = direction(key)
    column = key if of is None else of
    if _is_unique(column):
        return (way,)
    return (way.nulls_last() if getattr(column, "nullable", False) else way, direction(tie))


def _is_unique(column: ColumnElement[Any]) -> bool:
    """Return whether a constraint makes the values of a column unique, and none is null."""
    if not isinstance(column, Column) or column.nullable:
        return False
    kinds = PrimaryKeyConstraint | UniqueConstraint
    constraints = (each for each in column.table.constraints if isinstance(each, kinds))
    return any(list(each.columns) == [column] for each in constraints)
