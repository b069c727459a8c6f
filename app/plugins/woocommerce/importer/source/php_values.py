"""Values in the serialization format of PHP, in which WordPress stores lists.

Only data is read: an object is never created, and its class is never looked up.
"""

import re
from dataclasses import dataclass
from typing import Any

from app.conversions.numbers import INT64_MAX

MAX_DEPTH = 100
"""Levels of nested arrays. Lists of WooCommerce have three at most."""

_SIMPLE = re.compile(
    rb"N;"
    rb"|b:(?P<bool>[01]);"
    rb"|i:(?P<int>[+-]?[0-9]{1,1000});"
    rb"|d:(?P<float>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?INF|NAN);"
    rb"|(?P<reference>[Rr]:[0-9]{1,20};)"
)
_STRING = re.compile(rb's:([0-9]{1,10}):"')
_ARRAY = re.compile(rb"a:([0-9]{1,10}):\{")
_OBJECT = re.compile(rb'(?P<type>[OCE]):(?P<length>[0-9]{1,10}):"')
_SIZE = re.compile(rb'":([0-9]{1,10}):\{')
_SERIALIZED = re.compile(r"(?:[asibdRrOCE]:|N;)")


class UnreadableValue(Exception):
    """A value that is not in the serialization format of PHP."""


@dataclass(frozen=True, slots=True)
class Unconverted:
    """The serialized text of an object, enumeration case or reference, which only PHP can read."""

    text: str

    def __str__(self) -> str:
        """Return the serialized form."""
        return self.text


def unserialized(text: str) -> object:
    """Return a value. An array becomes a dict, and an object an ``Unconverted``.

    As in PHP, text after the value is ignored.

    Raises:
        UnreadableValue: the text is cut off, too deeply nested, or not a serialized value.
    """
    try:
        return _Reader(text.encode(errors="surrogateescape")).value(MAX_DEPTH)
    except UnicodeEncodeError as error:
        raise UnreadableValue(str(error)) from error


class _Reader:
    """Reads serialized values from bytes, because PHP counts the lengths of texts in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def value(self, depth: int) -> Any:
        """Return the next value with at most ``depth`` levels of arrays."""
        if found := _SIMPLE.match(self._data, self._at):
            self._at = found.end()
            match found.lastgroup:
                case None:
                    return None
                case "bool":
                    return found["bool"] == b"1"
                case "int":
                    return max(-INT64_MAX - 1, min(int(found["int"]), INT64_MAX))  # as in PHP
                case "float":
                    return float(found["float"])
                case _:
                    return Unconverted(found["reference"].decode())
        if found := _STRING.match(self._data, self._at):
            self._at = found.end()
            text = self._take(int(found[1]), b'";')
            return text.decode(errors="replace")
        if found := _ARRAY.match(self._data, self._at):
            self._at = found.end()
            return self._pairs(int(found[1]), depth)
        return self._object(depth)

    def _pairs(self, count: int, depth: int) -> dict[int | str, object]:
        """Return the keys and values of an array, or the properties of an object."""
        if not depth:
            raise self._unreadable("too many levels")
        pairs = {}
        for _ in range(count):
            key = self.value(0)
            if type(key) not in {int, str}:
                raise self._unreadable("the key is neither an integer nor a text")
            pairs[key] = self.value(depth - 1)
        self._take(0, b"}")
        return pairs

    def _object(self, depth: int) -> Unconverted:
        begin = self._at
        found = self._expect(_OBJECT)
        if found["type"] == b"E":  # an enumeration case
            self._take(int(found["length"]), b'";')
        else:
            self._take(int(found["length"]), b"")
            size = int(self._expect(_SIZE)[1])
            if found["type"] == b"O":
                self._pairs(size, depth)
            else:  # C: a class with a format of its own, and the length of it
                self._take(size, b"}")
        return Unconverted(self._data[begin : self._at].decode(errors="replace"))

    def _expect(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        found = pattern.match(self._data, self._at)
        if found is None:
            raise self._unreadable("not a serialized value")
        self._at = found.end()
        return found

    def _take(self, length: int, end: bytes) -> bytes:
        """Return the next bytes, which ``end`` must follow."""
        begin, self._at = self._at, self._at + length + len(end)
        if self._at > len(self._data) or not self._data.startswith(end, begin + length):
            raise self._unreadable(f"nothing ends after {length} bytes")
        return self._data[begin : begin + length]

    def _unreadable(self, reason: str) -> UnreadableValue:
        return UnreadableValue(f"{reason}, at byte {self._at}")


def array_in(text: str | None) -> dict[int | str, object]:
    """Return a serialized array; an empty one for another value, or one that cannot be read."""
    try:
        value = unserialized(text) if text else {}
    except UnreadableValue:
        return {}
    return value if isinstance(value, dict) else {}


def list_of(text: str | None) -> list[str]:
    """Return the texts of a serialized array or a list with commas, or raise UnreadableValue."""
    if not text:
        return []
    if _SERIALIZED.match(text):
        value = unserialized(text)
        if isinstance(value, Unconverted):
            raise UnreadableValue("not an array")
        values = list(value.values()) if isinstance(value, dict) else [value]
        return [str(each) for each in values if isinstance(each, str | int | float | Unconverted)]
    return text.split(",")


def keys_of(text: str | None) -> list[str]:
    """Return the keys with true values in a serialized array, or raise UnreadableValue."""
    value = unserialized(text) if text else {}
    if not isinstance(value, dict):
        raise UnreadableValue("not an array")
    # Very old versions of WordPress stored lists of roles.
    return [str(held) if isinstance(key, int) else str(key) for key, held in value.items() if held]
