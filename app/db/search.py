"""Case-insensitive substring search, with the same results on SQLite and PostgreSQL.

SQLite compares the search column of all records. On PostgreSQL, each searchable table has a narrow
search table (migration 0008) that is maintained by triggers, with a trigram index if the server has
pg_trgm, which terms of three or more characters use. The results are the same.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Select,
    String,
    TableClause,
    and_,
    column,
    false,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.ext.compiler import compiles

from app.conversions.emails import EMAIL_MAX_LENGTH, comparable_email
from app.conversions.text import searchable, visible
from app.db.sql.templates import Templated

# Separates the texts with a noncharacter, so that a search term never matches across two texts.
SEPARATOR = "\uffff"
"""Stands between the texts of a search column."""

_TRIGRAM = 3

MOST_COUNTED = 50_000
"""How many matches of a search, or of conditions on other tables, a page counts at most."""

MOST_OF_LETTERS = 1000
"""The same for a search of one or two letters, which no index has."""

MOST_COMPARED = {"orders": 300_000}
"""How many of the newest records a page compares with one or two letters, by table.

The texts of other tables are a third as long.
"""


def search_text(*texts: str) -> str:
    """Return the value of the search column for a record with these texts.

    Python removes accents and converts the texts to lower case, because the databases do it in
    different ways. Texts that are part of another text are omitted, such as a username that is
    part of the e-mail address.
    """
    parts: list[str] = []
    longer = ""  # divided by NUL, which no stored text contains
    for text in sorted(map(searchable, filter(None, texts)), key=len, reverse=True):
        if text not in longer:
            parts.append(text)
            longer += f"\0{text}"
    return SEPARATOR.join(parts)


def search_term(text: str) -> str:
    """Return a text to search for as the search column has it.

    The column contains the Unicode form of each e-mail address.
    """
    return searchable(comparable_email(visible(text)) if "@" in text else text)


LONG = "long:"
"""Prefix of the key of an e-mail address that exceeds the limit of addresses."""


def email_key(email: str) -> str:
    """Return what identifies the customer of a use by e-mail address.

    The address of an order can be longer than an entry of an index of PostgreSQL. Its hash is used.
    """
    key = comparable_email(email)
    return key if len(key) <= EMAIL_MAX_LENGTH else LONG + sha256(key.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Search:
    """The condition that records match a search, in two equivalent forms.

    Args:
        in_order: compares each record, which are read in the order of a list.
        by_index: finds the matches in the search table.
        ids: selects the IDs of the matches from the search table.
        most: how many matches a page counts at most, because more would take up to a second. None
            for all of them.
        counts_all: whether ``/count`` counts all matches in any case.
        newest: selects the IDs of the matches among the newest records, if a page and ``/count``
            compare only these.
        has_older: whether there are other records.
        own: selects those of ``ids`` whose own text matches, if a join with ``ids`` ends after so
            many matches, but ``by_index`` does not. Each record is then in ``ids`` once.
        is_sorted: whether all matches that a page counts are found first and then sorted.
    """

    in_order: ColumnElement[bool]
    by_index: ColumnElement[bool]
    ids: Select[int] | CompoundSelect[int] | None = None
    most: int | None = 0
    counts_all: bool = False
    newest: Select[int] | CompoundSelect[int] | None = None
    has_older: ColumnElement[bool] | None = None
    own: Select[int] | CompoundSelect[int] | None = None
    is_sorted: bool = False

    @property
    def is_indexed(self) -> bool:
        """Return whether an index finds the text, which has three letters or more."""
        return self.most is None or self.most > MOST_OF_LETTERS


def contains(search: ColumnElement[str], text: str, record_id: ColumnElement[int]) -> Search:
    """Return the condition that the column contains the text. % and _ are literal."""
    if SEPARATOR in text:
        return Search(false(), false())
    text = search_term(text)
    return _search(search, record_id, [text], has_part(search, text), table_is_exact=True)


def contains_or_of_owner(
    search: ColumnElement[str],
    text: str,
    record_id: ColumnElement[int],
    owner_search: ColumnElement[str],
    owner_id: ColumnElement[int],
) -> Search:
    """Return the condition that a column contains the text, or the column of the owner of a record.

    One or two letters are searched in the column of the record only.

    Args:
        owner_search: the search column of another table, such as ``USERS.c.search_text``.
        owner_id: the column of the record with the ID of its owner.
    """
    own = contains(search, text, record_id)
    id_of_owner = owner_search.table.c.id
    owners = contains(owner_search, text, id_of_owner)
    if own.ids is None or owners.ids is None or not own.is_indexed:
        return own
    # A subquery with one row, which PostgreSQL looks up for each record, and collects for none.
    of_owner = select(owners.in_order).where(id_of_owner == owner_id).scalar_subquery()
    in_order = or_(own.in_order, of_owner)
    # Another name of the table, so that the subquery does not refer to the row around it.
    records = search.table.alias("owned")
    owned = select(records.c.id).where(records.c[owner_id.key].in_(owners.ids))
    by_index = record_id.in_(union_all(own.ids, owned))
    index, match = _index(search.table.name, [search_term(text)])
    is_own = select(index.c.rowid).where(index.c.rowid == records.c.id, match).exists()
    ids = union_all(own.ids, owned.where(~is_own))
    return Search(in_order, by_index, ids, own.most, own=own.ids)


def narrowed(search: Search | None, other: Search | None) -> Search | None:
    """Return a search for the records that two searches find. None finds all records."""
    if search is None or other is None:
        return search or other
    in_order = and_(search.in_order, other.in_order)
    most = None if search.most is None and other.most is None else MOST_COUNTED
    return Search(in_order, and_(search.by_index, other.by_index), most=most)


def is_match(match: ColumnElement[int], record_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition of a join of ``Search.ids`` with the records.

    SQLite then begins with the matches, which an index has, and not with the records.
    """
    return _ByDialect(match == record_id, match + 0 == record_id)


