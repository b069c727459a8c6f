"""Conversion of text: strings, names, coupon codes and usernames."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal
from difflib import get_close_matches
from html import unescape
from html.entities import html5
from itertools import groupby

CODE_MAX_LENGTH = 500
"""Longest coupon code. An index entry of PostgreSQL holds about 2,700 bytes."""

USERNAME_MAX_LENGTH = 60

NAME_MAX_LENGTH = 100
"""Longest name of a field, parameter or setting for which a similar name is looked for."""

INVISIBLE = (
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U000110bd"
    "\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Format characters (Cf), characters that Unicode calls default ignorable, and U+FFFC."""

_INVISIBLE = re.compile(INVISIBLE)
# The text after an ampersand. The longest name has 32 characters.
_REFERENCE = re.compile(r"#[0-9]{1,30};|#[xX][0-9a-fA-F]{1,30};|[A-Za-z][A-Za-z0-9]{1,32};")
_LONGEST_REFERENCE = 40
_MOST_PASSES = 10
"""Number of passes after which markup that appears in other markup is no longer converted."""

# Combining marks are not word characters in regular expressions. Other characters match too, which
# does no harm.
_MANY_MARKS = re.compile(r"[^\w\s]{30,}")
# Letters that Unicode does not decompose, the final small sigma of Greek, and the dotless i.
_PLAIN_LETTERS = str.maketrans(
    {
        **dict(zip("øłđðħŧıƀǥɨɉɍʉɏƶⱥȼɇ", "olddhtibgijruyzace", strict=True)),
        "\u03c2": "\u03c3",
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
    }
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_DOTTED_I = re.compile("\u0130|[iI]\u0307+")
_WITHOUT_MARKUP = {ord("&"): None, ord("<"): None}
# Tab and newline are white space. The other control characters are removed (decisions 13).
_CONTROL = {
    code: None
    for code in range(0xA0)
    if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\t\n\v\f\r"
}


def to_string(value: object) -> str:
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
    """Return a name or a part of an address without markup (decisions 5 and 13).

    A text that has been cleaned stays as it is. Joiners and other invisible characters are kept,
    but a text of invisible characters alone is empty.
    """
    cleaned = _until_stable(value, lambda text: _strip_markup(_decode_entities(text)))
    return cleaned if cleaned.isascii() or visible(cleaned).strip() else ""


def coupon_code(value: str) -> str:
    """Return the normalized coupon code, for create, update and lookup (decisions 4).

    The code is in NFKC and in lower case, with ``i`` for the dotted capital I of Turkish, and has
    no markup, entities, control characters or invisible characters. A normalized code stays as it
    is, so that every code that the service shows identifies its coupon.
    """
    # Truncate first, so that very long input does not take long. It is too long for a code anyway.
    return _until_stable(
        value[: 4 * CODE_MAX_LENGTH],
        lambda text: _strip_markup(_decode_entities(_folded_once(text))),
    )


def folded_code(value: str) -> str:
    """Return a coupon code in NFKC and lower case, with its markup and control characters."""
    return _until_stable(value[: 4 * CODE_MAX_LENGTH], _folded_once)


def _folded_once(value: str) -> str:
    if not value.isascii():
        value = _DOTTED_I.sub("i", visible(nfkc(value)))
    return " ".join(value.lower().split())


def _until_stable(value: str, convert: Callable[[str], str]) -> str:
    """Convert a text until nothing changes.

    Removing markup can bring the parts of other markup together. Texts that were made for this
    would take as many passes as they are long, so their ampersands and tags are removed instead.
    """
    for _ in range(_MOST_PASSES):
        before, value = value, convert(value)
        if value == before:
            return value
    value = value.translate(_WITHOUT_MARKUP)
    while (converted := convert(value)) != value:
        value = converted.translate(_WITHOUT_MARKUP)
    return value


def visible(value: str) -> str:
    """Return a text without invisible characters, such as joiners and variation selectors."""
    return value if value.isascii() else _INVISIBLE.sub("", value)


def nfkc(value: str) -> str:
    """Return text in NFKC, in linear time."""
    return nfc("".join(unicodedata.normalize("NFKD", char) for char in value))


def nfc(value: str) -> str:
    """Return text in NFC, in linear time.

    ``unicodedata`` takes quadratic time to sort thousands of combining marks after a letter. Marks
    that are already sorted take linear time.
    """
    return unicodedata.normalize("NFC", _MANY_MARKS.sub(_sort_marks, value))


def comparable(text: str) -> str:
    """Return text in lower case and NFC, for comparison.

    The final small sigma of Greek is replaced, because lower() uses it only at the end of a word.
    """
    return nfc(text.lower()).replace("\u03c2", "\u03c3")


def comparable_name(text: str) -> str:
    """Return a name for comparison and sorting: comparable, and without invisible characters."""
    return comparable(text if text.isascii() else _DOTTED_I.sub("i", visible(text)))


def searchable(text: str) -> str:
    """Return text for a search: in lower case, and without accents and invisible characters.

    ``Müller`` becomes ``muller`` and ``Straße`` ``strasse``, as MySQL compares texts. Forms of a
    letter, such as those of full width, become the letter. Marks that are vowels or parts of
    letters, as in Indic scripts and in kana, are kept. What is searchable stays as it is.
    """
    if text.isascii():
        return text.lower()
    # Without the accents first, because the lower-case letter of the dotted capital I has one.
    plain = _BEYOND_ASCII.sub(_without_accents, visible(text)).lower()
    return plain if plain.isascii() else nfc(plain.translate(_PLAIN_LETTERS))


def _without_accents(found: re.Match[str]) -> str:
    decomposed = unicodedata.normalize("NFKD", found.group())
    return "".join(char for char in decomposed if not _is_accent(char))


def _is_accent(char: str) -> bool:
    """Return whether a character is an accent, or a vowel point of Hebrew or Arabic.

    Unicode has a class of each combining mark: 1 are strokes across a letter, 10 to 36 the points
    of Semitic scripts, and from 200 marks above, below and beside letters.
    """
    kind = unicodedata.combining(char)
    return kind == 1 or 10 <= kind <= 36 or kind >= 200


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
    """Decode complete entities, which end with a semicolon, until there are none.

    The function makes one pass from the end: what follows an ampersand has been decoded before.
    """
    if "&" not in value:
        return value
    first, *others = value.split("&")
    decoded: list[str] = []  # characters, the last one first
    for part in reversed(others):
        decoded.extend(reversed(part))
        while True:
            following = "".join(reversed(decoded[-_LONGEST_REFERENCE:]))
            if not (found := _REFERENCE.match(following)) or (char := _char(found.group())) is None:
                decoded.append("&")
                break
            del decoded[len(decoded) - found.end() :]
            if char != "&":
                decoded.extend(reversed(char))
                break
    return first + "".join(reversed(decoded))


def _char(reference: str) -> str | None:
    """Return the characters of a reference such as ``amp;``, or None if it does not exist."""
    if not reference.startswith("#"):
        return html5.get(reference)
    digits = reference[1:-1].lstrip("xX").lstrip("0") or "0"
    if len(digits) > 7:  # outside Unicode
        return "\ufffd"
    return unescape(f"&#{'x' if reference[1] in 'xX' else ''}{digits};")


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
        and name == visible(name)
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


_NEGATIVE_NUMBER = re.compile(r"-[0-9]+(\.[0-9]+)?")

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of cells that spreadsheets interpret as formulas, and the prefix against it."""


def safe_cell(text: str) -> str:
    """Return a text that is safe to open in a spreadsheet (migration 2).

    A negative number stays as it is, because spreadsheets do not add up texts.
    """
    is_formula = text.startswith(FORMULA_STARTS) and not _NEGATIVE_NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text
