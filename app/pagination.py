"""A page of a list: its rows, its totals and the headers that tell them (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Select, Table, asc, desc, func

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


def fetch_page(
    statement: Select[Any],
    *,
    key: ColumnElement[Any],
    tie: ColumnElement[int],
    query: Mapping[str, Any],
    size: int | None,
) -> Page:
    """Return a page of the rows of a select.

    Args:
        statement: the select with its conditions, without an order.
        key: what the rows are sorted by; nulls come last.
        tie: the id, which sorts equal rows in the same direction, so that pages never overlap.
        query: ``order``, ``offset`` (absent or 0: by page) and ``page``.
        size: rows on a page; None for all of them.
    """
    direction = asc if query["order"] == "asc" else desc
    way = direction(key)
    nullable = getattr(key, "nullable", False)
    ordered = statement.order_by(way.nulls_last() if nullable else way, direction(tie))
    # Without a limit there is one page in total; the ones after it are empty.
    offset = query["offset"] or (size or INT64_MAX) * (query["page"] - 1)
    limited = ordered.limit(INT64_MAX if size is None else min(size, INT64_MAX))
    rows = limited.offset(min(offset, INT64_MAX))
    total = count_rows(statement)
    long = size is None or size > STREAM_ABOVE
    return Page(RowStream(rows) if long else fetch(rows), total, query["page"], size)


def count_rows(statement: Select[Any]) -> int:
    """Return how many rows a select has."""
    counted = statement.with_only_columns(func.count(), maintain_column_froms=True)
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
