"""How a list is read: its total, and one of five plans for the IDs of a page (decisions 6).

A query module says which records match (``Matching``). The plans, in the order in which they are
tried:

- by weeks: counted weeks before the page are skipped, without reading their records;
- few: a few matches are found by their condition, and then sorted;
- by ranking: the sort key is read from an index of another table, and the records whose key has
  changed since are merged;
- by place: records before the page are skipped in the index of the sort order, without comparing
  each one with a condition that nearly all of them meet;
- in order: the index of the sort order is read until the page is complete.

A page in the second half of a list is read backwards from the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from operator import ge, le
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BinaryExpression,
    Column,
    ColumnElement,
    PrimaryKeyConstraint,
    Select,
    UniqueConstraint,
    asc,
    bindparam,
    case,
    desc,
    func,
    literal,
    select,
    true,
    tuple_,
    union_all,
)

from app.conversions.numbers import INT64_MAX
from app.db.read_pool import (
    MAX_SELECTS,
    STREAM_ABOVE,
    Fetch,
    RowStream,
    fetch,
    read_engine,
    snapshot,
)
from app.db.records import Columns, Row, as_printed, fetch_by_ids
from app.db.search import Search
from app.db.sql.functions import is_one_of
from app.db.sql.index_hints import frequent, unindexed
from app.db.sql.types import IdList
from app.services.common.filtering import Find, Matching, Ranking, Subset
from app.services.common.pagination import Page, default_page_size, page_size
from app.services.common.row_counts import RowCountFilter, whole_weeks

FEW = 1000
"""Up to this number, matches are found first and then sorted. More matches are read page by page
from an index in the order of the list."""

FEW_FOUND = 10_000
"""The same limit for matches from the index of a search or a role."""

FEW_OTHERS = 5000
"""Up to this number, the records of a table that a list leaves out are named by their IDs."""

FEW_LOOKED_UP = 100
"""The same for each search, which looks them up."""

_OPPOSITE = {"asc": "desc", "desc": "asc"}


def count(find: Find) -> int:
    """Return the number of matching records."""
    with snapshot() as fetch:
        return _total(_matching(find, fetch), fetch, None)


def ids_after(matching: Matching, after: int, limit: int) -> list[int]:
    """Return the IDs of the matching records that follow an ID, in their order.

    Large selections are processed in parts with it.
    """
    ids = _found(matching).where(matching.record_id > after).order_by(matching.record_id)
    return [row[0] for row in fetch(ids.limit(limit))]


def first_matches(
    columns: Columns,
    matching: Matching,
    limit: int,
    *,
    key: ColumnElement[Any],
    is_exact: ColumnElement[bool],
    exact: ColumnElement[bool] | None = None,
) -> Sequence[Row]:
    """Return the first matches of a search with one statement that uses indexes only.

    Of more than FEW_FOUND matches, it compares those that the index returns first. A text without
    an index, of one or two letters, finds exact matches only.

    Args:
        limit: the number of matches.
        key: the sort key of the matches, in descending order.
        is_exact: whether a match is exact. These come first.
        exact: a condition that finds exact matches by an index, by default the same.
    """
    record_id, search = matching.record_id, matching.search
    ids: Any = select(record_id).where(is_exact if exact is None else exact)
    if search is not None and search.by_index is not search.in_order:
        found = select(record_id).where(search.by_index) if search.index is None else search.index
        ids = union_all(ids, select(found.limit(FEW_FOUND).subquery()))
    order = case((is_exact, 0), else_=1), key.desc(), record_id.desc()
    printed = map(as_printed, columns)
    rows = select(*printed, record_id).where(record_id.in_(ids), matching.part.condition)
    return fetch(rows.order_by(*order).limit(limit))


def fetch_page(
    columns: Columns,
    find: Find,
    query: Mapping[str, Any],
    *,
    key: ColumnElement[Any],
    may_read: bool,
    record_id: ColumnElement[int] | None = None,
) -> Page:
    """Return a page of records, which is empty if the actor may not read them (spec 5).

    Args:
        columns: the columns to select, which the record's ID follows.
        query: ``order``, ``limit``, ``offset`` (if absent or 0, ``page`` determines it) and
            ``page``.
        key: the sort key. Nulls come last. Equal keys are sorted by ID in the same direction, so
            that pages never overlap. Unique keys need no ID.
        record_id: the column with the ID, if the matching IDs are read from another table.
    """
    size = page_size(query)
    if not may_read:
        return Page([], 0, query["page"], size or default_page_size())
    # Without a limit, the list has a single page, and all later pages are empty.
    offset = query["offset"] or (size or INT64_MAX) * (query["page"] - 1)
    rows: Sequence[Row] | RowStream = ()
    with snapshot() as fetch:
        matching = _matching(find, fetch)
        record_id = matching.record_id if record_id is None else record_id
        is_collected = size is not None and size <= STREAM_ABOVE
        most = _most_counted(matching) if is_collected else None
        total = _total(matching, fetch, most)
        is_more = most is not None and total > most
        limit = min(INT64_MAX if is_more else total - offset, size or INT64_MAX)
        if limit > 0:
            order = _Order(_key(matching, key), matching.record_id, query["order"])
            if offset > (after := total - offset - limit) and not is_more:
                order, offset = order.reversed(), after
            page, offset = _page(matching, order, fetch, INT64_MAX if is_more else total, offset)
            window = {"offset": offset, "limit": limit}
            if is_collected:  # IDs first, so that no columns of skipped rows are read
                newest = _newest(matching, order) if total > FEW else None
                ids = _ids_of_page(page, newest, fetch, window)
                rows = fetch_by_ids(fetch, columns, record_id, order.forwards(ids))
    if limit > 0 and not is_collected:
        page, window = (_every(matching), {}) if limit == total else (page, window)
        in_order = _Order(key, record_id, query["order"])
        rows = RowStream(_with_columns(columns, page, in_order), window)
    goes_on = isinstance(rows, list) and len(rows) == size if is_more else None
    return Page(rows, most if is_more else total, query["page"], size, goes_on=goes_on)


def _most_counted(matching: Matching) -> int | None:
    """Return up to which number the matches of a search are counted, or None without a search."""
    return matching.search.most if isinstance(matching.search, Search) else None


def _key(matching: Matching, usual: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the sort key of a list, which is ``usual`` if the matching records have no other."""
    if matching.ranking is not None:
        return matching.ranking.key_of(matching.record_id)
    return usual if matching.key is None else matching.key


