"""Import and export: CSV files of records, with a dry run before each import (admin 2 and 5)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from flask import Response, request, stream_with_context
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, rights
from app.admin.frame import AdminBlueprint, NavigationItem, current_session, render, see_other
from app.admin.tables import Column, Table
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.auth.principals import Capability as Cap
from app.errors import InvalidParams, ShopError
from app.import_export.csv_format import flattened
from app.import_export.export_kinds import KINDS
from app.import_export.exports import records
from app.import_export.file_reader import Line, csv_lines
from app.import_export.import_kinds import TARGETS, Target
from app.import_export.imports import Counts, FileImport, OnConflict
from app.import_export.snapshot import whole_snapshot
from app.schemas.fields.input import DecimalInput
from app.services.maintenance import uploads
from app.services.maintenance.import_runs import recent_runs

blp = AdminBlueprint("admin_data", __name__)

NAVIGATION = NavigationItem(
    "Import and export", "admin_data.show", "arrows", ("list_coupons",), 600, also=("admin_data",)
)

rights.add_capabilities({
    "bulk_coupons": ("shop_api_user_cannot_create_coupon", (Cap.PUBLISH_SHOP_COUPONS,)),
    "bulk_customers": ("shop_api_user_cannot_create_customer", (Cap.CREATE_USERS,)),
})  # fmt: skip

EXPORTS = ("coupons", "customers", "orders")
IMPORTS = ("coupons", "customers")
CONFLICTS = {
    OnConflict.FAIL.value: "Report the line as an error",
    OnConflict.SKIP.value: "Skip the line",
    OnConflict.UPDATE.value: "Update the existing record",
}
"""What happens to a record that exists, by the value of the option."""

MAX_BYTES = 5 * 1024 * 1024
MAX_LINES = 20_000
PART = 2000
"""Number of records that one request imports."""
MAX_FAILURES = 100
"""Number of lines with errors that the page shows."""


@blp.page("/data", "list_coupons")
def show() -> Response:
    """Show the downloads, the upload and the latest imports."""
    return _page()


def _page(error: str = "") -> Response:
    columns = [
        Column(_("Import"), lambda row: f"{row['id']} {row['source']}"),
        Column(_("Records"), lambda row: row["kind"] or html.NONE),
        Column(_("Created"), lambda row: html.number(row["created"]), is_number=True,
               on_phone=True),
        Column(_("Updated"), lambda row: html.number(row["updated"]), is_number=True),
        Column(_("Finished"), lambda row: html.time(row["finished_at"]), is_number=True,
               on_phone=True),
    ]  # fmt: skip
    rows = [row._asdict() for row in recent_runs(20)] if rights.can("list_events") else []
    return render(
        "data.html", title=_("Import and export"), conflicts=CONFLICTS, error=error,
        exports=[kind for kind in EXPORTS if rights.can(f"list_{kind}")],
        imports=[kind for kind in IMPORTS if rights.can(f"bulk_{kind}")],
        runs=Table(_("Latest imports"), columns, rows), max_lines=MAX_LINES,
        has_errors=bool(error), status=400 if error else 200,
    )  # fmt: skip


@blp.page("/data/<kind>.csv", "list_coupons")
def download(kind: str) -> Response:
    """Download all records of a kind as CSV."""
    if kind not in EXPORTS:
        raise ShopError("shop_api_no_route")
    rights.require(f"list_{kind}")
    response = Response(stream_with_context(_csv(kind)), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{kind}.csv"'
    return response


def _csv(name: str) -> Iterator[bytes]:
    """Yield the lines of an export in one snapshot."""
    kind, text = KINDS[name], io.StringIO()
    columns = kind.csv_columns
    writer = csv.writer(text)
    writer.writerow(columns)
    with whole_snapshot() as snapshot:
        for chunk in records(snapshot, kind):
            writer.writerows(flattened(kind, record, columns) for record in chunk)
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


@blp.action("/data/upload")
def upload() -> Response | BaseResponse:
    """Store an uploaded file and run its import dry: nothing is written."""
    kind, on_conflict = request.form.get("kind", ""), request.form.get("on_conflict", "")
    if kind not in IMPORTS or on_conflict not in CONFLICTS:
        raise InvalidParams({"kind": f"must be any of {', '.join(IMPORTS)}."})
    rights.require(f"bulk_{kind}")
    file = request.files.get("file")
    raw = file.read(MAX_BYTES + 1) if file else b""
    try:
        content, notices = converted(raw)
        size = _size(content, TARGETS[kind])
    except ValueError as error:
        return _page(str(error))
    digest, session_id = hashlib.sha256(raw).hexdigest(), current_session().id
    if uploads.was_imported(session_id, kind, digest):
        notices.append(_("You have already imported this file."))
    counts, failures = _run(kind, on_conflict, content, dry_run=True)
    upload_id = uploads.keep(session_id, {
        "name": (file.filename or "")[:200] if file else "", "kind": kind,
        "on_conflict": on_conflict, "digest": digest, "content": content, "size": size,
        "failures": json.dumps({"notices": notices, "lines": failures}), **counts,
    })  # fmt: skip
    return see_other("admin_data.show_upload", upload_id=upload_id)


def converted(raw: bytes) -> tuple[bytes, list[str]]:
    """Return a CSV file in UTF-8 with commas, and notices about the conversion.

    Raises:
        ValueError: the file is empty, too large, or no text.
    """
    if not raw.strip():
        raise ValueError(_("Choose a CSV file with at least one record."))
    if len(raw) > MAX_BYTES:
        raise ValueError(_("The file is larger than 5 MiB. Use the command shop-api import."))
    notices: list[str] = []
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError:
            raise ValueError(_("The file is neither UTF-8 nor Windows-1252 text.")) from None
        notices.append(_("The file is not UTF-8. It was read as Windows-1252."))
    first = text.lstrip().partition("\n")[0]
    separator = max(",;\t", key=first.count)
    if separator == ",":
        return text.encode(), notices
    out = io.StringIO()
    csv.writer(out).writerows(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    return out.getvalue().encode(), notices


def _size(content: bytes, target: Target) -> int:
    """Return the number of records of a file.

    Raises:
        ValueError: the header is invalid, or there are too many records.
    """
    size = sum(1 for _line in csv_lines(io.BytesIO(content), target.kind.csv_columns))
    if not size:
        raise ValueError(_("Choose a CSV file with at least one record."))
    if size > MAX_LINES:
        text = _("The file has %(size)s records. At most 20,000 can be uploaded.", size=size)
        raise ValueError(text)
    return size


def _strict(lines: Iterable[Line], target: Target) -> Iterator[Line]:
    """Yield lines. Amounts that the API would read in another way are errors."""
    fields = target.create().fields.items()
    amounts = [name for name, field in fields if isinstance(field, DecimalInput)]
    for line in lines:
        wrong = next(
            (name for name in amounts
             if not re.fullmatch(r"|-?[0-9]+(\.[0-9]+)?", str(line.record.get(name, "")).strip())),
            None,
        )  # fmt: skip
        if wrong is None or line.error:
            yield line
        else:
            reason = _("%(name)s: write a number with a point, for example 1000.50.", name=wrong)
            yield Line(line.number, {}, reason)


def _run(
    kind: str, on_conflict: str, content: bytes, *, dry_run: bool = False, start: int = 0
) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Import a part of a file, or all of it dry. Return the counts, and the lines that failed."""
    target, failures = TARGETS[kind], list[tuple[int, str]]()

    def report(number: int, reason: str) -> None:
        failures.append((number, reason))

    def warn(text: str) -> None:
        failures.append((1, text))

    lines = _strict(csv_lines(io.BytesIO(content), target.kind.csv_columns), target)
    part = lines if dry_run else islice(lines, start, start + PART)
    reading = FileImport(
        target, current_principal(), OnConflict(on_conflict), from_csv=True, report=report,
        warn=warn,
    )  # fmt: skip
    counts: Counts = reading.run(part, dry_run=dry_run)
    return {name: getattr(counts, name) for name in uploads.COUNTS}, failures[:MAX_FAILURES]


