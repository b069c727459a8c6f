"""Lists of complete records, also of those in the trash, as other dialects ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, case, literal, not_, or_, select, union_all
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.conversions.numbers import INT64_MAX, whole_number
from app.conversions.text import searchable
from app.db.read_pool import fetch
from app.db.records import Columns, NamedColumns, fetch_by_ids
from app.db.search import Search, contains, has_part
from app.db.sql.functions import json_text
from app.plugins.woocommerce.rest.site import Object
from app.services.common.filtering import Find, ListQuery
from app.services.common.pagination import Total
from app.services.common.plans import fetch_page

TableColumns = ReadOnlyColumnCollection[str, Column[object]]

MAX_WORDS = 9
"""Words of a search that are conditions of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordListQuery:
    """What a list shows.

    Attributes:
        page: number of the page.
        size: records on a page.
        offset: records to skip, which takes precedence over ``page``.
        order: ``asc`` or ``desc``.
        orderby: the sort key; ``include`` keeps the order of the given IDs.
        search: text that records contain; of coupons, words that must all be found, except those
            that begin with a hyphen.
        times: bounds of ``created_at`` and ``updated_at`` with ``after`` or ``before``, exclusive.
        include: only these IDs, if there are any.
        exclude: without these IDs.
    """

    page: int = 1
    size: int = 10
    offset: int | None = None
    order: str = "desc"
    orderby: str = "date"
    search: str = ""
    times: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    include: Sequence[int] = ()
    exclude: Sequence[int] = ()

    @property
    def window(self) -> ListQuery:
        """Return the query of ``fetch_page``."""
        return ListQuery(
            page=min(self.page, INT64_MAX // 1000),
            limit=self.size,
            offset=min(self.offset or 0, INT64_MAX // 2),
            order="asc" if self.orderby == "include" else self.order,
        )


def conditions_of(
    query: RecordListQuery, columns: TableColumns, record_id: ColumnElement[int]
) -> list[ColumnElement[bool]]:
    """Return the conditions of times and IDs."""
    found: list[ColumnElement[bool]] = []
    for (name, bound), moment in query.times.items():
        column = columns[name]
        found.append(column > moment if bound == "after" else column < moment)
    if query.include:
        found.append(record_id.in_([min(each, INT64_MAX) for each in query.include]))
    if query.exclude:
        found.append(record_id.not_in([min(each, INT64_MAX) for each in query.exclude]))
    return found


def _sort_key_of(
    query: RecordListQuery, keys: Mapping[str, ColumnElement[object]], record_id: ColumnElement[int]
) -> ColumnElement[object]:
    """Return the sort key; the place in ``include`` for ``orderby=include``."""
    if query.orderby != "include":
        return keys[query.orderby]
    places = {each: at for at, each in enumerate(dict.fromkeys(query.include))}
    return case(places, value=record_id) if places else literal(0)


def words_of(
    text: str, column: ColumnElement[str], record_id: ColumnElement[int]
) -> tuple[Search | None, list[ColumnElement[bool]]]:
    """Return the search for the first word, and the conditions of the other ones.

    A text of more than ``MAX_WORDS`` words is searched as a whole, as on the original.
    """
    words = text.split()
    words = words if len(words) <= MAX_WORDS else [text]
    wanted = [word for word in words if len(word) == 1 or not word.startswith("-")]
    conditions = [contains(column, word, record_id).in_order for word in wanted[1:]]
    conditions += [
        not_(has_part(column, searchable(word[1:])))
        for word in words
        if word.startswith("-") and len(word) > 1
    ]
    search = contains(column, wanted[0], record_id) if wanted else None
    return search, conditions


def phrase_of(
    text: str, column: ColumnElement[str], record_id: ColumnElement[int]
) -> Search | None:
    """Return the search for a text. A whole number also finds the record with this ID."""
    if not text.strip():
        return None
    found = contains(column, text, record_id)
    if (number := whole_number(text)) is None:
        return found
    in_order = or_(found.in_order, record_id == number)
    if not found.is_indexed or found.ids is None:
        newest = found.newest
        newest = None if newest is None else union_all(newest, select(literal(number)))
        return replace(found, in_order=in_order, by_index=in_order, ids=None, newest=newest)
    ids = union_all(found.ids, select(literal(number)))
    return replace(found, in_order=in_order, by_index=record_id.in_(ids), ids=ids)


def fetch_records(
    columns: Columns,
    find: Find,
    query: RecordListQuery,
    *,
    keys: NamedColumns,
    may_read: bool,
) -> tuple[list[Object], Total]:
    """Return a page of records by column name, and the number of all that match."""
    key = _sort_key_of(query, keys, keys["id"])
    page = fetch_page(columns, find, query.window, key=key, may_read=may_read)
    rows: Any = page.rows  # a short page, read as a whole
    return as_records(columns, rows), Total(page.total or 0, page.goes_on is None)


def records_with_ids(
    columns: Columns, record_id: ColumnElement[int], ids: Sequence[int]
) -> list[Object]:
    """Return the records with these IDs by column name, in the order of the IDs."""
    wanted = [min(each, INT64_MAX) for each in ids]
    return as_records(columns, fetch_by_ids(fetch, columns, record_id, wanted))


def address(columns: TableColumns, name: str, parts: Sequence[str]) -> ColumnElement[str]:
    """Return the column of an address, as the text of an object with these parts in their order."""
    return json_text({part: columns[f"{name}_{part}"] for part in parts}).label(name)


def as_records(columns: Columns, rows: Sequence[Sequence[object]]) -> list[Object]:
    """Return rows by the names of their columns."""
    names = [column.key or "" for column in columns]
    return [dict(zip(names, row, strict=False)) for row in rows]