def _with_columns(columns: Columns, ids: Select[Any], order: _Order) -> Select[Any]:
    """Return a select of the records with some IDs, in their order."""
    printed = (as_printed(column) for column in columns)
    every = select(*printed, order.record_id).where(order.record_id.in_(ids))
    return every.order_by(*order.clauses())


class _Order(NamedTuple):
    """The order in which a list is read.

    Args:
        record_id: the column with the ID, which determines the order of equal keys.
        is_backward: whether the list is read from its end.
    """

    key: ColumnElement[Any]
    record_id: ColumnElement[int]
    direction: str
    is_backward: bool = False

    def reversed(self) -> _Order:
        """Return the order from the end of the list."""
        return self._replace(direction=_OPPOSITE[self.direction], is_backward=True)

    def forwards(self, found: Sequence[int]) -> Sequence[int]:
        """Return IDs that were read in this order in the order of the list."""
        return found[::-1] if self.is_backward else found

    def clauses(
        self, key: ColumnElement[Any] | None = None, record_id: ColumnElement[int] | None = None
    ) -> tuple[ColumnElement[Any], ...]:
        """Return the clauses of ORDER BY, optionally of the same columns in another form."""
        way = asc if self.direction == "asc" else desc
        first = way(self.key if key is None else key)
        if _is_unique(self.key):
            return (first,)
        if getattr(self.key, "nullable", False):
            first = first.nulls_first() if self.is_backward else first.nulls_last()
        return first, way(self.record_id if record_id is None else record_id)


