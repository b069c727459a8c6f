"""Files of imports: checked, split into parts, and imported part by part (people 7)."""

import codecs
import csv
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.auth.api_keys import principal_with_id, require_permission, require_resources
from app.auth.principals import InvalidCredentials, Principal
from app.db.records import Record
from app.db.session import run_in_transaction
from app.errors import Sentence, ShopError, invalid, reason_of
from app.import_export.file_reader import (
    Line,
    csv_lines,
    invalid_utf8,
    ndjson_line,
    raw_lines,
    require_text,
    separator_of,
)
from app.import_export.import_kinds import TARGETS, Target
from app.import_export.imports import BATCH, BatchOutcome, FileImport, OnConflict
from app.services.imports.runs import (
    SupersededError,
    claim_import,
    fail_import,
    finish_part,
    require_import,
)

MAX_RECORDS = 1_000_000
MAX_LINE_BYTES = 1024 * 1024
"""Maximum size of a line. A longer one is an error of the line."""

FORMATS = {"text/csv": "csv", "application/x-ndjson": "ndjson"}
"""The formats of files by their media types."""

LOST_RIGHTS = "The key that started the import has lost its rights."
"""Why an import has failed. What is missing follows."""

ANY = "application/octet-stream"
"""The media type of files that generated clients send."""


def format_of(content: bytes) -> str:
    """Return the format of a file, which its media type does not say."""
    is_object = content[:1000].removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    return "ndjson" if is_object else "csv"


_TOO_LONG = Sentence("is longer than {0:,} bytes.", MAX_LINE_BYTES)
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ELSEWHERE = Sentence(
    "import the file with shop-api or on the page Import, which read what spreadsheets save"
)
_COMPRESSION = 1  # the fastest

REPLACEMENT = "\ufffd"
"""What errors show in place of a character that cannot be stored."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A checked file: its parts by the number of records before them, and all records."""

    parts: Mapping[int, bytes]
    size: int


def stored_file(content: bytes, kind: str, file_format: str) -> StoredFile:
    """Check a file and split it into parts.

    Args:
        file_format: csv or ndjson.

    Raises:
        ShopError: the file is not UTF-8, has an invalid header, no record or too many.
    """
    try:
        lines = _stored_lines(content, TARGETS[kind], file_format)
        parts, size, part = dict[int, bytes](), 0, list[bytes]()
        for line in lines:
            part.append(line)
            if len(part) == BATCH:
                parts[size], part = _joined(part), []
                size += BATCH
                if size > MAX_RECORDS:
                    break
        if part:
            parts[size] = _joined(part)
            size += len(part)
    except ValueError as error:
        reason = Sentence("The file cannot be imported: {0}", reason_of(error))
        raise ShopError("shop_api_invalid_import", reason=reason) from None
    if not size:
        reason = Sentence("The file cannot be imported: {0}", "line 1: it contains no records.")
        raise ShopError("shop_api_invalid_import", reason=reason)
    if size > MAX_RECORDS:
        message = "The file has more than {limit:,} records."
        raise ShopError("shop_api_request_entity_too_large", message=message, limit=MAX_RECORDS)
    return StoredFile(parts, size)


def converted(raw: bytes, kind: str) -> bytes:
    """Return a CSV file of a spreadsheet in UTF-8 and with commas, with the same line numbers.

    Raises:
        ValueError: it is not text, or not valid CSV.
    """
    require_text(raw)
    try:
        text = _decoded(raw)
    except UnicodeDecodeError:
        raise ValueError("The file is neither UTF-8 nor Windows-1252 text.") from None
    lines = io.StringIO(text, newline="")
    first, separator = separator_of(lines, TARGETS[kind].column_names)
    if separator == "," and first == 1:
        return text.encode()
    lines.seek(0)
    skipped = [lines.readline() for _ in range(first - 1)]
    made = io.StringIO(newline="")
    made.write("\r\n" * len(skipped))
    rows, writer = csv.reader(lines, delimiter=separator, strict=True), csv.writer(made)
    try:
        writer.writerows(rows)
    except csv.Error as error:
        number = first - 1 + rows.line_num
        raise invalid("line {0}: is not valid CSV: {1}.", number, str(error)) from None
    return made.getvalue().encode()


