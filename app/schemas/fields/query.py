"""Types of query parameters. Each class converts text, or raises ValueError with a reason."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from app.conversions import dates, numbers, text
from app.conversions.numbers import INT64_MAX
from app.errors import invalid
from app.schemas.fields import json_schema
from app.schemas.fields.input import Input

MAX_DAYS = 365_000
"""Maximum age in days. No record is that old."""

WHITE_SPACE = " \t\n\v\f\r"
"""White space in parameters. Unlike for ``strip()``, most control characters do not count."""

Selection = dict[str, "Selection | None"]
"""Selection of the ``fields`` parameter. The value of a name is None for the whole field, or the
selection within an object."""


class StrictSelection(Selection):
    """The selection of a strict request, whose names must be known."""


_FILTER = re.compile(r"filter\[(\w+)\]")


def plain(text: str) -> str:
    """Return a text with the plain names of filters: ``limit`` for ``filter[limit]``.

    The name ``filter[metadata][erp_id]`` becomes ``metadata[erp_id]``.
    """
    return _FILTER.sub(r"\1", text)


def _entries(value: str) -> list[str]:
    """Return the trimmed, non-empty entries of a comma-separated list."""
    return [entry.strip() for entry in value.split(",") if entry.strip()]


def _nothing() -> None:
    """Return the default, None. A plain None would appear in the OpenAPI document."""


class QueryField(Input):
    """A query parameter. Blank text means "not supplied"."""

    is_list = False
    """Whether it is a list, separated by commas, whose name can also be repeated."""

    def __init__(self, data_key: str | None = None, meaning: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("load_default", _nothing)
        super().__init__(meaning, data_key=data_key, allow_none=False, **kwargs)

    def convert(self, value: Any) -> Any:
        """Return the converted parameter."""
        return self.read(value) if value.strip(WHITE_SPACE) else self.deserialize(None)

    def read(self, value: str) -> object:
        """Convert text that is not blank, or raise ValueError with a reason."""
        raise NotImplementedError


class TextParam(QueryField):
    """Text, unchanged."""

    openapi = json_schema.TEXT_PARAMETER

    def read(self, value: str) -> str:
        return value


class ExactText(TextParam):
    """Text in which blanks count. Only absence means "not supplied"."""

    def convert(self, value: Any) -> str:
        return self.read(value)


class TrueWord(TextParam):
    """A flag. Only the text ``true`` sets it."""

    openapi = {"type": "boolean"}

    def loss(self, value: Any, converted: str) -> str:
        """Return why the value is neither true nor false, or an empty string."""
        return "" if value in {"true", "false"} else "must be true or false."


class StatusListParam(TextParam):
    """Order statuses, separated by commas."""

    openapi = json_schema.STATUSES_PARAMETER
    is_list = True

    def read(self, value: str) -> list[str]:  # type: ignore[override] # a list instead of text
        return _entries(super().read(value)) or self.deserialize(None)


class CodeParam(TextParam):
    """A coupon code, normalized."""

    def read(self, value: str) -> str:
        return text.coupon_code(super().read(value))


class FieldList(QueryField):
    """``fields``: names, separated by commas, with one level of dots (decisions 6)."""

    openapi = json_schema.FIELDS_PARAMETER
    is_list = True

    def read(self, value: str) -> Selection:
        selection: Selection = {}
        for name in value.split(","):
            parent, dot, child = (part.strip() for part in name.partition("."))
            if not dot:
                selection[parent] = None
            elif (parts := selection.setdefault(parent, {})) is not None:
                parts[child] = None
        return selection


class SearchParam(TextParam):
    """Text to search for, with ``*`` as a wildcard."""

    openapi = json_schema.SEARCH_PARAMETER

    def read(self, value: str) -> str:
        """Return the pattern, or raise ValueError. Many wildcards could slow down the database."""
        if value.count("*") > 10:
            raise ValueError("has more than 10 asterisks (*).")
        return super().read(value)


class TimestampParam(QueryField):
    """A timestamp: an ISO date-time, an ISO date, or Unix seconds."""

    openapi = json_schema.TIMESTAMP_PARAMETER

    def read(self, value: str) -> datetime:
        return dates.parse_timestamp(value)


class AmountParam(QueryField):
    """An amount of money."""

    openapi = json_schema.AMOUNT_IN

    def read(self, value: str) -> Decimal | None:
        return numbers.money(value)


class ChoiceParam(QueryField):
    """One of several values."""

    def __init__(
        self, data_key: str, meaning: str, *choices: str, default: str | None = None
    ) -> None:
        super().__init__(data_key, meaning, load_default=default or _nothing)
        self.choices = choices
        self.openapi = {"type": "string", "enum": list(choices)}

    def read(self, value: str) -> str:
        if value not in self.choices:
            raise invalid("must be one of {0}.", ", ".join(self.choices))
        return value


class DirectionParam(ChoiceParam):
    """A sort direction: ``asc`` or ``desc``, in any letter case."""

    def __init__(self, *, default: str) -> None:
        super().__init__("filter[order]", "Sort direction.", "asc", "desc", default=default)
        self.openapi = {
            **self.openapi,
            json_schema.COMPONENT: "SortOrder",
            "description": "Sort direction.",
        }

    def read(self, value: str) -> str:
        return super().read(value.lower())


class IdListParam(QueryField):
    """IDs, separated by commas. Empty entries are skipped (decisions 14)."""

    openapi = json_schema.IDS_PARAMETER
    is_list = True

    def read(self, value: str) -> list[int]:
        """Return the IDs, or the default without any. IDs beyond 64 bits are dropped."""
        entries = _entries(value)
        if len(entries) > json_schema.MAX_IDS:
            raise invalid("has more than {0:,} IDs.", json_schema.MAX_IDS)
        if not all(re.fullmatch(r"[0-9]+", entry) for entry in entries):
            raise ValueError("must be IDs, separated by commas.")
        if not entries:
            return self.deserialize(None)  # type: ignore[no-any-return] # None or a list
        digits = (entry.lstrip("0") or "0" for entry in entries)
        # Python does not convert thousands of digits. A number with 20 digits exceeds 64 bits.
        numbers = (int(entry) for entry in digits if len(entry) < 20)
        return [number for number in numbers if number <= INT64_MAX]


class IntegerParam(QueryField):
    """An integer of at least ``minimum``, and at most ``maximum`` if there is one."""

    def __init__(
        self,
        data_key: str | None = None,
        meaning: str = "",
        *,
        minimum: int = 0,
        maximum: int | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(data_key, meaning, **kwargs)
        self.minimum = minimum
        self.maximum = maximum
        limit = {} if maximum is None else {"maximum": maximum}
        self.openapi = {"type": "integer", "minimum": minimum, **limit}

    def read(self, value: str) -> int:
        # Enough digits for every ID, and fewer than the limit of Python for int().
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", value) or int(value) < self.minimum:
            raise invalid("must be an integer of at least {0}.", self.minimum)
        if self.maximum is not None and int(value) > self.maximum:
            raise invalid("must be an integer of at most {0}.", self.maximum)
        return int(value)


class DaysParam(IntegerParam):
    """A number of days, reduced to MAX_DAYS if it is larger."""

    def __init__(self, meaning: str, *, default: int) -> None:
        super().__init__(None, meaning, load_default=default)

    def read(self, value: str) -> int:
        return min(super().read(value), MAX_DAYS)


class LimitParam(IntegerParam):
    """A page size. 0 means the default, -1 means no limit (spec 4.2)."""

    def __init__(self) -> None:
        meaning = (
            "Number of records per page. -1 means no limit, 0 means the page size of the shop."
        )
        super().__init__("filter[limit]", meaning, minimum=-1)


class OffsetParam(IntegerParam):
    """A number of records to skip (spec 4.2)."""

    def __init__(self) -> None:
        super().__init__("filter[offset]", "Number of records to skip. Replaces `page`.")
