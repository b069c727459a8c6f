"""Reading of records and their line numbers from NDJSON and CSV files."""

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from app.import_export.csv_format import from_cell, split
from app.import_export.exports import STANDARD

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum length of a line, so that a file without line breaks cannot fill the memory."""

MAX_UNREADABLE = 10
"""Number of lines that cannot be read at the beginning of a file, before the reading stops."""

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: a record, or the reason why it cannot be read.

    Args:
        number: number of the line where the record begins, from 1.
        record: the values by name.
        error: the reason why there is no record.
    """

    number: int
    record: dict[str, Any]
    error: str | None = None


def require_records(lines: Iterable[Line], file_format: str) -> Iterator[Line]:
    """Yield the lines of a file, or raise ValueError if none of the first ones can be read."""
    iterator = iter(lines)
    first: list[Line] = []
    for line in iterator:
        first.append(line)
        if line.error is None:
            break
        if len(first) == MAX_UNREADABLE:
            raise ValueError(
                f"line {first[0].number}: {first[0].error} None of the first {MAX_UNREADABLE} "
                f"lines can be read. Is the format of the file {file_format}?"
            )
    yield from first
    yield from iterator


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for ``-``."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        yield file


def ndjson_lines(file: IO[bytes]) -> Iterator[Line]:
    """Yield the records of a file with an object of JSON in each line. Blank lines are skipped."""
    for number, raw in _raw_lines(file):
        if not raw.strip():
            continue
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            yield Line(number, {}, _invalid_utf8(error))
            continue
        try:
            found = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            yield Line(number, {}, f"is not valid JSON: {error.msg} (column {error.colno}).")
            continue
        if isinstance(found, dict):
            yield Line(number, found)
        else:
            yield Line(number, {}, "must be a JSON object.")


def csv_lines(file: IO[bytes], columns: Mapping[str, str]) -> Iterator[Line]:
    """Yield the records of a CSV file whose first row names the columns.

    Args:
        columns: the format of known columns, from ``Kind.csv_columns``. Others contain text.

    Raises:
        ValueError: the header is missing or is not valid UTF-8, it has no known column, or a column
            occurs twice.
    """
    # A cell can contain a list of a thousand items. The limit applies to the whole process.
    csv.field_size_limit(MAX_LINE_BYTES)
    # Bytes that are not UTF-8 become surrogates.
    texts = (raw.decode(errors="surrogateescape") for _, raw in _raw_lines(file))
    rows = csv.reader(texts, strict=True)
    header = _header(rows)
    if columns.keys().isdisjoint(header):
        raise ValueError("line 1: contains no known column. Is the format of the file csv?")
    while True:
        number = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Line(number, {}, f"is not valid CSV: {error}.")
            continue
        if not any(cells):
            continue  # a blank line
        if len(cells) != len(header):
            reason = f"has {len(cells)} cells, but the header has {len(header)}."
            yield Line(number, {}, reason)
            continue
        try:
            named = zip(header, cells, strict=True)
            yield Line(number, {name: _value(cell, columns.get(name)) for name, cell in named})
        except ValueError as error:
            yield Line(number, {}, str(error))


def _header(rows: Any) -> list[str]:
    try:
        header = [from_cell(cell).strip() for cell in next(rows)]
        "".join(header).encode()
    except UnicodeEncodeError:
        raise ValueError("line 1: is not valid UTF-8.") from None
    except (StopIteration, csv.Error):
        header = []
    if not any(header):
        raise ValueError("line 1: the first row must contain the column names.")
    twice = {name for name, times in Counter(header).items() if times > 1}
    if twice:
        raise ValueError(f"line 1: the column {sorted(twice)[0]!r} occurs twice.")
    return header


def _value(cell: str, way: str | None) -> Any:
    """Return the value of a cell."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid UTF-8.") from None
    text = from_cell(cell)
    return split(text) if way == "joined" else text


def _raw_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and the bytes of lines, without a byte order mark at the beginning."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise ValueError(f"line {number}: is longer than {MAX_LINE_BYTES:,} bytes.")
        yield number, raw.removeprefix(BOM) if number == 1 else raw


def _invalid_utf8(error: UnicodeDecodeError) -> str:
    return f"is not valid UTF-8: byte 0x{error.object[error.start]:02x} (byte {error.start + 1})."
