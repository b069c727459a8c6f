"""Reading of records and their line numbers from NDJSON and CSV files."""

import codecs
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, cast

import orjson

from app.conversions.text import nearest_name
from app.db.records import Record
from app.errors import Sentence, invalid
from app.import_export.column_names import plain_name
from app.import_export.csv_format import from_cell
from app.import_export.exports import STANDARD

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum length of a line, so that a file without line breaks cannot fill the memory."""

MAX_UNREADABLE = 10
"""Number of lines that cannot be read at the beginning of a file, before the reading stops."""

MAX_HEADER_LINES = 100
"""Number of lines that the names of the columns can have, because they contain line breaks."""

SEPARATORS = ",;\t|"
"""What can separate the cells of a row."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OTHER_FILES = {
    b"PK\x03\x04": "a workbook or another ZIP file",  # .xlsx, .ods, .numbers
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel",
    b"\x1f\x8b": "compressed",
    b"%PDF": "a PDF document",
}
"""What people send instead of text, by its first bytes."""
_SEPARATOR_LINE = re.compile('"?sep=([^"])"?[,;]*', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file: a record, or the reason why it cannot be read.

    Args:
        number: number of the line where the record begins, from 1.
        record: the values by name.
        error: the reason why there is no record.
    """

    number: int
    record: Record
    error: str | Sentence | None = None


def _unreadable(number: int, template: str, *values: object) -> Line:
    return Line(number, {}, Sentence(template, *values))


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


def require_text(start: bytes) -> None:
    """Raise ValueError if a file begins like a file of another kind than text."""
    for signature, kind in _OTHER_FILES.items():
        if start.startswith(signature):
            raise invalid("line 1: the file is {0}. Save its records as text.", Sentence(kind))


def ndjson_lines(file: IO[bytes]) -> Iterator[Line]:
    """Yield the records of a file with an object of JSON in each line. Blank lines are skipped."""
    for number, raw in raw_lines(file):
        if number == 1:
            require_text(raw)
            if raw.startswith(_UTF16_MARKS):
                raise ValueError("line 1: the file is UTF-16. Save it as UTF-8.")
        if raw.strip():
            yield ndjson_line(number, raw)


def ndjson_line(number: int, raw: bytes) -> Line:
    """Return the record of a line with an object of JSON."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return Line(number, {}, invalid_utf8(error, error.start))
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return _unreadable(number, "is not valid JSON: {0} (column {1}).", error.msg, error.colno)
    if isinstance(found, dict):
        return Line(number, found)
    return Line(number, {}, "must be a JSON object.")


def csv_lines(
    file: IO[bytes],
    names: Mapping[str, str],
    *,
    separators: str = SEPARATORS,
    known: Set[str] | None = None,
) -> Iterator[Line]:
    """Yield the records of a CSV file, whose values are texts.

    The header is the first row with a text, after a line such as ``sep=;``. Columns without a name
    and rows without a text are ignored. The text is UTF-8, with or without a mark at its beginning,
    or UTF-16 with a mark. Lines can end in CR, LF or both.

    Args:
        names: our name of each column by the ``plain_name`` of its header.
        separators: what can separate the cells.
        known: the columns that the file can have, or None for any.

    Raises:
        ValueError: there is no header, it is not valid text, it has no known column or another one
            than those in ``known``, or a column occurs twice.
    """
    # A cell can contain a list of a thousand items. The limit applies to the whole process.
    csv.field_size_limit(MAX_LINE_BYTES)
    with _decoded(file) as texts:
        first, header_lines, separator = _beginning(texts, names, separators)
        rows = csv.reader(chain(header_lines, texts), delimiter=separator, strict=True)
        header = _header(rows, names, first)
        if known is not None:
            _require_known(header, known, first)
        while True:
            number = first + rows.line_num
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield _unreadable(number, "is not valid CSV: {0}.", str(error))
                continue
            if any(map(str.strip, cells)):
                yield _line(number, header, cells)


def separator_of(lines: Iterable[str], names: Mapping[str, str]) -> tuple[int, str]:
    """Return the number of the header's first line in a CSV file, and the separator of its cells.

    Raises:
        ValueError: there is no header.
    """
    number, _header_lines, separator = _beginning(iter(lines), names, SEPARATORS)
    return number, separator


def _line(number: int, header: Sequence[str], cells: Sequence[str]) -> Line:
    """Return the record of a row. Empty cells beyond the columns with a name are ignored."""
    named = max(at for at, name in enumerate(header, 1) if name)
    if not named <= len(cells) or any(map(str.strip, cells[len(header) :])):
        return _unreadable(
            number, "has {0} cells, but the header has {1}.", len(cells), len(header)
        )
    record = {}
    for at, (name, cell) in enumerate(zip(header, cells, strict=False), 1):
        if not is_utf8(cell):
            return Line(number, {}, "is not valid UTF-8.")
        if name:
            record[name] = from_cell(cell)
        elif cell.strip():
            return _unreadable(number, "has a value in column {0}, whose name is missing.", at)
    return Line(number, record)


def is_utf8(text: str) -> bool:
    """Return whether a decoded text has no bytes that are not UTF-8, which became surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _decoded(file: IO[bytes]) -> Iterator[Iterator[str]]:
    """Yield the lines of a file with their ends. Bytes that are not UTF-8 become surrogates."""
    buffered = io.BufferedReader(cast("io.RawIOBase", file))  # to look at the first bytes
    start = buffered.peek(4)
    require_text(start)
    encoding = "utf-16" if start.startswith(_UTF16_MARKS) else "utf-8-sig"
    text = io.TextIOWrapper(buffered, encoding, errors="surrogateescape", newline="")
    try:
        yield _text_lines(text)
    except UnicodeError:
        raise ValueError("line 1: the file begins like UTF-16 and is not valid UTF-16.") from None
    finally:  # the caller closes the file
        text.detach()
        buffered.detach()


def _text_lines(text: IO[str]) -> Iterator[str]:
    number = 0
    while line := text.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise invalid("line {0}: is longer than {1:,} bytes.", number, MAX_LINE_BYTES)
        yield line


def _require_known(header: Sequence[str], known: Set[str], number: int) -> None:
    for name in header:
        if name and name not in known:
            nearest = nearest_name(name, known)
            hint = Sentence(" Did you mean {0}?", repr(nearest)) if nearest else ""
            raise invalid(
                "line {0}: the column {1} is not imported.{2}", number, repr(name[:100]), hint
            )


def _beginning(
    lines: Iterator[str], names: Mapping[str, str], separators: str
) -> tuple[int, list[str], str]:
    """Return the number of the header's first line, its lines, and the separator of the file."""
    for number, line in enumerate(lines, 1):
        named = _SEPARATOR_LINE.fullmatch(line.strip(" \r\n")) if number == 1 else None
        if named and (separators == SEPARATORS or named[1] in separators):
            separators = named[1]
        elif line.strip(f'{SEPARATORS}" \r\n'):
            header, quotes = [line], line.count('"')
            for following in islice(lines, MAX_HEADER_LINES if quotes % 2 else 0):
                header.append(following)
                quotes += following.count('"')
                if quotes % 2 == 0:  # a line break in a name has ended
                    break
            return number, header, _separator(header, separators, names)
    raise ValueError("line 1: the first row must contain the column names.")


def _separator(header: Sequence[str], separators: str, names: Mapping[str, str]) -> str:
    """Return the separator that makes most of the header's columns known.

    ``csv.Sniffer`` guesses from all characters, so that a file with one column is separated by a
    letter. The names of the columns are known, and leave nothing to guess.
    """

    def number_of_known(separator: str) -> int:
        try:
            cells = next(csv.reader(header, delimiter=separator), [])
        except csv.Error:
            return 0
        return sum(plain_name(from_cell(cell)) in names for cell in cells)

    return max(separators, key=number_of_known)


def _header(rows: Iterator[list[str]], names: Mapping[str, str], number: int) -> list[str]:
    """Return our name of each column, or the name in the file if it is unknown."""
    try:
        cells = [from_cell(cell).strip() for cell in next(rows)]
    except (StopIteration, csv.Error) as error:
        raise invalid(
            "line {0}: the column names are not valid CSV: {1}.", number, str(error)
        ) from None
    if not is_utf8("".join(cells)):
        raise invalid("line {0}: is not valid UTF-8.", number)
    if any("\0" in cell for cell in cells):
        raise invalid(
            "line {0}: contains NUL characters. Save a UTF-16 file with a byte order mark, "
            "or as UTF-8.",
            number,
        )
    own = set(names.values())
    exact = own.intersection(cells)
    header = [cell if cell in own else names.get(plain_name(cell), cell) for cell in cells]
    # A column with our name comes before others that mean the same.
    header = [
        cell if name in exact and cell != name else name
        for cell, name in zip(cells, header, strict=True)
    ]
    for name, times in Counter(filter(None, header)).items():
        if times > 1:
            found = sorted({cell for cell, same in zip(cells, header, strict=True) if same == name})
            template = "line {0}: the column {1} occurs twice."
            if found != [name]:
                template = "line {0}: the column {1} occurs twice, as {2}."
            # Not one sentence within another: a file can have thousands of spellings.
            *others, last = (repr(cell[:40]) for cell in found[:10])
            as_written = Sentence("{0} and {1}", ", ".join(others), last) if others else last
            raise invalid(template, number, repr(name), as_written)
    if own.isdisjoint(header):
        shown = ", ".join(repr(cell[:40]) for cell in cells[:10])
        raise invalid(
            "line {0}: contains no known column. It contains {1}. The known columns are {2}.",
            number,
            shown,
            ", ".join(dict.fromkeys(names.values())),
        )
    return header


def raw_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and the bytes of lines, without a byte order mark at the beginning."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise invalid("line {0}: is longer than {1:,} bytes.", number, MAX_LINE_BYTES)
        yield number, raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw


def invalid_utf8(error: UnicodeDecodeError, offset: int) -> Sentence:
    """Return what is wrong with a line, given the number of bytes before the wrong one."""
    return Sentence(
        "is not valid UTF-8: byte 0x{0:02x} (byte {1}).", error.object[error.start], offset + 1
    )
