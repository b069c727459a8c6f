"""Rows of a response as a CSV file (reports 4)."""

import csv
import io
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import marshmallow as ma
from flask import Response

from app.api.responses import streamed_response
from app.conversions.text import safe_cell
from app.schemas.fields.output import Amount, Number

MARK = "\ufeff"
"""The byte order mark."""


def csv_response(
    name: str,
    columns: Iterable[str],
    batches: Iterable[Iterable[Iterable[str]]],
    rows: object = None,
    *,
    mark: bool = False,
) -> Response:
    """Return a CSV file, which is sent while its rows are read.

    Args:
        name: the name of the file, without its extension.
        columns: the names of the columns.
        batches: the cells of the rows, each safe to open in a spreadsheet.
        rows: what the cells are made of. A stream of rows is closed at the end.
        mark: whether the file begins with a byte order mark, without which Excel does not read it
            as UTF-8.
    """
    response = streamed_response(_lines(columns, batches, MARK if mark else ""), "text/csv", rows)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def report_response(
    name: str,
    schema: type[ma.Schema],
    batches: Iterable[Iterable[Mapping[str, object]]],
    headers: Mapping[str, str] | None = None,
    stream: object = None,
    *,
    without: Container[str] = (),
) -> Response:
    """Return the rows of a report as a CSV file.

    Args:
        name: the name of the file, without its extension.
        schema: the schema of a row. The names of its fields are the columns. A nested field has
            one for each of its values: ``coupon_id``, ``coupon_code``.
        batches: the rows as the API shows them.
        stream: the rows of the database, if they are a stream, which is closed at the end.
        without: the fields that the rows do not have.
    """
    columns = {name: field for name, field in _columns(schema) if name not in without}
    flat = (map(dict, map(_flat, batch)) for batch in batches)
    rows = (
        ([_cell(row[each], field) for each, field in columns.items()] for row in batch)
        for batch in flat
    )
    response = csv_response(name, columns, rows, stream)
    response.headers.update(headers or {})
    return response


def _lines(
    columns: Iterable[str], batches: Iterable[Iterable[Iterable[str]]], start: str
) -> Iterator[bytes]:
    """Yield the lines of a file. The first part, with the start, contains the first rows."""
    text = io.StringIO()
    text.write(start)
    writer = csv.writer(text)
    writer.writerow(columns)
    for batch in batches:
        writer.writerows(batch)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _cell(value: object, field: object) -> str:
    """Return the text of a value. Figures, which can be negative, are numbers for spreadsheets."""
    if value is None:
        return ""
    return str(value) if isinstance(field, Amount | Number) else safe_cell(str(value))


def _columns(schema: type[ma.Schema]) -> Iterator[tuple[str, object]]:
    for name, field in schema._declared_fields.items():
        if isinstance(field, ma.fields.Nested):
            part: Any = field.nested
            yield from ((f"{name}_{inner}", each) for inner, each in part._declared_fields.items())
        else:
            yield name, field


def _flat(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}_{inner}", each) for inner, each in value.items())
        else:
            yield name, value