def import_next_part() -> bool:
    """Import the next part of a file that waits for a worker. Return whether there was one.

    The records, their numbers and errors are one transaction with the position in the file. If the
    process is killed, another worker imports the part after two minutes.
    """
    run = claim_import()
    if run is None:
        return False
    try:
        actor = _actor(run)
    except (ShopError, InvalidCredentials) as error:
        fail_import(run, f"{LOST_RIGHTS} {error}")
        return True
    if run.content is None:
        fail_import(run, "The file of the import was deleted.")
        return True
    is_csv = run.format == "csv"
    reading = FileImport(
        TARGETS[run.kind], actor, OnConflict(run.on_conflict), from_csv=is_csv, strict=True
    )
    part = reading.read(_loaded(run.content))
    done = reading.check(part, set()) if run.dry_run else None
    if done is None:
        reading.hash_passwords(part)

    def work(session: Session) -> None:
        outcome = done or reading.write(part)
        finish_part(session, actor, run, vars(outcome.counts), list(_errors(outcome)))

    with suppress(SupersededError):  # nothing was written
        run_in_transaction(work)
    return True


def _actor(run: Any) -> Principal:
    """Return the principal of the key that started an import, or raise the error of its rights."""
    principal = principal_with_id(run.key_id)
    require_permission(principal, "POST")
    require_resources(principal, "imports")
    require_import(principal, run.kind)
    return principal


def _errors(outcome: BatchOutcome) -> Iterator[dict[str, object]]:
    for number, error in outcome.sorted_failures:
        # A name in the file can have NUL characters, which PostgreSQL does not store.
        message, param = str(error), error.parts[0].param
        yield {
            "line": number,
            "code": error.code,
            "message": message.replace("\0", REPLACEMENT),
            "sentence": orjson.dumps(error.sentence(), Sentence.plain).decode(),
            "param": param and param.replace("\0", REPLACEMENT),
        }


def is_unicode(raw: bytes) -> bool:
    """Return whether a file is UTF-8 or begins as UTF-16 does."""
    try:
        return raw.startswith(_UTF16_MARKS) or bool(raw.decode())
    except UnicodeDecodeError:
        return False


def _decoded(raw: bytes) -> str:
    if raw.startswith(_UTF16_MARKS):
        return raw.decode("utf-16")
    return raw.decode("utf-8-sig" if is_unicode(raw) else "cp1252")


def _stored_lines(content: bytes, target: Target, file_format: str) -> Iterator[bytes]:
    """Yield the number, the record and the error of each line as JSON.

    A line of NDJSON is read when it is imported. The record of a line with an error is the sentence
    of the error.

    Raises:
        ValueError: of the file as a whole.
    """
    require_text(content)
    if content.startswith(_UTF16_MARKS):
        raise invalid(
            "line 1: is not valid UTF-8, but UTF-16. Save it as UTF-8, or {0}.", _ELSEWHERE
        )
    try:
        content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start]
        number, begins = before.count(b"\n") + 1, before.rfind(b"\n") + 1
        reason = invalid_utf8(error, error.start - begins)
        raise invalid("line {0}: {1}", number, reason) from None
    file = io.BytesIO(content)
    if file_format == "csv":
        _require_commas(content, target)
        for line in csv_lines(file, target.column_names, separators=",", known=target.columns):
            yield _bounded(line.number, line.record, line.error)
    else:
        for number, raw in raw_lines(file):
            if text := raw.strip():
                yield _bounded(number, text.decode(), None)


def _require_commas(content: bytes, target: Target) -> None:
    """Raise ValueError if the known columns are separated by something else (people 9, 52)."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    number, separator = separator_of(lines, target.column_names)
    if separator != ",":
        template = "line {0}: contains no known column. The separator must be a comma, or {1}."
        raise invalid(template, number, _ELSEWHERE)


def _bounded(number: int, record: Record | str, error: str | Sentence | None) -> bytes:
    line = _stored(number, record, error)
    if len(line) > MAX_LINE_BYTES and _length(record) > MAX_LINE_BYTES:
        return _stored(number, {}, _TOO_LONG)
    return line


def _stored(number: int, record: Record | str, error: str | Sentence | None) -> bytes:
    # Workers of the previous version, which can still run, show the third value as it is.
    of_error = error if isinstance(error, Sentence) else record
    return orjson.dumps((number, of_error, error and str(error)), Sentence.plain)


def _length(record: Record | str) -> int:
    """Return the size of a line without its line end, at least that of its cells."""
    if isinstance(record, str):
        return len(record.encode())
    return sum(len(cell.encode()) + 1 for cell in record.values()) - 1


def _joined(lines: Sequence[bytes]) -> bytes:
    return zlib.compress(b"[" + b",".join(lines) + b"]", _COMPRESSION)


def _loaded(content: bytes) -> Iterator[Line]:
    """Yield the lines of a part."""
    for number, record, error in orjson.loads(zlib.decompress(content)):
        if isinstance(record, str):
            yield ndjson_line(number, record.encode())
        elif error:
            yield Line(number, {}, Sentence.of(record) if record else error)
        else:
            yield Line(number, record)
