"""The kinds of query parameters: each converts text, or refuses it with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app import dates, text
from app.numbers import INT64_MAX
from app.schemas import kinds
from app.schemas.inputs import Input

WHITE_SPACE = " \t\n\v\f\r"
"""What is blank; strip() alone would count control characters too, which can be searched for."""

MAX_IDS = 1000
"""IdListParam in one parameter: fewer than a database accepts values in one statement."""

MAX_DAYS = 365_000
"""Largest age in days that is told apart: older than any record."""

Selection = dict[str, "Selection | None"]
"""What ``fields`` selects: names; under a name None for all of it, or a selection of its parts."""


def _entries(value: str) -> list[str]:
    """Return the entries of a comma-separated list, trimmed, without the empty ones."""
    return [entry.strip() for entry in value.split(",") if entry.strip()]


def _nothing() -> None:
    """Be the default of what is not supplied; a plain None would stand in the document."""


class QueryField(Input):
    """A query parameter; an empty one is not supplied unless its kind says otherwise."""

    def __init__(self, data_key: str | None = None, meaning: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("load_default", _nothing)
        super().__init__(meaning, data_key=data_key, allow_none=False, **kwargs)

    def convert(self, value: Any) -> Any:
        """Return the converted parameter."""
        return self.read(value) if value.strip(WHITE_SPACE) else self.deserialize(None)

    def read(self, value: str) -> Any:
        """Convert text that is not blank, or raise ValueError."""
        raise NotImplementedError


class TextParam(QueryField):
    """Text, as it is."""

    openapi = kinds.TEXT_PARAMETER

    def read(self, value: str) -> str:
        """Return the text."""
        return value


class CouponTypeParam(TextParam):
    """The name of a coupon type."""

    openapi = kinds.KNOWN_COUPON_TYPE


class StatusListParam(TextParam):
    """Order statuses, separated by commas."""

    openapi = kinds.STATUSES_PARAMETER

    def read(self, value: str) -> list[str]:  # type: ignore[override] # a list of what TextParam reads
        """Return the words; without any, the default."""
        return _entries(super().read(value)) or self.deserialize(None)


class CodeParam(TextParam):
    """A coupon code, normalised."""

    def read(self, value: str) -> str:
        """Return the code as it is stored."""
        return text.coupon_code(super().read(value))


class RedemptionStatusParam(StatusListParam):
    """Statuses of redemptions, separated by commas."""

    openapi = kinds.REDEMPTION_STATUSES_PARAMETER


class FieldList(QueryField):
    """``fields``: names, separated by commas, with one level of dots (decisions 6)."""

    openapi = kinds.FIELDS_PARAMETER

    def read(self, value: str) -> Selection:
        """Return the selection."""
        selection: Selection = {}
        for name in value.split(","):
            parent, dot, child = (part.strip() for part in name.partition("."))
            if not dot:
                selection[parent] = None
            elif (parts := selection.setdefault(parent, {})) is not None:
                parts[child] = None
        return selection


class IntegerParam(QueryField):
    """A whole number of at least ``minimum``."""

    def __init__(
        self, data_key: str | None = None, meaning: str = "", *, minimum: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(data_key, meaning, **kwargs)
        self.minimum = minimum
        self.openapi = {"type": "integer", "minimum": minimum}

    def read(self, value: str) -> int:
        """Return the number."""
        # More digits than any record could need, fewer than Python refuses to convert.
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", value) or int(value) < self.minimum:
            raise ValueError(f"must be a whole number of at least {self.minimum}.")
        return int(value)


class PageNumber(IntegerParam):
    """``page``: from 1; an empty one is the first (decisions 14)."""

    def __init__(self) -> None:
        super().__init__(None, "Which page of the list, from 1.", minimum=1, load_default=1)


class DaysParam(IntegerParam):
    """A number of days. More than MAX_DAYS is MAX_DAYS: no date is so far in the past."""

    def __init__(self, meaning: str, *, default: int) -> None:
        super().__init__(None, meaning, load_default=default)

    def read(self, value: str) -> int:
        """Return the number."""
        return min(super().read(value), MAX_DAYS)


class LimitParam(IntegerParam):
    """A page size; 0 is the default, -1 is none (spec 4.2)."""

    def __init__(self) -> None:
        meaning = "Rows on a page; -1 is no limit, 0 or none the shop's page size."
        super().__init__("filter[limit]", meaning, minimum=-1)


class OffsetParam(IntegerParam):
    """How many rows are skipped (spec 4.2)."""

    def __init__(self) -> None:
        super().__init__("filter[offset]", "Rows to skip; absent or 0, `page` says how many.")


class SearchParam(TextParam):
    """Text to search for, in which ``*`` is anything."""

    openapi = kinds.SEARCH_PARAMETER

    def read(self, value: str) -> str:
        """Return the pattern. Many stars could keep a database busy for long."""
        if value.count("*") > 10:
            raise ValueError("has more than 10 stars.")
        return super().read(value)


class TimestampParam(QueryField):
    """A date-time: ISO with or without offset and fraction, a date, or Unix seconds."""

    openapi = kinds.MOMENT_PARAMETER

    def read(self, value: str) -> datetime:
        """Return the moment, UTC."""
        return dates.parse_timestamp(value)


class ChoiceParam(QueryField):
    """One of several words."""

    def __init__(
        self, data_key: str, meaning: str, *choices: str, default: str | None = None
    ) -> None:
        super().__init__(data_key, meaning, load_default=default or _nothing)
        self.choices = choices
        self.openapi = {"type": "string", "enum": list(choices)}

    def read(self, value: str) -> str:
        """Return the word."""
        if value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}.")
        return value


class Renamed(ChoiceParam):
    """The same choice, with further words for some of its words."""

    def __init__(self, choice: ChoiceParam, words: Mapping[str, str]) -> None:
        super().__init__(
            str(choice.data_key), choice.metadata["description"], *choice.choices, *words,
            default=choice.load_default,
        )  # fmt: skip
        self.words = words

    def read(self, value: str) -> str:
        """Return the word that the choice itself has."""
        word = super().read(value)
        return self.words.get(word, word)


class DirectionParam(ChoiceParam):
    """``asc`` or ``desc``, in any case."""

    def __init__(self, *, default: str) -> None:
        super().__init__(
            "filter[order]", "The direction of the sort, in any case.", "asc", "desc",
            default=default,
        )  # fmt: skip

    def read(self, value: str) -> str:
        """Return the direction in lower case."""
        return super().read(value.lower())


class IdListParam(QueryField):
    """IdListParam, separated by commas; empty entries are skipped (decisions 14)."""

    openapi = kinds.IDS_PARAMETER

    def read(self, value: str) -> list[int]:
        """Return the ids; those beyond 64 bits identify nothing. Without any, the default."""
        if value.count(",") >= MAX_IDS:
            raise ValueError(f"has more than {MAX_IDS:,} ids.")
        entries = _entries(value)
        if not all(re.fullmatch(r"[0-9]{1,100}", entry) for entry in entries):
            raise ValueError("must be ids, separated by commas.")
        if not entries:
            return self.deserialize(None)  # type: ignore[no-any-return] # None or a list
        return [number for number in map(int, entries) if number <= INT64_MAX]


class ForceWord(TextParam):
    """``force``: only ``true`` itself removes permanently (spec 3)."""

    openapi = {**kinds.TEXT_PARAMETER, "examples": ["true"]}

    def __init__(self) -> None:
        super().__init__(None, "`true` removes permanently; anything else moves to the trash.")
