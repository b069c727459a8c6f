"""The table of a kind of records: its page, and its CSV file (admin 2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from flask import Response, request

from app.api.authentication import current_principal
from app.api.metadata import RecordSerializer
from app.api.serializers import Serializer
from app.conversions.numbers import whole_number
from app.db.read_pool import RowStream
from app.db.records import Row
from app.plugins.admin.calls import Record, loaded_query
from app.plugins.admin.frame import may_open, render
from app.plugins.admin.pages import Button, allowed
from app.plugins.admin.reports import from_replica
from app.plugins.admin.selections import allowed_actions, state_of
from app.plugins.admin.tables import Table, csv_file, list_query, rows_per_page
from app.plugins.admin.texts import gettext as _
from app.services.common.pagination import Page

if TYPE_CHECKING:
    from app.plugins.admin.nouns import Noun

UNDO_SECONDS = 60
"""How long a table offers to restore what was moved to the trash."""


def list_page(noun: Noun, **values: Any) -> Response:
    """Return the page of the table, with further values of the template."""
    table, trashed, buttons = noun.table(), in_trash(request.args), noun.list_buttons()
    if noun.create_schema:
        buttons.append(Button(_(noun.create_label), noun.endpoint("create"), tone="primary"))
    return render(
        f"{noun.plural}.html",
        title=_(noun.title),
        noun=noun,
        table=table,
        trashed=trashed,
        buttons=allowed(buttons),
        undo=_undo_address(noun),
        acts=noun.queries and noun.url("act"),
        **values,
    )


def table_of(noun: Noun) -> Table:
    """Return the table of the current address."""
    given = request.args.to_dict()
    trashed = noun.has_trash and in_trash(given)
    operation = f"list_{'trashed_' if trashed else ''}{noun.operations}"
    reply = noun.listed(
        operation, list_query() | noun.query(given), rows_per_page() if noun.has_csv else None
    )
    table = Table.of_reply(_(noun.title), reply)
    table.rows = noun.prepared(list(table.rows))
    table.has_csv = noun.has_csv
    table.sorts, table.tabs, table.filters = True, noun.tabs(reply), noun.filters()
    table.bulk = allowed_actions(noun, trashed=trashed)
    table.state = None if trashed else partial(state_of, noun)
    table.own_requests = [
        *table.own_requests,
        *(
            (each.label, each.request(row["id"]))
            for row in table.rows[:1]
            for each in table.bulk.values()
            if each.title
        ),
    ]
    if trashed:
        table.buttons = lambda row: [noun.button(_("Restore"), "restore", row)]
    return table


def selected_rows(
    noun: Noun, query: Record, **more: object
) -> tuple[Page, Callable[..., list[Record]]]:
    """Return a page of the list of a query, and what converts its rows.

    Args:
        query: parameters of the API.
        more: further values of the loaded query.
    """
    trashed = noun.has_trash and in_trash(request.args)
    fields = query.get("fields", "")
    loaded = loaded_query(noun.list_schema, query | {"page": "", "fields": ""}) | more
    loaded["selection"] = dict.fromkeys(fields.split(",")) if fields else None
    serializer, find = noun.listing(loaded, trashed=trashed)
    where = {"trashed": trashed} if noun.has_trash else {}
    wanted = noun.query_type.of(loaded)
    found = find(current_principal(), wanted, serializer.columns, **where)
    return found, partial(converted, noun, serializer)


def converted(
    noun: Noun, serializer: Serializer | RecordSerializer, rows: Sequence[Row]
) -> list[Record]:
    """Return selected rows as the table shows them."""
    return noun.prepared(orjson.loads(orjson.dumps(serializer.rows(rows))))


def csv_page(noun: Noun) -> Response:
    """Return all records that the table of the address shows as CSV."""
    query = list_query() | noun.query(request.args)
    found, as_shown = from_replica(lambda: selected_rows(noun, query, limit=-1, page=1))
    stream = found.rows if isinstance(found.rows, RowStream) else None
    batches = (as_shown(rows) for rows in (stream.batches() if stream else ()))
    return csv_of(noun, batches, stream, trashed=in_trash(request.args))


def csv_of(
    noun: Noun, batches: Iterable[list[Record]], stream: RowStream | None = None, *, trashed: bool
) -> Response:
    """Return records as CSV."""
    columns = noun.csv_columns(trashed=trashed)
    rows = (
        [{label: cell(row) for label, cell in columns.items()} for row in part] for part in batches
    )
    return csv_file(noun.plural, [*columns], rows, stream)


def _undo_address(noun: Noun) -> str:
    """Return the address of the action that undoes the last one, or an empty string."""
    at, record_id = (whole_number(request.args.get(name, "")) for name in ("at", "undo"))
    is_recent = at is not None and 0 <= time.time() - at <= UNDO_SECONDS
    if not (noun.has_trash and record_id and is_recent and may_open(noun.endpoint("restore"))):
        return ""
    return noun.url("restore", record_id)


def in_trash(given: Mapping[str, str]) -> bool:
    """Return whether the parameters of a table are those of the trash."""
    return given.get("state") == "trash"
