"""Pages of lists and their headers (decisions 6, 13)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from app.config.current import current_limit
from app.db.read_pool import RowStream

MAX_LINK_BYTES = 4000
"""A longer ``Link`` header is omitted: many proxies read 4 KiB of headers (decisions 17)."""


class Total(NamedTuple):
    """The number of matching records.

    Args:
        number: how many of them were counted.
        is_complete: whether there are no others.
    """

    number: int
    is_complete: bool = True

    @property
    def body(self) -> dict[str, object]:
        """Return the body of the response to ``/count``."""
        body: dict[str, object] = {"count": self.number}
        return body if self.is_complete else body | {"complete": False}


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a page, and their position in the list.

    Args:
        rows: the rows; a long page reads them in batches.
        total: the number of matching rows, regardless of offset and page size; None for a list
            without pages, which has no headers.
        number: the requested page, from 1.
        size: rows per page; None if the list has a single page.
        goes_on: whether more records follow, if ``total`` is not the number of all matches but of
            those that were counted. None if it is the number of all.
    """

    rows: Sequence[object] | RowStream
    total: int | None
    number: int = 1
    size: int | None = None
    goes_on: bool | None = None

    @property
    def pages(self) -> int:
        """Return ceil(total / size), or 1 without a limit (spec 4.2)."""
        return 1 if self.size is None else -(-(self.total or 0) // self.size)

    def headers(self, address: str, query: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return ``X-Total``, ``X-TotalPages`` and, if there are other pages, ``Link`` (RFC 8288).

        ``X-Total-Complete`` is false if more records match than were counted. A ``Link`` longer
        than MAX_LINK_BYTES is omitted; the totals remain.

        Args:
            address: the absolute URL of the list, in ASCII, without its query.
            query: the parameters of the request. The links contain all except ``page``.
        """
        if self.total is None:
            return {}
        kept = urlencode([(name, value) for name, value in query if name != "page"])
        before = f"<{address}?{kept}&page=" if kept else f"<{address}?page="
        has_next = self.number < self.pages if self.goes_on is None else self.goes_on
        known = {0, self.number}
        targets = {
            "first": 1 if self.number > 1 else None,
            "prev": self.number - 1 if self.number > 1 else None,
            "next": self.number + 1 if has_next else None,
            "last": self.pages if self.goes_on is None and self.pages not in known else None,
        }
        links = ", ".join(
            f'{before}{page}>; rel="{relation}"' for relation, page in targets.items() if page
        )
        headers = {"X-Total": str(self.total), "X-TotalPages": str(self.pages)}
        if self.goes_on is not None:
            headers["X-Total-Complete"] = "false"
        return headers | {"Link": links} if 0 < len(links) <= MAX_LINK_BYTES else headers


def page_size(limit: int | None) -> int | None:
    """Return the rows per page: ``limit``, where -1 means no limit and 0 the default (spec 4.2).

    None is a list without this parameter.
    """
    return None if limit == -1 else limit or default_page_size()


def default_page_size() -> int:
    """Return the rows per page of a list without a limit."""
    return current_limit("SHOP_PAGE_SIZE")
