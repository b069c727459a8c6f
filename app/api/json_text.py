"""Insertion of members into the objects of a JSON text, without changing any other byte."""

import json
import json.decoder
import json.scanner
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Self

from flask import current_app

_NOT_BLANK = re.compile(r"[^ \t\n\r]")


class PositionedObject(dict[str, object]):
    """A JSON object with the positions of its braces in the text."""

    start: int
    end: int


class JsonFloat(float):
    """A number with a fraction or an exponent, whose text is the number as it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number that a text contains."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        """Return the number as it was written."""
        return self.text


class PositionDecoder(json.JSONDecoder):
    """A JSON decoder that records the positions of objects, and the texts of numbers.

    Uses the scanner in Python, because the scanner in C does not call ``parse_object``.
    """

    def __init__(self) -> None:
        super().__init__(parse_int=parse_integer, parse_float=JsonFloat)
        self.parse_object = self._parse_object
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # missing in typeshed

    def _parse_object(
        self, text_and_position: tuple[str, int], *args: object
    ) -> tuple[PositionedObject, int]:
        parsed, end = json.decoder.JSONObject(text_and_position, *args)  # type: ignore[attr-defined]  # missing in typeshed
        found = PositionedObject(parsed)
        found.start, found.end = text_and_position[1] - 1, end - 1
        return found, end


def parse_integer(digits: str) -> int | Decimal:
    """Parse an integer. Python does not convert thousands of digits to int, so use Decimal then."""
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


def insert_members(
    text: str, objects: Sequence[PositionedObject], members: Sequence[Mapping[str, object]]
) -> str:
    """Append members to objects in a JSON text, and remove existing members with the same names."""
    edits: list[tuple[int, int, str]] = []  # start, end and replacement
    for found, new in zip(objects, members, strict=True):
        if not found.keys().isdisjoint(new):
            edits.extend((*span, "") for span in _member_spans(text, found, new))
        if new:
            written = ",".join(
                f"{json.dumps(name)}:{current_app.json.dumps(value)}" for name, value in new.items()
            )
            end = len(text[found.start : found.end].rstrip(" \t\n\r")) + found.start
            edits.append((end, end, f",{written}"))
    pieces, done = [], 0
    for start, end, replacement in sorted(edits):
        pieces += [text[done:start], replacement]
        done = end
    return "".join([*pieces, text[done:]])


def _member_spans(
    text: str, found: PositionedObject, names: Container[str]
) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the named members of an object, each with one comma.

    At least one other member must remain, such as the ID of an order.
    """
    decode = json.JSONDecoder(parse_int=parse_integer).raw_decode
    members: list[tuple[str, int, int]] = []
    at = _skip_blanks(text, found.start + 1)
    while at < found.end:
        start = at
        name, at = decode(text, at)
        _, at = decode(text, _skip_blanks(text, _skip_blanks(text, at) + 1))  # after the colon
        members.append((name, start, at))
        at = _skip_blanks(text, _skip_blanks(text, at) + 1)  # after the comma
    after_other = False
    for index, (name, start, end) in enumerate(members):
        if name not in names:
            after_other = True
        elif after_other:
            yield members[index - 1][2], end  # from the comma before it
        else:
            yield start, members[index + 1][1]  # to the comma after it


def _skip_blanks(text: str, at: int) -> int:
    found = _NOT_BLANK.search(text, at)
    return found.start() if found else len(text)
