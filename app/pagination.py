"""A page of a list: its rows, its totals and the headers that tell them (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Select, Table, asc, desc, func, select

from app.db import RowStream, fetch
from app.sanitize import INT64_MAX

STREAM_ABOVE = 1000
"""Longer pages are not collected in memory but written row by row."""


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
        kept = [(name, value) for name, value in query if name != "page"]
        targets = {
            "first": 1 if self.number > 1 else None,
            "prev": self.number - 1 if self.number > 1 else None,
            "next": self.number + 1 if self.number < self.pages else None,
            "last": self.pages if self.pages not in {0, self.number} else None,
        }
        links = [
            f'<{address}?{urlencode([*kept, ("page", page)])}>; rel="{relation}"'
            for relation, page in targets.items()
            if page
        ]
        headers = {"X-Total": str(self.total), "X-TotalPages": str(self.pages)}
        return headers | {"Link": ", ".join(links)} if links else headers


def page_size(query: Mapping[str, Any], default: int) -> int | None:
    """Return the rows on a page: ``limit``, where -1 is no limit and 0 the default (spec 4.2)."""
    limit = query.get("limit")  # where a list knows it
    return None if limit == -1 else limit or default


def fetch_page(
    columns: Sequence[ColumnElement[Any]],
    record_id: ColumnElement[int],
    ids: Select[Any],
    *,
    key: ColumnElement[Any],
    key_of_ids: ColumnElement[Any] | None = None,
    query: Mapping[str, Any],
    size: int | None,
) -> Page:
    """Return a page of records.

    Args:
        columns: what to select of each record; its id comes behind them.
        record_id: the column of the records' ids.
        ids: selects the id of every record that matches, without an order.
        key: what the records are sorted by; nulls come last. Equal ones are sorted by id in the
            same direction, so that pages never overlap.
        key_of_ids: the same, as ``ids`` can see it; None where it is the same column.
        query: ``order``, ``offset`` (absent or 0: by page) and ``page``.
        size: rows on a page; None for all of them.
    """
    (found_id,) = ids.selected_columns
    # Without a limit there is one page in total; the ones after it are empty.
    offset = query["offset"] or (size or INT64_MAX) * (query["page"] - 1)
    chosen = ids
    if offset or size is not None:
        # The page is found in an index first: of the rows that are skipped, no column is read.
        limit = INT64_MAX if size is None else min(size, INT64_MAX)
        order = _order(query, key if key_of_ids is None else key_of_ids, found_id)
        chosen = ids.order_by(*order).offset(min(offset, INT64_MAX)).limit(limit)
    order = _order(query, key, record_id)
    rows = select(*columns, record_id).where(record_id.in_(chosen)).order_by(*order)
    total = count_rows(ids)
    long = size is None or size > STREAM_ABOVE
    return Page(RowStream(rows) if long else fetch(rows), total, query["page"], size)


def _order(query: Mapping[str, Any], key: ColumnElement[Any], tie: ColumnElement[int]) -> Any:
    direction = asc if query["order"] == "asc" else desc
    way = direction(key)
    return (way.nulls_last() if getattr(key, "nullable", False) else way, direction(tie))


def count_rows(ids: Select[Any]) -> int:
    """Return how many records match."""
    counted = ids.with_only_columns(func.count(), maintain_column_froms=True)
    return int(fetch(counted)[0][0])


def between(table: Table, query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of ``created_at_min``, ``…_max`` and ``updated_at_…``, inclusive."""
    conditions = []
    for name in ("created_at", "updated_at"):
        if (moment := query[f"{name}_min"]) is not None:
            conditions.append(table.c[name] >= moment)
        if (moment := query[f"{name}_max"]) is not None:
            conditions.append(table.c[name] <= moment)
    return conditions
