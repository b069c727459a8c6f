"""Conversion of numbers: integers, counts and amounts of money."""

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

INT64_MAX = 2**63 - 1

MAX_COUNT = 10**15 - 1
"""Largest count or limit of a coupon (decisions 3)."""

_LEADING_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DECIMAL_MAX_LENGTH = 1000


def integer(value: object) -> int:
    """Return the integer at the start of a value, or 0 if there is no integer (decisions 3, 13)."""
    if isinstance(value, str):
        match = _LEADING_INTEGER.match(value.strip())
        matched = match.group() if match else "0"
        digits = matched.lstrip("+-").lstrip("0") or "0"
        # Python does not convert thousands of digits. A number with 20 digits exceeds 64 bits.
        number = int(digits) if len(digits) <= 19 else INT64_MAX + 2
        number = -number if matched.startswith("-") else number
    elif isinstance(value, Decimal):
        number = int(value) if not value or value.adjusted() < 20 else INT64_MAX + 1
    elif isinstance(value, int):
        number = int(value)
    else:
        raise ValueError("must be an integer.")
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise ValueError("is outside the range of 64-bit integers.")
    return number


def whole_number(text: str) -> int | None:
    """Return the number that the ASCII digits of a text are, or None if it has other characters.

    A number with more than 64 bits becomes the largest one, which is the ID of no record.
    """
    if not text.isascii() or not text.isdigit():  # "²" is a digit, too
        return None
    digits = text.lstrip("0") or "0"
    return min(int(digits), INT64_MAX) if len(digits) <= 19 else INT64_MAX


def exact_integer(value: object) -> int:
    """Return an integer, a number without a fraction such as 2.0, or a text of digits.

    For quantities, because a part of another value would be another amount of money.
    """
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]{1,40}", value := value.strip()[:50]):
            raise ValueError("must be an integer.")
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be an integer.")
    elif isinstance(value, Decimal) and value.adjusted() < 20 and value != int(value):
        raise ValueError("must be an integer.")  # integer() rejects larger numbers
    return integer(value)


def int_if_integral(value: object) -> object:
    """Return a Decimal without a fraction as an int, because 5.0 and 5 are equal in JSON.

    A number beyond 64 bits remains a Decimal, because its digits could need gigabytes.
    """
    if not isinstance(value, Decimal) or (value and value.adjusted() >= 20):
        return value
    return int(value) if value == value.to_integral() else value


def count(value: object) -> int:
    """Return the absolute value of the integer at the start of a value (spec 2.1)."""
    if (number := abs(integer(value))) > MAX_COUNT:
        raise ValueError("has more than 15 digits.")
    return number


def money(value: object) -> Decimal | None:
    """Return an amount rounded to the cent, half away from zero, or None for empty text.

    Args:
        value: a JSON number, or a string that contains a number (decisions 3 and 13).
    """
    return _rounded(value, Decimal("0.01"))


def price(value: object) -> Decimal | None:
    """Return a price per unit, rounded to 6 decimals (orders 9), or None for empty text."""
    return _rounded(value, Decimal("0.000001"))


def _rounded(value: object, unit: Decimal) -> Decimal | None:
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
            raise ValueError("has more than 16 digits before the decimal point.")
        # An amount far below a cent is zero. quantize() would reject so many digits.
        rounded = exact.quantize(unit, ROUND_HALF_UP) if exact.adjusted() > -9 else unit * 0
    except InvalidOperation as error:
        raise ValueError("must be a decimal number.") from error
    if rounded.adjusted() >= 16:
        raise ValueError("has more than 16 digits before the decimal point.")
    return rounded + 0  # -0.00 is 0.00
