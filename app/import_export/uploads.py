"""Imports of files that were uploaded on the admin pages, in parts that a worker runs (admin 5)."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import marshmallow as ma

from app.auth.api_keys import principal_with_id
from app.auth.principals import InvalidCredentials, Principal
from app.import_export.file_reader import Line, csv_lines
from app.import_export.import_kinds import TARGETS, Target, is_trashed
from app.import_export.imports import Counts, FileImport, OnConflict
from app.schemas.fields.input import DecimalInput
from app.schemas.loading import instance_of
from app.services.maintenance import uploads

MAX_BYTES = 5 * 1024 * 1024
MAX_LINES = 20_000
PART = 1000
"""Number of records that a worker imports at a time. It sends webhooks in between."""
MAX_FAILURES = 100
"""Number of lines with errors that are kept."""

Failures = list[tuple[int, str]]


def converted(raw: bytes) -> tuple[bytes, list[str]]:
    """Return a CSV file in UTF-8 with commas, and notices about the conversion.

    Raises:
        ValueError: the file is empty, too large, or no text.
    """
    if not raw.strip():
        raise ValueError("Choose a CSV file with at least one record.")
    if len(raw) > MAX_BYTES:
        raise ValueError("The file is larger than 5 MiB. Use the command shop-api import.")
    notices: list[str] = []
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError:
            raise ValueError("The file is neither UTF-8 nor Windows-1252 text.") from None
        notices.append("The file is not UTF-8. It was read as Windows-1252.")
    separator = max(",;\t", key=text.lstrip().partition("\n")[0].count)
    if separator == ",":
        return text.encode(), notices
    out = io.StringIO()
    csv.writer(out).writerows(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    return out.getvalue().encode(), notices


def size_of(content: bytes, kind: str) -> int:
    """Return the number of records of a converted file.

    Raises:
        ValueError: the header is invalid, or there are no records or too many.
    """
    size = sum(1 for _line in csv_lines(io.BytesIO(content), TARGETS[kind].kind.csv_columns))
    if not size:
        raise ValueError("Choose a CSV file with at least one record.")
    if size > MAX_LINES:
        raise ValueError(f"The file has {size:,} records. At most {MAX_LINES:,} can be uploaded.")
    return size


def dry_run(
    actor: Principal, kind: str, on_conflict: str, content: bytes
) -> tuple[dict[str, int], Failures]:
    """Import a file and roll it back. Return the counts, and the first lines that failed."""
    return _run(actor, kind, on_conflict, _lines(content, TARGETS[kind]), is_dry=True)


def bulk_items(kind: str, on_conflict: str, content: bytes, limit: int) -> list[dict[str, Any]]:
    """Return the first records of a file as the items of a bulk request that does the same."""
    target, records = TARGETS[kind], dict[str, dict[str, Any]]()
    known = instance_of(target.create).fields
    for line in _lines(content, target):
        if len(records) == limit:
            break
        with suppress(ma.ValidationError, ValueError):
            cells = {} if line.error or is_trashed(line.record) else line.record
            filled = {name: text for name, text in cells.items() if text != ""}
            record, data = target.read(filled, from_csv=True)
            if key := data.get(target.key):
                given = {name: value for name, value in record.items() if name in known}
                records[target.normalized(key)] = given
    existing = {} if on_conflict == OnConflict.FAIL else target.existing(list(records))
    if on_conflict == OnConflict.SKIP:
        return [record for key, record in records.items() if key not in existing]
    return [
        {"id": existing[key], **record} if key in existing else record
        for key, record in records.items()
    ]


def import_next_part() -> bool:
    """Import the next part of a file that waits for a worker. Return whether there was one.

    If the process is killed, another worker imports the part again after a minute. Records that
    exist by then are treated as the upload says.
    """
    upload = uploads.claim()
    if upload is None:
        return False
    stored = json.loads(upload.failures)
    position, failures = upload.size, list[tuple[int, str]]()
    counts = dict.fromkeys(uploads.COUNTS, 0)
    actor = _actor(upload)
    if actor is None:
        failures = [(1, "The key of the session has expired, or lost the right to import.")]
    else:
        lines = islice(_lines(upload.content, TARGETS[upload.kind]), upload.position, None)
        part = islice(lines, PART)
        position = min(upload.position + PART, upload.size)
        counts, failures = _run(actor, upload.kind, upload.on_conflict, part)
    if upload.position:
        counts = {name: counts[name] + getattr(upload, name) for name in counts}
        failures = [*map(tuple, stored["lines"]), *failures][:MAX_FAILURES]
    changes = {
        **counts,
        "position": position,
        "failures": json.dumps({"notices": [], "lines": failures}),
        "claimed_at": None,
    }
    if position == upload.size:
        changes["content"] = b""  # nothing reads it again
    uploads.note(upload.id, upload.position, changes)
    return True


def _actor(upload: Any) -> Principal | None:
    """Return the principal of the session, or None if its key may not import any more."""
    try:
        principal = principal_with_id(upload.key_id)
    except InvalidCredentials:
        return None
    has_resource = principal.resources is None or upload.kind in principal.resources
    if not has_resource or not principal.permission.allows("POST"):
        return None
    return replace(principal, session_id=upload.session_id)


def _lines(content: bytes, target: Target) -> Iterator[Line]:
    """Yield the lines of a file. Amounts that the API would read in another way are errors."""
    fields = target.create().fields.items()
    amounts = [name for name, field in fields if isinstance(field, DecimalInput)]
    for line in csv_lines(io.BytesIO(content), target.kind.csv_columns):
        wrong = [
            name
            for name in amounts
            if not re.fullmatch(r"|-?[0-9]+(\.[0-9]+)?", str(line.record.get(name, "")).strip())
        ]
        if wrong and not line.error:
            reason = f"{wrong[0]}: write a number with a point, for example 1000.50."
            yield Line(line.number, {}, reason)
        else:
            yield line


def _run(
    actor: Principal, kind: str, on_conflict: str, lines: Iterable[Line], *, is_dry: bool = False
) -> tuple[dict[str, int], Failures]:
    """Import lines. Return the counts, and the first lines that failed."""
    failures: Failures = []
    reading = FileImport(
        TARGETS[kind], actor, OnConflict(on_conflict), from_csv=True,
        report=lambda number, reason: failures.append((number, reason)),
        warn=lambda text: failures.append((1, text)),
    )  # fmt: skip
    counts: Counts = reading.run(lines, dry_run=is_dry)
    return {name: getattr(counts, name) for name in uploads.COUNTS}, failures[:MAX_FAILURES]
