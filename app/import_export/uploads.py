"""Imports of files that were uploaded on the admin pages, in parts that a worker runs (admin 5)."""

import codecs
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import marshmallow as ma
from sqlalchemy.orm import Session

from app.auth.api_keys import principal_with_id
from app.auth.principals import InvalidCredentials, Principal
from app.db.session import run_in_transaction
from app.import_export.file_reader import Line, csv_lines, require_text
from app.import_export.import_kinds import TARGETS, Target, is_trashed
from app.import_export.imports import BATCH, Counts, FileImport, OnConflict
from app.schemas.loading import instance_of
from app.services.maintenance import uploads
from app.services.maintenance.import_runs import record_part

MAX_BYTES = 5 * 1024 * 1024
MAX_LINES = 20_000
PART = BATCH
"""Number of records that a worker imports at a time. It sends webhooks in between."""
MAX_FAILURES = 100
"""Number of lines with errors that are kept."""

_HIDDEN = "YOUR_PASSWORD"
"""What *As a request* shows in place of a password."""

Failures = list[tuple[int, str]]


def converted(raw: bytes) -> tuple[bytes, list[str]]:
    """Return a CSV file that is not Windows-1252 any more, and notices about the conversion.

    Raises:
        ValueError: the file is empty, too large, or no text.
    """
    if not raw.strip():
        raise ValueError("Choose a CSV file with at least one record.")
    if len(raw) > MAX_BYTES:
        raise ValueError("The file is larger than 5 MiB. Use the command shop-api import.")
    require_text(raw)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw, []
    try:
        raw.decode()
    except UnicodeDecodeError:
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError:
            raise ValueError("The file is neither UTF-8 nor Windows-1252 text.") from None
        return text.encode(), ["The file is not UTF-8. It was read as Windows-1252."]
    return raw, []


def size_of(content: bytes, kind: str) -> int:
    """Return the number of records of a converted file.

    Raises:
        ValueError: the header is invalid, or there are no records or too many.
    """
    size = sum(1 for _line in _lines(content, TARGETS[kind]))
    if not size:
        raise ValueError("Choose a CSV file with at least one record.")
    if size > MAX_LINES:
        raise ValueError(f"The file has {size:,} records. At most {MAX_LINES:,} can be uploaded.")
    return size


def dry_run(
    actor: Principal, kind: str, on_conflict: str, content: bytes
) -> tuple[dict[str, int], Failures]:
    """Check a file as an import does. Return the counts, and the first lines that failed."""
    reading, failures = _import(actor, kind, on_conflict)
    counts = reading.run(_lines(content, TARGETS[kind]), dry_run=True)
    return _numbers(counts), failures[:MAX_FAILURES]


def bulk_items(kind: str, on_conflict: str, content: bytes, limit: int) -> list[dict[str, Any]]:
    """Return the first records of a file as the items of a bulk request that does the same.

    Passwords are replaced by a placeholder.
    """
    target, records = TARGETS[kind], dict[str, dict[str, Any]]()
    known = instance_of(target.create).fields
    for line in _lines(content, target):
        if len(records) == limit:
            break
        with suppress(ma.ValidationError, ValueError):
            cells = {} if line.error or is_trashed(line.record) else line.record
            filled = {name: text for name, text in cells.items() if text.strip()}
            record, data = target.read(filled, from_csv=True)
            if key := data.get(target.key):
                given = {name: value for name, value in record.items() if name in known}
                hidden = dict.fromkeys(given.keys() & {"password"}, _HIDDEN)
                records[target.normalized(key)] = given | hidden
    existing = {} if on_conflict == OnConflict.FAIL else target.existing(list(records))
    if on_conflict == OnConflict.SKIP:
        return [record for key, record in records.items() if key not in existing]
    return [
        {"id": existing[key], **record} if key in existing else record
        for key, record in records.items()
    ]


def import_next_part() -> bool:
    """Import the next part of a file that waits for a worker. Return whether there was one.

    The records, their event and the position in the file are one transaction. If the process is
    killed, another worker imports the part after two minutes.
    """
    upload = uploads.claim()
    if upload is None:
        return False
    actor = _actor(upload)
    if actor is None:
        reason = "The key of the session has expired, or lost the right to import."
        _end(upload, reason)
        return True
    reading, warnings = _import(actor, upload.kind, upload.on_conflict)
    lines = islice(_lines(upload.content, reading.target), upload.position, None)
    part = reading.read(islice(lines, PART))
    reading.hash_passwords(part)

    def work(session: Session) -> None:
        if not uploads.is_at(session, upload.id, upload.position):
            return  # another worker has imported the part
        done = reading.write(part)
        counts = _numbers(done.counts)
        if counts["created"] or counts["updated"]:
            record_part(session, upload.kind, counts["created"], counts["updated"])
        position = min(upload.position + PART, upload.size)
        _note(session, upload, position, counts, [*warnings, *sorted(done.failures)])

    run_in_transaction(work)
    return True


def _end(upload: Any, reason: str) -> None:
    """End an import with an error."""
    counts = dict.fromkeys(uploads.COUNTS, 0)

    def work(session: Session) -> None:
        if uploads.is_at(session, upload.id, upload.position):
            _note(session, upload, upload.size, counts, [(1, reason)])

    run_in_transaction(work)


def _note(
    session: Session, upload: Any, position: int, counts: dict[str, int], failures: Failures
) -> None:
    """Store the position in a file, and the counts and failures of a part."""
    if upload.position:
        stored = json.loads(upload.failures)["lines"]
        counts = {name: counts[name] + getattr(upload, name) for name in counts}
        failures = [*map(tuple, stored), *failures]
    changes: dict[str, Any] = {
        **counts,
        "position": position,
        "failures": json.dumps({"notices": [], "lines": failures[:MAX_FAILURES]}),
        "claimed_at": None,
    }
    if position == upload.size:
        changes["content"] = b""  # nothing reads it again
    uploads.note(session, upload.id, changes)


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
    return csv_lines(io.BytesIO(content), target.column_names)


def _import(actor: Principal, kind: str, on_conflict: str) -> tuple[FileImport, Failures]:
    """Return an import of a file, and the list to which it adds warnings and failed lines."""
    failures: Failures = []
    reading = FileImport(
        TARGETS[kind],
        actor,
        OnConflict(on_conflict),
        from_csv=True,
        report=lambda number, reason: failures.append((number, reason)),
        warn=lambda text: failures.append((1, text)),
    )
    return reading, failures


def _numbers(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in uploads.COUNTS}