def has_part(search: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Return the condition that the search column contains a text from ``searchable``."""
    return _ByDialect(search.contains(text, autoescape=True), func.instr(search, text) > 0)


def first_line_has_part(search: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """Return the condition that the first line of the search column contains a text."""

    def found(position: Callable[..., Any]) -> ColumnElement[bool]:
        place: ColumnElement[int] = position(search, text)
        return place.between(1, position(search, "\n") - len(text))

    return _ByDialect(found(func.strpos), found(func.instr))


def matches(
    search: ColumnElement[str], pattern: str, record_id: ColumnElement[int]
) -> Search | None:
    """Return the condition that a part of one of the texts of a search column matches the pattern.

    Returns None for a pattern that matches everything.

    Args:
        pattern: any text, with ``*`` as a wildcard.
        record_id: the column to compare with the IDs of the matching records.
    """
    parts = [part for part in search_term(pattern).split("*") if part]
    if not parts:
        return None
    if len(parts) == 1:
        return contains(search, parts[0], record_id)
    escaped = (part.replace("/", "//").replace("%", "/%").replace("_", "/_") for part in parts)
    like = f"%{'%'.join(escaped)}%"
    # In the whole column, a pattern could match across two texts.
    exact = and_(search.like(like, escape="/"), _HasTextLike(search, like, SEPARATOR))
    return _search(search, record_id, parts, exact, table_is_exact=False)


def _index(table_name: str, parts: Sequence[str]) -> tuple[TableClause, ColumnElement[bool]]:
    """Return the search table of a table and the condition that its rows contain the parts."""
    index = _SearchTable(f"{table_name}_search", column("rowid"), column("search_text", String))
    long = [part for part in parts if len(part) >= _TRIGRAM]
    return index, and_(*(has_part(index.c.search_text, part) for part in long or parts))


def _search(
    search: ColumnElement[str],
    record_id: ColumnElement[int],
    parts: Sequence[str],
    exact: ColumnElement[bool],
    *,
    table_is_exact: bool,
) -> Search:
    """Return the condition on an ID that the record meets the exact condition.

    Args:
        parts: texts that the search column of such a record contains.
        table_is_exact: whether all records that contain the parts meet the exact condition.
    """
    records = search.table
    here = exact if record_id is records.c.id else record_id.in_(select(records.c.id).where(exact))
    index, match = _index(records.name, parts)
    found = select(index.c.rowid).where(match)
    if not table_is_exact:
        found = select(records.c.id).where(records.c.id.in_(found), exact)
    if all(len(part) < _TRIGRAM for part in parts):
        # SQLite would collect all matches before it counts the first.
        by_index = _ByDialect(record_id.in_(found), here)
        letters = Search(here, by_index, found, MOST_OF_LETTERS)
        most = MOST_COMPARED.get(records.name)
        if most is None:
            return letters
        first = select(func.min(index.c.rowid)).scalar_subquery()
        last = select(func.max(index.c.rowid)).scalar_subquery()
        # Not as a range of IDs for SQLite, which would read it instead of the index of texts.
        is_new = _ByDialect(index.c.rowid > last - most, index.c.rowid + 0 > last - most)
        newest = select(index.c.rowid).where(is_new, match)
        return replace(letters, newest=newest, has_older=first <= last - most)
    return Search(here, record_id.in_(found), found, MOST_COUNTED, is_sorted=True)


def is_of_models(name: str | None, *_: object) -> bool:
    """Return whether Alembic compares a table or index.

    It compares no search tables, and no indexes that only one of the databases has.
    """
    return name is None or not (
        re.match(r"(ix_)?(users|coupons|orders)_search(_[a-z]+)?$", name)
        or name.endswith(ONE_DATABASE)
    )


ONE_DATABASE = ("_sqlite", "_postgresql")
"""Ends of the names of indexes that only one of the databases has."""


class _SearchTable(TableClause):
    """A search table. On SQLite, it is the searchable table itself."""

    inherit_cache = True


@compiles(_SearchTable, "sqlite")
def _searchable(element: _SearchTable, compiler: Any, **kwargs: Any) -> str:
    name: str = compiler.visit_table(element, **kwargs)
    return f"{name.removesuffix('_search')} AS {name}" if kwargs.get("asfrom") else name


class _HasTextLike(Templated[object]):
    """Whether one of the texts of a search column matches a pattern of LIKE with the escape /."""

    sqlite = """EXISTS (SELECT 1 FROM json_each('[' || replace(json_quote({0}), {2}, '","') || ']')
        WHERE value LIKE {1} ESCAPE '/')"""
    postgresql = (
        "EXISTS (SELECT 1 FROM unnest(string_to_array({0}, {2})) AS text"
        " WHERE text LIKE {1} ESCAPE '/')"
    )


class _ByDialect(Templated[Any]):
    """A condition, and its equivalent for SQLite."""

    sqlite = "({1})"
    postgresql = "({0})"
