"""Search in a column of lower-cased text: part of a word, case ignored, the same everywhere."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement

_SEPARATOR = "\x1f"  # between the texts, so that no search spans two of them


def search_text(*texts: str) -> str:
    """Return what ``contains`` searches for a record with these texts.

    Lowered by Python: the lower() of SQLite knows ASCII only.
    """
    return _SEPARATOR.join(texts).lower()


def contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Return the condition that the text is part of the column; % and _ mean themselves."""
    return column.contains(text.lower(), autoescape=True)
