"""Pure cleaning of text, numbers, e-mail addresses and coupon codes.

Everything here takes a value as JSON or a query string gave it (a str, int, Decimal, bool, list,
dict) and returns a clean one, or raises ValueError with a reason that a client can read. Nothing
here looks at the clock, the database or the request, and nothing costs more than linear time.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import groupby
from typing import Any

import email_validator

INT64_MAX = 2**63 - 1
CODE_MAX_LENGTH = 500
"""Longest coupon code: an index entry of PostgreSQL holds some 2,700 bytes."""

EMAIL_MAX_LENGTH = 254
"""Longest e-mail address: RFC 5321 4.5.3.1.3, without the angle brackets."""

USERNAME_MAX_LENGTH = 60

_LEADING_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DECIMAL_MAX_LENGTH = 1000
# Of ASCII: white space, control and what RFC 5322 calls specials; everything beyond it may stand
# in an address (RFC 6531), but for blanks and control characters.
_IMPOSSIBLE_IN_LOCAL = re.compile(r"[\s\x00-\x20\"(),:;<>@\[\\\]\x7f-\x9f]")
_IMPOSSIBLE_IN_DOMAIN = re.compile(r"[\s\x00-,/:-@\[-`{-\x9f]")
_HUGE_REFERENCE = re.compile(r"&#(?:[1-9][0-9]{7,}|[xX][1-9a-fA-F][0-9a-fA-F]{6,});?")
# Zeros before the digits of a reference: Python counts them as digits, and refuses thousands.
_LEADING_ZEROS = re.compile(r"(?<=&#)0+(?=[0-9])|(?<=&#[xX])0+(?=[0-9a-fA-F])")
_DOTS = "[.\u3002\uff0e\uff61]"  # between the labels of a domain (RFC 3490, 3.1)
# Marks are no word characters for re, nor is much else: the pattern need not be exact.
_MANY_MARKS = re.compile(r"[^\w\s]{30,}")
# Most addresses by far; the library takes twenty times as long to say that they are valid.
_PLAIN_EMAIL = re.compile(
    r"[a-z0-9_+]{1,30}(?:[.-][a-z0-9_+]{1,30})?@(?:[a-z0-9]{1,60}\.){1,3}[a-z]{2,20}", re.ASCII
)
# Tab and newline are white space; the other control characters vanish (decisions 13).
_CONTROL = {
    code: None
    for code in range(0xA0)
    if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\t\n\v\f\r"
}


# --- text ---


def text(value: Any) -> str:
    """Return a string as it was sent, or a number as JSON prints it (decisions 3)."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("must be a string.")
    if isinstance(value, Decimal):
        return json.dumps(float(value))
    cleaned = str(value)
    if "\0" in cleaned:
        raise ValueError("must not contain a NUL character.")
    return cleaned


def plain(value: str) -> str:
    """Return text without markup: a name or a part of an address (decisions 5 and 13)."""
    return _squeezed(_decoded(value))


def coupon_code(value: str) -> str:
    """Return a code as it is stored and compared: on create, edit and look-up (decisions 4)."""
    # Lower case first: a letter beyond ASCII can become one that makes a tag. NFC last: letters
    # may meet only when what stood between them is gone.
    return nfc(_squeezed(_decoded(value).lower()))


def nfc(value: str) -> str:
    """Return text in NFC, in linear time.

    ``unicodedata`` sorts the marks behind a letter with an algorithm that takes quadratic time for
    thousands of them; what is in order already costs it nothing.
    """
    return unicodedata.normalize("NFC", _MANY_MARKS.sub(_in_order, value))


def _in_order(run: re.Match[str]) -> str:
    """Return characters in canonical order: marks sorted by their class, others where they are."""
    ordered: list[str] = []
    # Taken apart one by one: what has no class of its own may consist of marks that have.
    apart = "".join(unicodedata.normalize("NFD", char) for char in run.group())
    for are_marks, chars in groupby(apart, lambda char: unicodedata.combining(char) > 0):
        found = list(chars)
        ordered += sorted(found, key=unicodedata.combining) if are_marks else found
    return "".join(ordered)


def is_word(char: str) -> bool:
    """Tell whether a character is part of a word, in any script (decisions 13).

    Marks are: many scripts write their vowels with them.
    """
    return char == "_" or unicodedata.category(char)[0] in "LNM"


def _decoded(value: str) -> str:
    # A number of thousands of digits is more than Python converts; it names no character.
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", _LEADING_ZEROS.sub("", value)))


def _squeezed(value: str) -> str:
    # Control characters first: between the letters of a tag they must not hide it.
    return " ".join(_without_tags(value.translate(_CONTROL)).split())


def _without_tags(value: str) -> str:
    """Drop ``<b>``, ``</b>`` and ``<!-- -->``, keep ``a < b``; also when tags hide in tags.

    A ``>`` closes the nearest ``<`` before it that begins a tag. One pass, so that a megabyte of
    brackets costs as much as a megabyte of letters.
    """
    kept: list[str] = []
    openings: list[int] = []  # where in `kept` a tag begins
    for piece in re.split(r"(?=<)|(?<=>)", value):
        if kept and kept[-1] in {"<", "</", "<!"} and not piece.startswith("<"):
            piece = kept.pop() + piece  # noqa: PLW2901  # what a tag had torn apart is a tag again
        if re.match(r"<[/!]?[A-Za-z-]", piece):
            openings.append(len(kept))
        kept.append(piece)
        if piece.endswith(">") and openings:
            del kept[openings.pop() :]
    return "".join(kept)