def _matching(find: Find, fetch: Fetch) -> Matching:
    """Return the matching records. A frequent text is compared with the records.

    Otherwise, the IDs of all of its matches would be collected, of which few meet the conditions.
    """
    matching = find if isinstance(find, Matching) else find(fetch)
    search = matching.search
    if isinstance(search, Search) and search.index is not None and matching.conditions:
        some = search.index.limit(FEW_FOUND + 1).subquery()
        if fetch(select(func.count()).select_from(some))[0][0] > FEW_FOUND:
            compared = replace(search, by_index=search.in_order)
            return replace(matching, search=compared)
    return matching


def _is_whole(matching: Matching) -> bool:
    """Return whether all records of the part match."""
    return not matching.conditions and matching.search is None


def _total(matching: Matching, fetch: Fetch, most: int | None) -> int:
    """Return the number of matching records, or ``most`` + 1 if there are more."""
    part = matching.part
    if _is_whole(matching) and part.counted is not None:
        return part.counted.total(fetch)
    if matching.number is not None:
        return int(fetch(select(matching.number))[0][0])
    other_way = _number_in_period(matching)
    if other_way is None:
        other_way = _number_in_index(matching)
    if other_way is not None:
        return int(fetch(other_way)[0][0])
    found: Select[Any] | None = None
    if isinstance(matching.search, Search) and not matching.conditions:
        others = _few_others(matching, fetch)
        found = None if others is None else matching.search.matches_without(others)
    elif matching.search is None and not part.leads and _has_others(part):
        # The others are counted on their own. To compare each record takes SQLite twice as long as
        # to count the records in an index.
        every = _count(_where(matching))
        others_among = _count(_where(matching, _is_other(matching)))
        counted = select(every.scalar_subquery() - others_among.scalar_subquery())
        return int(fetch(counted)[0][0])
    found = _found(matching) if found is None else found
    if most is None:
        return int(fetch(_count(found))[0][0])
    return int(fetch(select(func.count()).select_from(found.limit(most + 1).subquery()))[0][0])


def _number_in_period(matching: Matching) -> Select[Any] | None:
    """Return a select that counts a period by whole weeks, or None for other conditions."""
    counted = matching.part.counted
    if counted is None or matching.search is not None:
        return None
    bounds: dict[Any, datetime] = {}
    for each in matching.conditions:
        if not isinstance(each, BinaryExpression) or each.left is not counted.timestamp:
            return None
        if each.operator not in (ge, le) or each.operator in bounds:
            return None  # a condition that excludes the bound
        bounds[each.operator] = each.right.value  # a bound of ``between``
    weeks = whole_weeks(bounds.get(ge), bounds.get(le))
    if weeks is None:
        return None
    first, end = weeks
    number = counted.of_weeks(first, end)
    edges = [] if first is None else [counted.timestamp < first]
    edges += [] if end is None else [counted.timestamp >= end]
    for edge in edges:
        number += _count(_found(matching).where(edge)).scalar_subquery()
    return select(number)


def _number_in_index(matching: Matching) -> Select[Any] | None:
    """Return a select that counts the matches of metadata in its index, if there are few others.

    SQLite would collect the IDs of all matches before it compares the first record.
    """
    search, others = matching.search, matching.part.others
    if search is None or search.index is None or isinstance(search, Search) or matching.conditions:
        return None
    if others is None or isinstance(others, ColumnElement) or len(others) > FEW_LOOKED_UP:
        return None
    every = select(func.count()).select_from(search.index.subquery())
    others_among = _count(_where(matching, _is_other(matching), search.in_order))
    return select(every.scalar_subquery() - others_among.scalar_subquery())


def _page(
    matching: Matching, order: _Order, fetch: Fetch, total: int, offset: int
) -> tuple[Select[Any], int]:
    """Return a select of the IDs of a page, and the number of matches that it still has to skip.

    Args:
        total: the number of matches. INT64_MAX if more match than are counted, because the number
            up to which they are counted can be few enough to find and sort them.
    """
    part = matching.part
    few = matching.few or (FEW_FOUND if isinstance(matching.search, Search) else FEW)
    if _is_whole(matching) and part.counted is not None and order.key is part.counted.timestamp:
        return _by_weeks(matching, order, fetch, part.counted, offset)
    if total <= few and not (_is_whole(matching) and part.by_index is None):
        return _few(matching, order), offset
    if matching.ranking is not None:
        return _by_ranking(matching, order, matching.ranking), offset
    if _is_whole(matching) and not part.leads and isinstance(order.key, Column) and offset > FEW:
        others = _few_others(matching, fetch)
        if others is not None:
            return _by_place(matching, order, fetch, others, offset)
    return _in_order(_with_hints(matching, fetch, total), order), offset


