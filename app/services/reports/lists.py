"""Reports that are lists: groups of several selects, sorted and in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from app.auth.principals import Principal
from app.conversions.numbers import INT64_MAX
from app.db import read_pool
from app.db.read_pool import Fetch
from app.services.common.pagination import Page, page_size
from app.services.reports.period import ReportQuery
from app.services.reports.scope import Scope, reading, scope_of, streaming

TOTAL = "number_of_rows"
"""Name of the number of rows on all pages."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page of a report that is a list."""

    page: Page
    shown: Callable[[Sequence[Any]], list[dict[str, object]]]  # returns rows as the API shows them


def in_order(key: ColumnElement[Any], query: ReportQuery) -> ColumnElement[Any]:
    """Return the clause that sorts by a key in the direction of a query."""
    return key.asc() if query.order == "asc" else key.desc()


def on_page(rows: Select[Any], query: ReportQuery, size: int | None) -> Select[Any]:
    """Return a select for the rows of a page. Page and limit can have any number of digits."""
    offset = (query.page - 1) * (size or 0)
    return rows.limit(size and min(size, INT64_MAX)).offset(min(offset, INT64_MAX))


def fetch_list(
    actor: Principal,
    build: Callable[[Scope], Select[Any]],
    shown: Callable[[Sequence[Any], Scope, Fetch], list[dict[str, object]]],
    currency: str,
    query: ReportQuery,
    *,
    complete: Callable[[Select[Any], Scope], Select[Any]] = lambda rows, _: rows,
) -> Report:
    """Return a page of a report.

    Args:
        build: function that returns a sorted select for a scope.
        shown: function that returns rows as the API shows them, with further reads.
        query: ``page`` and ``limit``.
        complete: function that adds figures to a select of the rows of a page.
    """
    size = page_size(query.limit)

    def build_page(scope: Scope) -> Select[Any]:
        rows = build(scope).add_columns(func.count().over().label(TOTAL))
        return complete(on_page(rows, query, size), scope)

    if size is None:
        with streaming(actor) as (fetch, stream):
            scope = scope_of(fetch, currency)
            rows: Any = stream(build_page(scope))
        first = rows.first
        total = first[0]._mapping[TOTAL] if first else 0
        # Further reads of a batch are on the connection of the stream (``RowStream.reading``).
        page = Page(rows, total, query.page)
        return Report(page, lambda batch: shown(batch, scope, read_pool.fetch))
    with reading(actor) as fetch:
        scope = scope_of(fetch, currency)
        rows = fetch(build_page(scope))
        if rows:
            total = rows[0]._mapping[TOTAL]
        else:
            every_row = build(scope).order_by(None).subquery()
            total = fetch(select(func.count()).select_from(every_row))[0][0]
        values = shown(rows, scope, fetch)
    return Report(Page(values, total, query.page, size), list)
