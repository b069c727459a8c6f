"""Conversion of text: strings, names, coupon codes and usernames."""

import html
import json
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches
from itertools import groupby
from typing import Any

CODE_MAX_LENGTH = 500
"""Longest coupon code. An index entry of PostgreSQL holds about 2,700 bytes."""

USERNAME_MAX_LENGTH = 60

NAME_MAX_LENGTH = 100
"""Longest name of a field, parameter or setting for which a similar name is looked for."""

_HUGE_REFERENCE = re.compile(r"&#(?:[1-9][0-9]{7,}|[xX][1-9a-fA-F][0-9a-fA-F]{6,});?")
# Leading zeros of a reference count as digits for Python, which rejects thousands of digits.
_LEADING_ZEROS = re.compile(r"(?<=&#)0+(?=[0-9])|(?<=&#[xX])0+(?=[0-9a-fA-F])")
# Combining marks are not word characters in regular expressions. Other characters match too, which
# does no harm.
_MANY_MARKS = re.compile(r"[^\w\s]{30,}")
# Tab and newline are white space. The other control characters are removed (decisions 13).
_CONTROL = {
    code: None
    for code in range(0xA0)
    if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\t\n\v\f\r"
}


def to_string(value: Any) -> str:
    """Return a string unchanged, or a number as JSON formats it (decisions 3).

    A number with more digits than a double keeps its digits.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("must be a string.")
    if isinstance(value, Decimal):
        string = json.dumps(float(value))
        return string if Decimal(string) == value else str(value)
    string = str(value)
    if "\0" in string:
        raise ValueError("must not contain a NUL character.")
    return string


def clean(value: str) -> str:
    """Return a name or a part of an address without markup (decisions 5 and 13)."""
    return _strip_markup(_decode_entities(value))


def coupon_code(value: str) -> str:
    """Return the normalized coupon code, for create, update and lookup (decisions 4)."""
    # Convert to lower case first, because a letter beyond ASCII can become an ASCII letter that
    # completes a tag. Apply NFC last, because removing markup can bring letters together.
    return nfc(_strip_markup(_decode_entities(value).lower()))


def nfc(value: str) -> str:
    """Return text in NFC, in linear time.

    ``unicodedata`` takes quadratic time to sort thousands of combining marks after a letter. Marks
    that are already sorted take linear time.
    """
    return unicodedata.normalize("NFC", _MANY_MARKS.sub(_sort_marks, value))


def comparable(text: str) -> str:
    """Return text in lower case and NFC, for comparison and search.

    The final small sigma of Greek is replaced, because lower() uses it only at the end of a word.
    """
    return nfc(text.lower()).replace("\u03c2", "\u03c3")


def _sort_marks(run: re.Match[str]) -> str:
    """Return characters in canonical order, with combining marks sorted by their class."""
    ordered: list[str] = []
    # Decompose each character, because a character without a combining class can consist of marks
    # that have a combining class.
    decomposed = "".join(unicodedata.normalize("NFD", char) for char in run.group())
    for are_marks, chars in groupby(decomposed, lambda char: unicodedata.combining(char) > 0):
        group = list(chars)
        ordered += sorted(group, key=unicodedata.combining) if are_marks else group
    return "".join(ordered)


def is_word(char: str) -> bool:
    """Return whether a character is part of a word, in any script (decisions 13).

    Combining marks are part of a word, because many scripts write vowels with them.
    """
    return char == "_" or unicodedata.category(char)[0] in "LNM"


def _decode_entities(value: str) -> str:
    # Huge references are outside Unicode, and Python does not convert thousands of digits.
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", _LEADING_ZEROS.sub("", value)))


def _strip_markup(value: str) -> str:
    # Remove control characters first, because they could hide a tag.
    return " ".join(_strip_tags(value.translate(_CONTROL)).split())


def _strip_tags(value: str) -> str:
    """Remove ``<b>``, ``</b>`` and ``<!-- -->``, including nested tags, but not ``a < b``.

    A ``>`` closes the nearest ``<`` before it that begins a tag. The function makes one pass, so
    that a megabyte of brackets takes as long as a megabyte of letters.
    """
    pieces: list[str] = []
    openings: list[int] = []  # positions in `pieces` where a tag begins
    for piece in re.split(r"(?=<)|(?<=>)", value):
        if pieces and pieces[-1] in {"<", "</", "<!"} and not piece.startswith("<"):
            piece = pieces.pop() + piece  # noqa: PLW2901  # rejoin a tag that another tag had split
        if re.match(r"<[/!]?[A-Za-z-]", piece):
            openings.append(len(pieces))
        pieces.append(piece)
        if piece.endswith(">") and openings:
            del pieces[openings.pop() :]
    return "".join(pieces)


def is_username(name: str) -> bool:
    """Return whether a username is valid (decisions 13)."""
    return (
        1 <= len(name) <= USERNAME_MAX_LENGTH
        and all(is_word(char) or char in ".@- " for char in name)
        and name == name.strip(" ")
        and "  " not in name
    )


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name, or an empty string if none is similar."""
    if len(name) > NAME_MAX_LENGTH:  # a comparison takes quadratic time
        return ""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.65)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` with the most similar known name, or an empty string."""
    nearest = nearest_name(name, known)
    return f" (did you mean {nearest}?)" if nearest else ""


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of cells that spreadsheets interpret as formulas, and the prefix against it."""


def safe_cell(text: str) -> str:
    """Return a text that is safe to open in a spreadsheet (migration 2)."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