def _with_hints(matching: Matching, fetch: Fetch, total: int) -> Matching:
    """Let SQLite read the index of the order if most records of a part match.

    Otherwise it finds all of them in an index of their condition, if that begins with the columns
    of the part, and sorts them.
    """
    part = matching.part
    if not part.leads or part.counted is None or matching.search is not None:
        return matching
    if _is_whole(matching) or total * 4 < part.counted.total(fetch) * 3:
        return matching
    return replace(matching, conditions=[frequent(each) for each in matching.conditions])


def _ids_of_page(
    page: Select[Any], newest: Select[Any] | None, fetch: Fetch, window: Mapping[str, int]
) -> list[int]:
    """Return the IDs of a page, of ``newest`` if it has as many."""
    found = [] if newest is None else fetch(newest, window)
    if len(found) < window["limit"]:
        found = fetch(page, window)
    return [row[0] for row in found]


def _newest(matching: Matching, order: _Order) -> Select[Any] | None:
    """Return a select of the records that changed since a time, if they were also created since.

    In a list with the newest first, these are before the others, so a whole page of them is that of
    the list. SQLite would find all records that changed since then, and sort them.
    """
    key = order.key
    if not isinstance(key, Column) or key.name != "created_at" or order.direction == "asc":
        return None
    updated_at = key.table.c.get("updated_at")
    for each in matching.conditions:
        if isinstance(each, BinaryExpression) and each.left is updated_at and each.operator is ge:
            return _in_order(matching, order, key >= each.right)
    return None


def _by_weeks(
    matching: Matching, order: _Order, fetch: Fetch, counted: RowCountFilter, offset: int
) -> tuple[Select[Any], int]:
    """Skip whole weeks before the page, of which the numbers of records are stored."""
    if not offset:
        return _in_order(matching, order), 0
    condition, offset = counted.skip(fetch, offset, order.direction)
    return _in_order(matching, order, condition), offset


def _few(matching: Matching, order: _Order) -> Select[Any]:
    """Find all matches by their condition, and then sort them."""
    ids = _found(matching)
    if read_engine().dialect.name == "sqlite":
        return _window(ids.order_by(*order.clauses(unindexed(order.key))))
    # This limit has no effect on the result, but without it, PostgreSQL reads the index of the
    # sort order, up to a million entries, until it has found the few matches.
    found = ids.add_columns(order.key.label("key")).limit(INT64_MAX).subquery()
    return _window(select(found.c[0]).order_by(*order.clauses(found.c.key, found.c[0])))


def _by_place(
    matching: Matching, order: _Order, fetch: Fetch, others: Sequence[int], offset: int
) -> tuple[Select[Any], int]:
    """Skip records in the index of the sort order, without comparing each one with the condition.

    A database skips entries of an index in a third of the time if it does not compare them.
    """
    key, record_id = order.key, order.record_id
    columns = [key] if _is_unique(key) else [key, record_id]
    nth = select(*columns).order_by(*order.clauses()).limit(1).offset(offset)
    (place,) = fetch(nth)
    here, there = tuple_(*map(literal, place, (each.type for each in columns))), tuple_(*columns)
    is_before, is_after = (
        (there < here, there >= here) if order.direction == "asc" else (there > here, there <= here)
    )
    skipped = _count(select(record_id).where(_is_one_of(record_id, others), is_before))
    return _in_order(matching, order, is_after), fetch(skipped)[0][0] if others else 0


