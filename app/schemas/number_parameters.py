"""Query parameters that are numbers: IDs, pages, limits, offsets and days."""

from __future__ import annotations

import re
from typing import Any

from app.schemas.parameters import QueryField

MAX_DAYS = 365_000
"""Maximum age in days. No record is that old."""


class IntegerParam(QueryField):
    """An integer of at least ``minimum``."""

    def __init__(
        self, data_key: str | None = None, meaning: str = "", *, minimum: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(data_key, meaning, **kwargs)
        self.minimum = minimum
        self.openapi = {"type": "integer", "minimum": minimum}

    def read(self, value: str) -> int:
        """Return the number, or raise ValueError."""
        # Enough digits for every ID, and fewer than the limit of Python for int().
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", value) or int(value) < self.minimum:
            raise ValueError(f"must be an integer of at least {self.minimum}.")
        return int(value)


class PageNumber(IntegerParam):
    """``page``, starting with 1. Blank text means the first page (decisions 14)."""

    def __init__(self) -> None:
        super().__init__(None, "Page number, starting with 1.", minimum=1, load_default=1)


class DaysParam(IntegerParam):
    """A number of days, reduced to MAX_DAYS if it is larger."""

    def __init__(self, meaning: str, *, default: int) -> None:
        super().__init__(None, meaning, load_default=default)

    def read(self, value: str) -> int:
        """Return the number."""
        return min(super().read(value), MAX_DAYS)


class LimitParam(IntegerParam):
    """A page size. 0 means the default, -1 means no limit (spec 4.2)."""

    def __init__(self) -> None:
        meaning = (
            "Number of records per page. -1 means no limit, 0 means the page size of the shop."
        )
        super().__init__("filter[limit]", meaning, minimum=-1)


class EventLimitParam(IntegerParam):
    """A number of events per page. 0 means the default (events 1)."""

    maximum = 1000

    def __init__(self) -> None:
        meaning = (
            f"Number of events per page, up to {self.maximum:,}. 0 means the page size of the shop."
        )
        super().__init__("filter[limit]", meaning)
        self.openapi = {"type": "integer", "minimum": 0, "maximum": self.maximum}

    def read(self, value: str) -> int:
        """Return the number, or raise ValueError."""
        number = super().read(value)
        if number > self.maximum:
            raise ValueError(f"must be an integer of at most {self.maximum}.")
        return number


class OffsetParam(IntegerParam):
    """A number of records to skip (spec 4.2)."""

    def __init__(self) -> None:
        super().__init__("filter[offset]", "Number of records to skip. Replaces `page`.")
