"""Search in columns of lower-cased text: a part of it, case ignored, the same on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, false, or_, true

from app.sanitize import nfc

# Between the texts, so that no search spans two of them: a code point that is no character.
_SEPARATOR = "\uffff"


def search_text(*texts: str) -> str:
    """Return what ``contains`` searches for a record with these texts.

    Lowered by Python: the lower() of SQLite knows ASCII only.
    """
    return _SEPARATOR.join(map(comparable, texts))


def comparable(text: str) -> str:
    """Return text without case, and with one spelling for each letter (NFC).

    Greek has two small sigmas, of which one ends a word: lower() alone would not find a part.
    """
    return nfc(text.lower()).replace("\u03c2", "\u03c3")


def contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Return the condition that the text is part of the column; % and _ mean themselves."""
    if _SEPARATOR in text:
        return false()
    return column.contains(comparable(text), autoescape=True)


def matches(
    search: ColumnElement[Any], texts: Sequence[ColumnElement[Any]], pattern: str
) -> ColumnElement[bool]:
    """Return the condition that one of several texts has a part that fits the pattern.

    Args:
        search: the column of ``search_text``.
        texts: the columns that it was made of, lower-cased.
        pattern: any text; ``*`` stands for anything.
    """
    parts = [part for part in comparable(pattern).split("*") if part]
    if not parts:
        return true()
    if len(parts) == 1:
        return contains(search, parts[0])
    escaped = (part.replace("/", "//").replace("%", "/%").replace("_", "/_") for part in parts)
    like = f"%{'%'.join(escaped)}%"
    # In the search column a pattern could begin in one text and end in another.
    return and_(
        search.like(like, escape="/"), or_(*(column.like(like, escape="/") for column in texts))
    )