def _in_order(matching: Matching, order: _Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    """Read the index of the sort order until the page is complete."""
    if _is_whole(matching) and not conditions:
        return _every_in_order(matching.record_id, matching.part.condition, order)
    ids = _ids(matching, matching.part.condition).where(*conditions)
    return _window(ids.order_by(*order.clauses()))


@lru_cache(MAX_SELECTS)  # building and hashing it takes an eighth of a page of ten coupons
def _every_in_order(
    record_id: ColumnElement[int], condition: ColumnElement[bool], order: _Order
) -> Select[Any]:
    ids = select(record_id).where(condition).order_by(*order.clauses())
    return _window(ids)


def _by_ranking(matching: Matching, order: _Order, ranking: Ranking) -> Select[Any]:
    """Read the index of stored keys, and merge the records whose stored keys are out of date.

    Without the index, the keys of all records are computed.
    """
    ids = _ids(matching, matching.part.condition)
    if ranking.index is None:
        summed = ranking.summed
        keys = func.coalesce(summed.c[1], literal(0))
        every = ids.outerjoin(summed, summed.c[0] == matching.record_id)
        return _window(every.order_by(*order.clauses(keys)))
    stored_id, stored = ranking.index
    # Only as many as the page and those before it, so that the index is not read to its end.
    until = bindparam("offset", type_=BigInteger) + bindparam("limit", type_=BigInteger)
    # A condition and not a join, in which SQLite would begin with the other table.
    matches = ids.where(matching.record_id == stored_id).correlate(stored_id.table).exists()
    in_index = (
        select(stored_id.label("id"), stored.label("key"))
        .where(stored_id.not_in(ranking.stale), matches)
        .order_by(*order.clauses(stored, stored_id))
        .limit(until)
        .subquery()
    )
    others = ids.join(ranking.fresh, ranking.fresh.c[0] == matching.record_id)
    others = others.with_only_columns(*ranking.fresh.c, maintain_column_froms=True)
    both = union_all(select(in_index), others).subquery()
    return _window(select(both.c.id).order_by(*order.clauses(both.c.key, both.c.id)))


def _window(sorted_ids: Select[Any]) -> Select[Any]:
    return sorted_ids.offset(bindparam("offset", type_=BigInteger)).limit(
        bindparam("limit", type_=BigInteger)
    )


def _ids(matching: Matching, of_part: ColumnElement[bool]) -> Select[Any]:
    """Return a select of the matching IDs for reading them in the order of the list."""
    search = true() if matching.search is None else matching.search.in_order
    return _where(matching, of_part, search)


def _found(matching: Matching) -> Select[Any]:
    """Return a select of the matching IDs for finding them by the indexes of their conditions."""
    part, search = matching.part, matching.search
    of_part = part.condition if part.by_index is None else part.by_index
    return _where(matching, of_part, true() if search is None else search.by_index)


def _every(matching: Matching) -> Select[Any]:
    """Return a select of all matching IDs, in any order."""
    if isinstance(matching.search, Search):
        return _found(matching)
    return _ids(matching, matching.part.condition)


def _where(matching: Matching, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(matching.record_id).where(*matching.conditions, *conditions)


def _count(ids: Select[Any]) -> Select[Any]:
    return ids.with_only_columns(func.count(), maintain_column_froms=True)


def _has_others(part: Subset) -> bool:
    return isinstance(part.others, ColumnElement) or bool(part.others)


def _is_other(matching: Matching) -> ColumnElement[bool]:
    others: Any = matching.part.others
    return others if isinstance(others, ColumnElement) else _is_one_of(matching.record_id, others)


def _is_one_of(record_id: ColumnElement[int], ids: Sequence[int]) -> ColumnElement[bool]:
    return is_one_of(record_id, literal(list(ids), IdList))


def _few_others(matching: Matching, fetch: Fetch) -> Sequence[int] | None:
    """Return the IDs of the records of the table outside the part, or None if there are many."""
    others = matching.part.others
    if not isinstance(others, ColumnElement):
        return others
    ids = fetch(select(matching.record_id).where(others).limit(FEW_OTHERS + 1))
    return None if len(ids) > FEW_OTHERS else [row[0] for row in ids]


def _is_unique(column: ColumnElement[Any]) -> bool:
    """Return whether a constraint makes the values of a column unique, and none is null."""
    if not isinstance(column, Column) or column.nullable:
        return False
    kinds = PrimaryKeyConstraint | UniqueConstraint
    constraints = (each for each in column.table.constraints if isinstance(each, kinds))
    return any(list(each.columns) == [column] for each in constraints)
