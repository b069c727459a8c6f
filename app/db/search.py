"""Search in columns of lower-cased text: a part of it, case ignored, the same on both databases.

Three characters or more are looked up by their trigrams in a table of its own for each that is
searched (migrations 0005 and 0008), which triggers keep: a full-text table on SQLite; on PostgreSQL
a narrow one, with an index where the server has pg_trgm. Fewer characters are looked for in every
record. The answer is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    TableClause,
    and_,
    column,
    false,
    func,
    or_,
    select,
    table,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from app.text import nfc

# Between the texts, so that no search spans two of them: a code point that is no character.
_SEPARATOR = "\uffff"

_TRIGRAM = 3


def search_text(*texts: str) -> str:
    """Return what ``contains`` searches for a record with these texts.

    Lowered by Python: the lower() of SQLite knows ASCII only. A text that is a part of another one,
    as a username often is of the e-mail address, is found with that one.
    """
    kept: list[str] = []
    for text in sorted(map(comparable, texts), key=len, reverse=True):
        if not any(text in longer for longer in kept):
            kept.append(text)
    return _SEPARATOR.join(kept)


def comparable(text: str) -> str:
    """Return text without case, and with one spelling for each letter (NFC).

    Greek has two small sigmas, of which one ends a word: lower() alone would not find a part.
    """
    return nfc(text.lower()).replace("\u03c2", "\u03c3")


class Search(NamedTuple):
    """A condition on an id, in two ways that find the same.

    Args:
        many: where many are found; SQLite walks an index in the order that is asked for, until it
            has met as many as are shown.
        few: where few are; they are looked up one by one.
    """

    many: ColumnElement[bool]
    few: ColumnElement[bool]


def contains(search: ColumnElement[Any], text: str, record_id: ColumnElement[int]) -> Search:
    """Return the condition that the text is part of the column; % and _ mean themselves.

    Args:
        search: the column of ``search_text``.
        text: any text.
        record_id: the column, of whichever table, that shall be the id of such a record.
    """
    if _SEPARATOR in text:
        return Search(false(), false())
    text = comparable(text)
    return _found(
        search, record_id, [text], has_part(search, text), index_is_exact=_is_indexed_exactly(text)
    )


def has_part(search: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Return the condition that a text, which is ``comparable``, is part of the search column."""
    return _by_dialect(search.contains(text, autoescape=True), func.instr(search, text) > 0)


def _is_indexed_exactly(text: str) -> bool:
    # SQLite takes U+FFFD, U+FFFE and U+FFFF for one, in its index and in LIKE.
    return "\ufffd" not in text and "\ufffe" not in text


def matches(
    search: ColumnElement[Any],
    texts: Sequence[ColumnElement[Any]],
    pattern: str,
    record_id: ColumnElement[int],
) -> Search | None:
    """Return the condition that one of several texts has a part that fits the pattern.

    None where everything fits.

    Args:
        search: the column of ``search_text``.
        texts: the columns that it was made of, lower-cased.
        pattern: any text; ``*`` stands for anything.
        record_id: the column, of whichever table, that shall be the id of such a record.
    """
    parts = [part for part in comparable(pattern).split("*") if part]
    if not parts:
        return None
    if len(parts) == 1:
        return contains(search, parts[0], record_id)
    escaped = (part.replace("/", "//").replace("%", "/%").replace("_", "/_") for part in parts)
    like = f"%{'%'.join(escaped)}%"
    # In the search column a pattern could begin in one text and end in another.
    exact = and_(
        search.like(like, escape="/"), or_(*(text.like(like, escape="/") for text in texts))
    )
    return _found(search, record_id, parts, exact, index_is_exact=False)


def without_wildcards(pattern: str) -> str | None:
    """Return the text that everything contains that fits a pattern; None where it says more."""
    parts = [part for part in pattern.split("*") if part]
    return parts[0] if len(parts) == 1 else None


