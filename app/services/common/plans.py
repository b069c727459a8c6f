"""How a list is read: its total, and one of two plans for the IDs of a page (decisions 6).

A query module says which records match (``Matching``), and never how to find them.

- *Search*: up to FEW matches, or all that are counted of a text, are found by their conditions,
  and then sorted.
- *Count and page*: more matches, and lists without a filter, are read from the index of the sort
  order until the page is complete. A page in the second half is read backwards from the end.

The totals of lists without a filter are those of ``row_counts``, which one statement reads together
with the first page.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Select,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union_all,
)

from app.conversions.numbers import INT64_MAX
from app.db.read_pool import MAX_SELECTS, STREAM_ABOVE, Fetch, RowStream, fetch, snapshot
from app.db.records import Columns, Row, as_printed, fetch_by_ids
from app.db.sql.functions import is_selected
from app.services.common.filtering import Find, ListQuery, Matching
from app.services.common.pagination import Page, Total, default_page_size, page_size
from app.services.common.row_counts import RowCountFilter

FEW = 20_000
"""Up to this number, matches are found first and then sorted, if they are not those of a text."""

_WINDOW = {name: bindparam(name, type_=BigInteger) for name in ("offset", "limit")}


def count(find: Find, most: int | None = None) -> Total:
    """Return the number of matching records.

    Args:
        most: how many are counted at most, if these are not as many as a page counts.
    """
    with snapshot() as fetch:
        matching = _matching(find, fetch)
        search = matching.search
        if most is None and search is not None and not search.counts_all:
            most = search.most
        return _total(matching, fetch, most)


def ids_after(matching: Matching, after: int, limit: int) -> list[int]:
    """Return the IDs of the matching records that follow an ID, in their order.

    Large selections are processed in parts with it.
    """
    ids = matching.found().where(matching.record_id > after).order_by(matching.record_id)
    return [row[0] for row in fetch(ids.limit(limit))]


def first_matches(
    columns: Columns,
    matching: Matching,
    limit: int,
    *,
    key: ColumnElement[object],
    exact: ColumnElement[bool],
    is_exact: ColumnElement[bool] | None = None,
) -> Sequence[Row]:
    """Return the first matches of a search with one statement that uses indexes only.

    Of more than FEW matches, it compares those that the index returns first. A text without
    an index, of one or two letters, finds exact matches only.

    Args:
        limit: the number of matches.
        key: the sort key of the matches, in descending order.
        exact: a condition that finds exact matches by an index. These come first.
        is_exact: whether a match is exact, if that condition does not find all of them.
    """
    record_id, search = matching.record_id, matching.search
    ids: Select[int] | CompoundSelect[int] = select(record_id).where(exact)
    is_first = record_id.in_(ids) if is_exact is None else is_exact
    if search is not None and search.ids is not None and search.is_indexed:
        ids = union_all(ids, select(search.ids.limit(FEW).subquery()))
    order = case((is_first, 0), else_=1), key.desc(), record_id.desc()
    # Without the other columns, indexes alone find and sort them.
    is_candidate = is_selected(record_id, ids.scalar_subquery())
    first = select(record_id).where(is_candidate, matching.part).order_by(*order).limit(limit)
    rows = select(*map(as_printed, columns), record_id).where(record_id.in_(first))
    return fetch(rows.order_by(*order))


def fetch_page(
    columns: Columns, find: Find, query: ListQuery, *, key: ColumnElement[object], may_read: bool
) -> Page:
    """Return a page of records, which is empty if the actor may not read them (spec 5).

    Args:
        columns: the columns to select, which the record's ID follows.
        query: its order and page. Without an offset, ``page`` determines it.
        key: the sort key. Nulls come last. Equal keys are sorted by ID in the same direction, so
            that pages never overlap.
    """
    size = page_size(query.limit)
    if not may_read:
        return Page([], 0, query.page, size or default_page_size())
    # Without a limit, the list has a single page, and all later pages are empty.
    offset = query.offset or (size or INT64_MAX) * (query.page - 1)
    if size is None or size > STREAM_ABOVE:
        rows, total = _stream(columns, find, query, key, (offset, size or INT64_MAX))
        return Page(rows, total, query.page, size)
    first = _first_of_all(columns, find, key, query.order)
    if first is not None and not offset:
        rows = fetch(first, {"limit": size})
        return Page(rows, int(rows[0][-2]) if rows else 0, query.page, size)
    with snapshot() as read:
        matching = _matching(find, read)
        most = matching.search.most if matching.search is not None else None
        total, is_complete = _total(matching, read, most)
        is_cut = not is_complete and total == most  # the counting ended before the matches
        limit = size if is_cut else min(total - offset, size)
        after = INT64_MAX if is_cut else total - offset - limit
        is_backward = after < offset
        rows = []
        if limit > 0:
            plan = _search if not is_cut and _is_few(matching, total, most) else _count_and_page
            page = plan(matching, key, query.order, is_backward=is_backward, for_page=True)
            found = read(page, {"offset": min(offset, after), "limit": limit})
            ids = [row[0] for row in found]
            ids = ids[::-1] if is_backward else ids
            rows = fetch_by_ids(read, columns, matching.record_id, ids)
    goes_on = len(rows) == size if is_cut else offset + limit < total
    return Page(rows, total, query.page, size, goes_on=None if is_complete else goes_on)


def _stream(
    columns: Columns,
    find: Find,
    query: ListQuery,
    key: ColumnElement[object],
    window: tuple[int, int],
) -> tuple[Sequence[Row] | RowStream, int]:
    """Return the rows of a page that is read in batches, and the number of all matches.

    Args:
        window: the offset and the size of the page.
    """
    with snapshot() as read:
        matching = _matching(find, read)
        total, _ = _total(matching, read, None)
    offset, size = window
    limit = min(total - offset, size)
    if limit <= 0:
        return [], total
    record_id, page, values = matching.record_id, matching.found(), {}
    if limit < total:
        plan = _search if _is_few(matching, total, None) else _count_and_page
        page = plan(matching, key, query.order, is_backward=False, for_page=False)
        values = {"offset": offset, "limit": limit}
    every = select(*map(as_printed, columns), record_id).where(record_id.in_(page))
    return RowStream(every.order_by(*_order(key, record_id, query.order)), values), total


def _is_few(matching: Matching, total: int, most: int | None) -> bool:
    """Return whether to find all matches first, of which ``most`` are counted, and then sort."""
    search, index = matching.search, matching.index
    if matching.is_whole or (index is not None and index.finds_few):
        return False
    few = max(FEW, matching.few or 0)
    return total <= (few if search is None or most is None or not search.is_sorted else most)


def _matching(find: Find, fetch: Fetch) -> Matching:
    """Return what to find: a frequent text by comparing the records that the other filters find.

    All of its matches would otherwise be found to learn which of them the filters leave.
    """
    matching = find if isinstance(find, Matching) else find(fetch)
    search, is_filtered = matching.search, matching.conditions or matching.others is None
    if search is None or search.own is None or not is_filtered:
        return matching
    most = search.most or 0
    if fetch(_count(search.own.limit(most + 1)))[0][0] <= most:
        return matching
    compared = replace(search, by_index=search.in_order, ids=None, own=None)
    return replace(matching, search=compared)


def _total(matching: Matching, fetch: Fetch, most: int | None) -> Total:
    """Return the number of matching records, of which at most ``most`` are counted."""
    counted = matching.counted
    if counted is not None and matching.is_whole:
        return Total(int(fetch(counted.number)[0][0]))
    if matching.number is not None:
        return Total(int(fetch(select(matching.number))[0][0]))
    in_search_table = _numbers_in_search_table(matching, most)
    if in_search_table is not None:
        every, left_out = map(int, fetch(in_search_table)[0])
        is_complete = most is None or every - left_out <= most
        return Total(every - left_out - (not is_complete), is_complete)
    found = matching.found() if most is None else matching.first(most + 1)
    number: Select[int] | None = None
    if counted is not None and matching.search is None:
        ways = (counted.in_period, counted.by_change, counted.without_ids)
        numbers = (way(matching.conditions, found) for way in ways)
        number = next((each for each in numbers if each is not None), None)
    number = _count(found) if number is None else number
    has_older = None if most is None or matching.search is None else matching.search.has_older
    if has_older is not None:
        number = number.add_columns(has_older)
    total, *is_cut = fetch(number)[0]
    if most is not None and total > most:
        return Total(most, is_complete=False)
    return Total(int(total), is_complete=not any(is_cut))


def _numbers_in_search_table(matching: Matching, most: int | None) -> Select[int, int] | None:
    """Return a select that counts the matches of a search, and of these the few to leave out.

    To look up each of a million matches in its own table takes four times as long.
    """
    search, others = matching.search, matching.others
    if search is None or search.ids is None or others is None or matching.conditions:
        return None
    if most is not None and not search.counts_all:
        return None
    every, omitted = search.ids, select(matching.record_id).where(others, search.by_index)
    left_out = _count(omitted).scalar_subquery()
    if most is not None:
        every = every.limit(left_out + most + 1)
    return select(_count(every).scalar_subquery(), left_out)


def _count(ids: Select[int] | CompoundSelect[int]) -> Select[int]:
    return select(func.count()).select_from(ids.subquery())


def _search(
    matching: Matching,
    key: ColumnElement[object],
    direction: str,
    *,
    is_backward: bool,
    for_page: bool,
) -> Select[int]:
    """Find all matches by their conditions, and then sort them.

    Without OFFSET, PostgreSQL reads the index of the sort order, up to a million entries, until it
    has found the few matches.
    """
    every = matching.found(for_page=for_page).add_columns(key.label("key"))
    found = every.offset(literal_column("0")).subquery("found")
    record_id, key = found.c
    order = _order(key, record_id, direction, is_backward=is_backward, has_nulls=True)
    page = select(record_id).order_by(*order)
    return page.offset(_WINDOW["offset"]).limit(_WINDOW["limit"])


def _count_and_page(
    matching: Matching,
    key: ColumnElement[object],
    direction: str,
    *,
    is_backward: bool,
    for_page: bool,  # noqa: ARG001  # both plans have the same arguments
) -> Select[int]:
    """Read the index of the sort order until the page is complete."""
    ids, record_id = matching.compared(), matching.record_id
    if matching.index is not None:
        ids, record_id, key, _finds_few = matching.index
    order = _order(key, record_id, direction, is_backward=is_backward)
    return ids.order_by(*order).offset(_WINDOW["offset"]).limit(_WINDOW["limit"])


def _first_of_all(
    columns: Columns, find: Find, key: ColumnElement[Any], direction: str
) -> Select[Any] | None:
    """Return a select of the first records of a counted part, or None if not all of it matches.

    It has the number of all before the ID of each record. A part of which many are left out has no
    index of each order with all columns: SQLite would sort all orders with a status.
    """
    if not isinstance(find, Matching) or not find.is_whole or find.counted is None:
        return None
    if find.others is None and find.index is None:
        return None
    _, record_id, key, _ = find.index or (None, find.record_id, key, None)
    return _counted_first(tuple(columns), find.record_id, find.counted, (key, record_id, direction))


@lru_cache(MAX_SELECTS)  # the select of customers takes as long to build as to run
def _counted_first(
    columns: tuple[ColumnElement[object], ...],
    record_id: ColumnElement[int],
    counted: RowCountFilter,
    order: tuple[ColumnElement[Any], ColumnElement[int], str],
) -> Select[Any]:
    every = select(*map(as_printed, columns), counted.number.scalar_subquery(), record_id)
    return every.where(counted.part).order_by(*_order(*order)).limit(_WINDOW["limit"])


def _order(
    key: ColumnElement[object],
    record_id: ColumnElement[int],
    direction: str,
    *,
    is_backward: bool = False,
    has_nulls: bool | None = None,
) -> Sequence[ColumnElement[Any]]:
    """Return the clauses of ORDER BY, optionally from the end of the list."""
    ascending = (direction == "asc") != is_backward
    first, second = (each.asc() if ascending else each.desc() for each in (key, record_id))
    if key is record_id:
        return (first,)
    if getattr(key, "nullable", False) if has_nulls is None else has_nulls:
        first = first.nulls_first() if is_backward else first.nulls_last()
    return first, second
