"""A page of a list: its rows, its total and the headers that tell them (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    asc,
    bindparam,
    desc,
    select,
)

from app.db.read_pool import RowStream, snapshot
from app.db.records import Columns, Row, as_printed, fetch_by_ids
from app.numbers import INT64_MAX
from app.services.filtering import FEW, FEW_FOUND, Find

MAX_LINK_BYTES = 4000
"""A longer ``Link`` header is omitted: many proxies read 4 KiB of headers (decisions 17)."""

STREAM_ABOVE = 1000
"""Longer pages are not collected in memory but written row by row."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list and where they stand in it.

    Args:
        rows: what the page shows; of a long page they come in batches.
        total: how many rows match, whatever the offset and the page size; None for a list without
            pages, which has no headers.
        number: the page that was asked for, from 1.
        size: rows on a page; None when one page holds everything.
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
        """Return ``X-Total``, ``X-TotalPages`` and, where one applies, one ``Link`` (RFC 8288).

        A ``Link`` longer than MAX_LINK_BYTES is omitted; the totals remain.

        Args:
            address: the absolute URL of the list, in ASCII, without its query.
            query: the parameters of the request; the links keep all but ``page``.
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
    """Return the rows on a page: ``limit``, where -1 is no limit and 0 the default (spec 4.2)."""
    limit = query.get("limit")  # where a list knows it
    return None if limit == -1 else limit or default


def fetch_page(
    columns: Columns,
    record_id: ColumnElement[int],
    find: Find,
    *,
    key: ColumnElement[Any],
    query: Mapping[str, Any],
    size: int | None,
) -> Page:
    """Return a page of records.

    Args:
        columns: what to select of each record; its id comes behind them.
        record_id: the column of the records' ids.
        find: returns the records that match.
        key: what the records are sorted by; nulls come last. Equal ones are sorted by id in the
            same direction, so that pages never overlap.
        query: ``order``, ``offset`` (absent or 0: by page) and ``page``.
        size: rows on a page; None for all of them.
    """
    # Without a limit there is one page in total; the ones after it are empty.
    offset = min(query["offset"] or (size or INT64_MAX) * (query["page"] - 1), INT64_MAX)
    with snapshot() as fetch_here:
        matching = find(fetch_here)
        by = key if matching.key is None else matching.key
        row_count = matching.row_count
        total = matching.total(fetch_here)
        ids = page = matching.ids
        if offset or size is not None:
            # The page is found in an index first: of rows that are skipped, no column is read.
            in_weeks = row_count is not None and by is row_count.timestamp
            most = max(FEW_FOUND if matching.finds_quickly else FEW, matching.sorted_up_to)
            few = total <= most and (matching.found is not None or row_count is None)
            few = few and not in_weeks
            if few:
                ids = ids if matching.found is None else matching.found
            elif row_count is not None and in_weeks and offset:
                condition, offset = row_count.skip(fetch_here, offset, query["order"])
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


def _in_order(
    ids: Select[Any],
    key: ColumnElement[Any],
    key_from: FromClause | None,
    order: str,
    *,
    few: bool,
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
