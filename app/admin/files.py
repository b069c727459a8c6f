"""CSV files of records (admin 2)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from flask import Response

from app.import_export.csv_format import to_cell


def csv_line(values: Iterable[Any]) -> str:
    """Return a line of a CSV file. Cells cannot become formulas of a spreadsheet."""
    line = StringIO()
    cells = (
        to_cell(
            value,
            "joined" if isinstance(value, list) else "json" if isinstance(value, dict) else "text",
        )
        for value in values
    )
    csv.writer(line).writerow(cells)
    return line.getvalue()


def csv_text(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield the lines of a CSV file with the names of the first row as its header."""
    names: list[str] | None = None
    for row in rows:
        if names is None:
            names = list(row)
            yield csv_line(names)
        yield csv_line(row.get(name) for name in names)


def csv_response(name: str, rows: Iterable[Mapping[str, Any]]) -> Response:
    """Return a CSV file to download."""
    response = Response("".join(csv_text(rows)), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
