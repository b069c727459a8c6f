"""Values of metadata: their JSON text, and the text that filters find (records 1 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from app.conversions.numbers import INT64_MAX

FOUND_LENGTH = 255
"""Length in characters of the longest text that filters find."""

MAX_DEPTH = 100
"""How deeply lists and objects can be nested. orjson writes 254 levels."""

_NOT_FOUND = ("[", "{", "null")


def json_text(value: Any) -> str:
    """Return the JSON text of a value, without blanks and with the keys of objects as sent.

    Args:
        value: parsed JSON, with numbers as int, float or Decimal.

    Raises:
        ValueError: an integer is outside 64 bits, or the value is nested too deeply.
    """
    return orjson.dumps(_storable(value, MAX_DEPTH)).decode()


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, Decimal):
        return float(value)  # written as the shortest text of this double
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise ValueError("contains an integer outside 64 bits.")
    if isinstance(value, list | Mapping):
        if not depth:
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, list):
            return [_storable(each, depth - 1) for each in value]
        return {name: _storable(each, depth - 1) for name, each in value.items()}
    return value


def found_text(text: str) -> str | None:
    """Return the text by which filters find a value, or None if they do not find it.

    Args:
        text: the value as ``json_text`` returns it. Numbers and booleans are found by this text.
    """
    if text.startswith(_NOT_FOUND):
        return None
    found: str = orjson.loads(text) if text.startswith('"') else text
    return found if len(found) <= FOUND_LENGTH else None
