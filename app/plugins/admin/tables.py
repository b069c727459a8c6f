"""Tables: GET forms with filters, orders and pages; and CSV files (admin 2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlencode

from flask import Response, request

from app.api.csv_responses import csv_response
from app.config.current import shop_zone
from app.conversions.dates import in_zone
from app.conversions.numbers import whole_number
from app.import_export.csv_format import to_cell
from app.plugins.admin import html
from app.plugins.admin.calls import ApiRequest, Record, Reply
from app.plugins.admin.frame import KEPT
from app.plugins.admin.pages import Button, Requests, allowed
from app.plugins.admin.selections import Action

CsvColumns = Mapping[str, Callable[[Record], object]]
"""The columns of a CSV file: the value of a record by their labels."""

Tab = tuple[str, str, int | None]
"""A state, its label, and its number of records, which a search does not count."""

ROWS = (25, 50, 100)
"""Numbers of rows per page that a table offers."""


def page_number() -> int:
    """Return the number of the page in the address, from 1."""
    return whole_number(request.args.get("page", "")) or 1


@dataclass(slots=True)
class Table:
    """A table of records. A template has its cells."""

    caption: str  # what it lists, for screen readers
    rows: Sequence[Record]
    total: int = 0  # the number of records that match
    pages: int = 1
    own_requests: Sequence[tuple[str, ApiRequest]] = ()  # its own, and those of its actions
    buttons: Callable[[Record], Sequence[Button]] | None = None  # at the end of a row
    filters: Sequence[str] = ()  # the parameters of its filters
    tabs: Sequence[Tab] = ()  # of the parameter ``state``
    bulk: Mapping[str, Action] = field(default_factory=dict)  # on selected records, by their values
    state: Callable[[Record], str] | None = None  # what an action on selected records compares
    sorts: bool = False  # whether it is that of a list, not one within a panel
    has_csv: bool = False  # whether ``format=csv`` in its address downloads it
    newest: str = ""  # the addresses of a table without numbers of pages
    older: str = ""
    page: int = field(default_factory=page_number)  # the number of the page that it shows
    defaults: Mapping[str, str] = field(default_factory=dict)  # of parameters of its filters
    is_complete: bool = True  # whether no more records match than its total

    @classmethod
    def of_reply(cls, caption: str, reply: Reply) -> Self:
        requests, is_complete = [("", reply.request)], reply.is_complete
        found = reply.content, reply.total, reply.pages, requests
        return cls(caption, *found, is_complete=is_complete)

    @property
    def requests(self) -> Requests:
        """Its own requests, if any, and those of the buttons of the first row that has some."""
        found = list(self.own_requests)
        buttons = next(filter(None, map(self.buttons_of, self.rows)), ()) if found else ()
        more = [(each.label, each.request()) for each in buttons]
        return found + [each for each in more if each not in found]

    def buttons_of(self, row: Record) -> list[Button]:
        """Return the buttons at the end of a row that the session can use."""
        return allowed(self.buttons(row)) if self.buttons else []

    @property
    def has_buttons(self) -> bool:
        return any(map(self.buttons_of, self.rows))

    @property
    def total_text(self) -> str:
        """The number of all records, with a plus if there can be more."""
        return f"{html.number(self.total)}{'' if self.is_complete else '+'}"

    @property
    def sizes(self) -> Sequence[int]:
        """The numbers of rows per page to choose from, if they make a difference."""
        return ROWS if self.has_csv and self.total > ROWS[0] else ()

    @property
    def is_filtered(self) -> bool:
        """Whether a search or a filter limits the records."""
        return self.uses("q", *self.filters)

    def uses(self, *names: str) -> bool:
        """Return whether the address has a value of a parameter that limits the records."""
        return any(
            request.args.get(each, "") not in {"", self.defaults.get(each)} for each in names
        )

    @property
    def is_narrowed(self) -> bool:
        """Whether the table can be empty although there are records."""
        return self.is_filtered or self.page > 1

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The parameters that the form of the filters keeps."""
        own = {"q", "page", *KEPT, *self.filters}
        return [(name, value) for name, value in request.args.items() if name not in own]

    def address(self, **changed: object) -> str:
        """Return the address of this table with other parameters."""
        kept = {name: value for name, value in request.args.items() if name not in KEPT}
        kept |= {name: str(value) for name, value in changed.items()}
        sent = {name: value for name, value in kept.items() if value not in {"", "None"}}
        return f"{request.path}?{urlencode(sent)}" if sent else request.path

    def sort_address(self, sort: str) -> str:
        """Return the address that sorts by a value of ``orderby``, or reverses the order."""
        reverse = self.direction(sort) == "descending"
        return self.address(sort=sort, order="asc" if reverse else "desc", page="")

    def direction(self, sort: str) -> str:
        """Return how the table is sorted by a value: ``ascending``, ``descending`` or nothing."""
        if not self.sorts or request.args.get("sort") != sort:
            return ""
        return "ascending" if request.args.get("order") == "asc" else "descending"

    @property
    def first(self) -> int:
        """The number of the first row among all records. All pages but the last one are full."""
        if self.page >= self.pages:
            return self.total - len(self.rows) + 1
        return (self.page - 1) * len(self.rows) + 1


def created_between(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of the API for the days of the filters ``from`` and ``to``."""
    first, last = (html.moment_of(given.get(name, "")) for name in ("from", "to"))
    end = last and html.moment_of(f"{in_zone(last, shop_zone()):%Y-%m-%d}T23:59:59")
    found = {"created_at_min": first, "created_at_max": end}
    return {name: each.isoformat() if each else "" for name, each in found.items()}


def rows_per_page() -> int | None:
    """Return the number of rows in the address, if it is one of ROWS."""
    number = whole_number(request.args.get("rows", ""))
    return number if number in ROWS else None


def list_query(**more: str | int) -> Record:
    """Return the parameters of the API for the search, the order and the page of the address."""
    args, page = request.args, page_number()
    sort = args.get("sort", "")
    order = args.get("order", "") if sort else ""
    return {
        "q": args.get("q", ""),
        "orderby": sort,
        "order": order,
        "page": page if page > 1 else "",
        **more,
    }


def csv_file(
    name: str,
    names: Sequence[str],
    batches: Iterable[Iterable[Mapping[str, object]]],
    stream: object = None,
) -> Response:
    """Return a CSV file to download, with the values of some names in each row.

    It is sent while its rows are read. A ``stream`` that they are read from is closed at the end.
    """
    forms: dict[type, str] = {list: "joined", dict: "json"}
    cells = (
        [
            [to_cell(value := row.get(each), forms.get(type(value), "text")) for each in names]
            for row in batch
        ]
        for batch in batches
    )
    return csv_response(name, names, cells, stream, mark=True)
