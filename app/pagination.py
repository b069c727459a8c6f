"""A page of a list: its rows, its totals and the headers that tell them (decisions 6, 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list and where they stand in it.

    Args:
        rows: what the page shows.
        total: how many rows match, whatever the offset and the page size.
        number: the page that was asked for, from 1.
        size: rows on a page; None when one page holds everything.
    """

    rows: Sequence[Any]
    total: int
    number: int
    size: int | None

    @property
    def pages(self) -> int:
        """Return ceil(total / size), or 1 without a limit (spec 4.2)."""
        return 1 if self.size is None else -(-self.total // self.size)

    def headers(self, address: str, query: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return ``X-Total``, ``X-TotalPages`` and, where one applies, one ``Link`` (RFC 8288).

        Args:
            address: the absolute URL of the list, without its query.
            query: the parameters of the request; the links keep all but ``page``.
        """
        kept = [(name, value) for name, value in query if name != "page"]
        targets = {
            "first": 1 if self.number > 1 else None,
            "prev": self.number - 1 if self.number > 1 else None,
            "next": self.number + 1 if self.number < self.pages else None,
            "last": self.pages if self.pages not in {0, self.number} else None,
        }
        links = [
            f'<{address}?{urlencode([*kept, ("page", page)])}>; rel="{relation}"'
            for relation, page in targets.items()
            if page
        ]
        headers = {"X-Total": str(self.total), "X-TotalPages": str(self.pages)}
        return headers | {"Link": ", ".join(links)} if links else headers