# --- numbers ---


def integer(value: Any) -> int:
    """Return the integer that a value begins with, 0 when it begins with none (decisions 3, 13)."""
    if isinstance(value, str):
        found = _LEADING_INTEGER.match(value.strip())
        text_of_it = found.group() if found else "0"
        digits = text_of_it.lstrip("+-").lstrip("0") or "0"
        # Python refuses to convert thousands of digits; long before that, 64 bits are exceeded.
        number = int(digits) if len(digits) <= 19 else INT64_MAX + 2
        number = -number if text_of_it.startswith("-") else number
    elif isinstance(value, Decimal):
        number = int(value) if not value or value.adjusted() < 20 else INT64_MAX + 1
    elif isinstance(value, int):
        number = int(value)
    else:
        raise ValueError("must be an integer.")
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise ValueError("is a number outside 64 bits.")
    return number


def whole(value: Any) -> Any:
    """Return a number without a fraction as an int: JSON tells 5.0 and 5 apart no more than we."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral() else value


def count(value: Any) -> int:
    """Return a non-negative integer: the absolute value (spec 2.1)."""
    if (number := abs(integer(value))) > INT64_MAX:
        raise ValueError("is a number outside 64 bits.")
    return number


def money(value: Any) -> Decimal | None:
    """Return an amount kept to the cent, half away from zero; None for empty text.

    Args:
        value: a JSON number or a string that is one after trimming (decisions 3 and 13).
    """
    return _amount(value, Decimal("0.01"))


def price(value: Any) -> Decimal | None:
    """Return a price per unit with up to 6 decimals (orders 9); otherwise as ``money``."""
    return _amount(value, Decimal("0.000001"))


def _amount(value: Any, unit: Decimal) -> Decimal | None:
    if isinstance(value, str):
        value = value.strip()
        if not value:
            return None
        if len(value) > _DECIMAL_MAX_LENGTH or not _DECIMAL.fullmatch(value):
            raise ValueError("must be a decimal number.")
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a decimal number.")
    try:
        exact = Decimal(value)
        if not exact.is_finite():
            raise InvalidOperation
        if exact and exact.adjusted() >= 16:
            raise ValueError("has more than 16 digits before the point.")
        # Far below a cent it is zero; quantize itself would refuse so many digits.
        rounded = exact.quantize(unit, ROUND_HALF_UP) if exact.adjusted() > -9 else unit * 0
    except InvalidOperation as error:
        raise ValueError("must be a decimal number.") from error
    if rounded.adjusted() >= 16:
        raise ValueError("has more than 16 digits before the point.")
    return rounded + 0  # -0.00 is 0.00


# --- e-mail addresses and names ---


def is_email(address: str) -> bool:
    """Tell whether an address is valid by RFC 5321 and 6531, with a dot in its domain."""
    if len(address) > EMAIL_MAX_LENGTH:
        return False
    if _PLAIN_EMAIL.fullmatch(address):
        return True
    # Shops have customers under .test and .local (decisions 13). The library rejects these names
    # by a list that all of the process shares, so it is asked about a name that it accepts.
    top = re.split(_DOTS, address)[-1]
    if unicodedata.normalize("NFKC", top).lower() in email_validator.SPECIAL_USE_DOMAIN_NAMES:
        address = address.removesuffix(top) + "com"
    try:
        email_validator.validate_email(address, check_deliverability=False, strict=True)
    except email_validator.EmailNotValidError:
        return False
    return True


def email(value: str) -> str:
    """Return the address with its domain in lower case and its local part as given."""
    local, at, domain = value.strip().rpartition("@")
    return local + at + domain.lower()


def sanitized_email(value: str) -> str:
    """Return what is left without the characters that cannot stand in an address.

    Empty when that is no address (decisions 13).
    """
    local, _, domain = value.strip().partition("@")
    # The longest address is short; what is longer has no chance and must not cost time.
    local = _IMPOSSIBLE_IN_LOCAL.sub("", local[: 4 * EMAIL_MAX_LENGTH])
    domain = _IMPOSSIBLE_IN_DOMAIN.sub("", domain[: 4 * EMAIL_MAX_LENGTH]).strip(".")
    address = email(f"{local}@{domain}")
    return address if is_email(address) else ""


def is_username(name: str) -> bool:
    """Tell whether a username is valid (decisions 13)."""
    return (
        1 <= len(name) <= USERNAME_MAX_LENGTH
        and all(is_word(char) or char in ".@- " for char in name)
        and name == name.strip(" ")
        and "  " not in name
    )


def username_of(address: str) -> str:
    """Return a username made of the local part of an address; empty when nothing is left."""
    local = address.partition("@")[0]
    return "".join(char for char in local if is_word(char) or char in ".-")
