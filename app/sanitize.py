"""Pure cleaning of text, numbers, e-mail addresses, coupon codes and dates.

Everything here takes a value as JSON or a query string gave it (a str, int, Decimal, bool, list,
dict) and returns a clean one, or raises ValueError with a reason that a client can read. Nothing
here looks at the clock, the database or the request, and nothing costs more than linear time.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import email_validator
from dateutil import parser as dateutil_parser
from dateutil.relativedelta import relativedelta
from dateutil.tz import tzoffset

# Shops have customers under .test and .local (decisions 13); the library documents this switch.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()

INT64_MAX = 2**63 - 1
CODE_MAX_LENGTH = 500
"""Longest coupon code: an index entry of PostgreSQL holds some 2,700 bytes."""

_EMAIL_MAX_LENGTH = 254  # RFC 5321 4.5.3.1.3, without the angle brackets
_DATE_MAX_LENGTH = 64  # the longest RFC 2822 date has 37 characters
_LEADING_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DECIMAL_MAX_LENGTH = 1000
# Of ASCII: white space, control and what RFC 5322 calls specials; everything beyond it may stand
# in an address (RFC 6531), but for blanks and control characters.
_IMPOSSIBLE_IN_LOCAL = re.compile(r"[\s\x00-\x20\"(),:;<>@\[\\\]\x7f-\x9f]")
_IMPOSSIBLE_IN_DOMAIN = re.compile(r"[\s\x00-,/:-@\[-`{-\x9f]")
_HUGE_REFERENCE = re.compile(r"&#(?:0*[1-9][0-9]{7,}|[xX]0*[1-9a-fA-F][0-9a-fA-F]{6,});?")
# Tab and newline are white space; the other control characters vanish (decisions 13).
_CONTROL = {
    code: None
    for code in range(0xA0)
    if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\t\n\v\f\r"
}
# A text may name a zone of its own, so these have none.
_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 2, 2))  # noqa: DTZ001 - see above
# RFC 2822 4.3: the zones that have a name.
_ZONES = {"UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5,
          "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}  # fmt: skip


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
    return unicodedata.normalize("NFC", _squeezed(_decoded(value).lower()))


def is_word(char: str) -> bool:
    """Tell whether a character is part of a word, in any script (decisions 13).

    Marks are: many scripts write their vowels with them.
    """
    return char == "_" or unicodedata.category(char)[0] in "LNM"


def _decoded(value: str) -> str:
    # A number of thousands of digits is more than Python converts; it names no character.
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", value))


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
            piece = kept.pop() + piece  # noqa: PLW2901 - what a tag had torn apart is a tag again
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
        cents = (
            exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
            if exact.adjusted() > -9
            else Decimal("0.00")
        )
    except InvalidOperation as error:
        raise ValueError("must be a decimal number.") from error
    if cents.adjusted() >= 16:
        raise ValueError("has more than 16 digits before the point.")
    return cents + 0  # -0.00 is 0.00


# --- e-mail addresses and names ---


def is_email(address: str) -> bool:
    """Tell whether an address is valid by RFC 5321 and 6531, with a dot in its domain."""
    if len(address) > _EMAIL_MAX_LENGTH:
        return False
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
    local = _IMPOSSIBLE_IN_LOCAL.sub("", local[: 4 * _EMAIL_MAX_LENGTH])
    domain = _IMPOSSIBLE_IN_DOMAIN.sub("", domain[: 4 * _EMAIL_MAX_LENGTH]).strip(".")
    address = email(f"{local}@{domain}")
    return address if is_email(address) else ""


def is_username(name: str) -> bool:
    """Tell whether a username is valid (decisions 13)."""
    return (
        1 <= len(name) <= 60
        and all(is_word(char) or char in ".@- " for char in name)
        and name == name.strip(" ")
        and "  " not in name
    )


def username_of(address: str) -> str:
    """Return a username made of the local part of an address; empty when nothing is left."""
    local = address.partition("@")[0]
    return "".join(char for char in local if is_word(char) or char in ".-")


# --- dates ---


def moment(value: Any) -> datetime:
    """Return a UTC date-time from an ISO date or date-time, or Unix seconds (decisions 6).

    A date is its midnight; a time without a zone is UTC.
    """
    written = _short(value)
    # Digits are Unix seconds, but for a year, of which nobody means half past midnight in 1970,
    # and for eight of them that are an ISO date.
    if re.fullmatch(r"@?-?[0-9]{1,13}", written) and not re.fullmatch(r"[0-9]{4}", written):
        iso = _iso(written) if re.fullmatch(r"[0-9]{8}", written) else None
        return iso or _since_epoch(int(written.lstrip("@")))
    # A '+' that a client forgot to encode arrives as a blank.
    written = (
        re.sub(r"(?<=[0-9]) (?=[0-9]{2}:?[0-9]{2}$)", "+", written) if "T" in written else written
    )
    if (found := _iso(written)) is None:
        raise ValueError("must be a date-time such as 2026-11-20T09:38:00Z.")
    return found


def _iso(written: str) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        return None


def day(value: Any, today: date) -> date | None:
    """Return the day that a text or a number of Unix seconds means; None for empty text.

    Args:
        value: any form of decisions 4: ISO, RFC 2822, ``31 December 2030``, ``12/31/2030``,
            ``tomorrow``, ``+1 month``, Unix seconds. A date-time with an offset is taken to UTC.
        today: the day on which ``tomorrow`` and ``+1 month`` are reckoned, UTC.
    """
    value = whole(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _since_epoch(value).date()
    written = _short(value)
    if not written:
        return None
    for read in (_relative_day, _numeric_day, _iso_day, _worded_day):
        if (found := read(written, today)) is not None:
            return found
    raise ValueError("must be a date such as 2030-12-31.")


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a date.")
    written = str(value).strip() if isinstance(value, str) else str(int(value) % 10**30)
    if len(written) > _DATE_MAX_LENGTH:
        raise ValueError("is too long for a date.")
    return written


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _since_epoch(seconds: int) -> datetime:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError as error:
        raise ValueError("is a time outside the calendar.") from error


def _relative_day(written: str, today: date) -> date | None:
    words = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
    if (days := words.get(written.lower())) is not None:
        return today + timedelta(days=days)
    found = re.fullmatch(r"([+-]?[0-9]{1,5}) ?(day|week|month|year)s?", written.lower())
    if not found:
        return None
    try:
        # A month's step that meets no such day stops at the month's end (decisions 13).
        return today + relativedelta(**{f"{found[2]}s": int(found[1])})  # type: ignore[arg-type]
    except (ValueError, OverflowError) as error:
        raise ValueError("is a day outside the calendar.") from error


def _numeric_day(written: str, _: date) -> date | None:
    """Read 12/31/2030 month first (decisions 4); with '-' or '.' the day is first, as is usual."""
    found = re.fullmatch(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})", written)
    if not found:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    month, day_of_month = (first, second) if found[2] == "/" else (second, first)
    try:
        return date(year, month, day_of_month)
    except ValueError as error:
        raise ValueError("is a day that no calendar has.") from error


def _iso_day(written: str, _: date) -> date | None:
    try:
        return moment(
            written.replace("/", "-") if re.match(r"[0-9]{4}/", written) else written
        ).date()
    except ValueError:
        return None


def _worded_day(written: str, _: date) -> date | None:
    """Read a date with a month's name: RFC 2822, 31 December 2030."""
    if not re.search(r"[A-Za-z]{3}", written) or not re.search(r"[0-9]", written):
        return None
    try:
        # What the text does not say is taken from the default. Two defaults tell: a text that
        # leaves the year, the month or the day open ('Jan', '12 May') is no date.
        one, other = (
            dateutil_parser.parse(written, default=default, tzinfos=_zone) for default in _DEFAULTS
        )
        return _utc(one).date() if one == other else None
    except (ValueError, OverflowError, TypeError):
        return None


def _zone(name: str | None, offset: int | None) -> tzoffset | None:
    if name is None and offset is None:
        return None
    if offset is None:
        if name not in _ZONES:
            raise ValueError("names a time zone that is not known.")
        offset = _ZONES[name] * 3600
    return tzoffset(name, offset)