def number_found(
    search: ColumnElement[Any], text: str, without: Sequence[int] = ()
) -> Select[Any] | None:
    """Return a select of how many records of a table contain the text, counted in the index alone.

    Args:
        search: the column of ``search_text``.
        text: any text.
        without: ids of records that do not count.

    Returns:
        None for a text that the index does not answer exactly.
    """
    text = comparable(text)
    if len(text) < _TRIGRAM or _SEPARATOR in text or not _is_indexed_exactly(text):
        return None
    index, match = _index(search.table.name, [text])
    return select(func.count()).select_from(index).where(match, index.c.rowid.not_in(without))


def _index(table_name: str, parts: Sequence[str]) -> tuple[TableClause, ColumnElement[bool]]:
    """Return the search table of a table, and the condition for its rows that have the parts."""
    name = f"{table_name}_search"
    index = table(name, column("rowid"), column(name), column("search_text", String))
    long = [part for part in parts if len(part) >= _TRIGRAM]
    phrases = [f'"{part.replace(chr(34), chr(34) * 2)}"' for part in long]
    contained = (index.c.search_text.contains(part, autoescape=True) for part in long)
    return index, _by_dialect(and_(*contained), index.c[name].op("MATCH")(" AND ".join(phrases)))


def _found(
    search: ColumnElement[Any],
    record_id: ColumnElement[int],
    parts: Sequence[str],
    exact: ColumnElement[bool],
    *,
    index_is_exact: bool,
) -> Search:
    """Return the condition on an id that its record meets an exact condition.

    Args:
        parts: what the search column of such a record contains.
        index_is_exact: whether whatever contains them meets the condition.
    """
    records = search.table
    if all(len(part) < _TRIGRAM for part in parts):
        scan = (
            exact if record_id is records.c.id else record_id.in_(select(records.c.id).where(exact))
        )
        return Search(scan, scan)
    index, match = _index(records.name, parts)
    found = select(index.c.rowid).where(match)
    if not index_is_exact:
        found = select(records.c.id).where(records.c.id.in_(found), exact)
    return Search(unindexed(record_id).in_(found), record_id.in_(found))


def is_of_models(name: str | None, *_: Any) -> bool:
    """Tell Alembic to look at a table or index: those of searches are no models."""
    return name is None or not re.match(r"(ix_)?(users|coupons|orders)_search(_[a-z]+)?$", name)


class _by_dialect(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """A condition, and the one that says the same to SQLite."""

    inherit_cache = True  # and no type: SQLite would be asked whether it "= 1"


@compiles(_by_dialect)
def _on_any(element: _by_dialect, compiler: Any, **kwargs: Any) -> str:
    like, _ = element.clauses
    return str(compiler.process(like, **kwargs))


@compiles(_by_dialect, "sqlite")
def _on_sqlite(element: _by_dialect, compiler: Any, **kwargs: Any) -> str:
    _, match = element.clauses
    return str(compiler.process(match, **kwargs))


class unindexed(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """A column in whose index SQLite shall not look anything up.

    It takes every value of an index for a rare one: of a column of few values it would read all
    records with one of them, and look for each in what a search found.
    """

    inherit_cache = True
    type = String()


@compiles(unindexed)
def _column(element: unindexed, compiler: Any, **kwargs: Any) -> str:
    return str(compiler.process(element.clauses, **kwargs))


@compiles(unindexed, "sqlite")
def _column_on_sqlite(element: unindexed, compiler: Any, **kwargs: Any) -> str:
    return f"+{compiler.process(element.clauses, **kwargs)}"


class frequent(FunctionElement[bool]):  # noqa: N801  # named as a function of SQL
    """A condition that most records meet.

    SQLite expects every value of an index to be rare. With this hint it reads an index in the order
    of the list and checks the condition on the way, instead of sorting nearly all records. Unlike
    with ``unindexed``, a partial index with this condition remains usable.
    """

    inherit_cache = True  # and no type: SQLite would be asked whether it "= 1"


@compiles(frequent)
def _condition(element: frequent, compiler: Any, **kwargs: Any) -> str:
    return str(compiler.process(element.clauses, **kwargs))


@compiles(frequent, "sqlite")
def _condition_on_sqlite(element: frequent, compiler: Any, **kwargs: Any) -> str:
    return f"likelihood({compiler.process(element.clauses, **kwargs)}, 0.9)"