def _upload_of(upload_id: int) -> Any:
    found = uploads.find(current_session().id, upload_id)
    if found is None:
        raise ShopError("shop_api_no_route")
    rights.require(f"bulk_{found.kind}")
    return found


@blp.page("/data/uploads/<int:upload_id>")
def show_upload(upload_id: int) -> Response:
    """Show the result of the dry run, the progress, or the result of the import."""
    found = _upload_of(upload_id)
    stored = json.loads(found.failures)
    columns = [
        Column(_("Line"), lambda row: html.number(row["number"])),
        Column(_("Error"), lambda row: row["reason"], on_phone=True),
    ]
    rows = [{"number": number, "reason": reason} for number, reason in stored["lines"]]
    return render(
        "upload.html", title=found.name or _("Upload"), upload=found, notices=stored["notices"],
        right=found.created + found.updated, table=Table(_("Lines with errors"), columns, rows),
    )  # fmt: skip


@blp.action("/data/uploads/<int:upload_id>/import")
def import_part(upload_id: int) -> BaseResponse:
    """Import the next part of a file. The page continues until the end."""
    found = _upload_of(upload_id)
    if found.position < found.size:
        counts, failures = _run(found.kind, found.on_conflict, found.content, start=found.position)
        stored = json.loads(found.failures)
        if found.position:
            counts = {name: counts[name] + getattr(found, name) for name in counts}
            failures = [*map(tuple, stored["lines"]), *failures][:MAX_FAILURES]
        changes = {
            **counts,
            "position": (position := min(found.position + PART, found.size)),
            "failures": json.dumps({"notices": [], "lines": failures}),
        }
        if position == found.size:
            changes["content"] = b""  # nothing reads it again
        uploads.note(upload_id, found.position, changes)
    return see_other("admin_data.show_upload", upload_id=upload_id)
