"""Import and export: CSV files of records, with a dry run before each import (admin 2 and 5)."""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from flask import Response, current_app, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.api.csv_responses import csv_response
from app.db.session import now
from app.errors import InvalidParams, ShopError
from app.import_export.csv_format import flattened
from app.import_export.export_kinds import KINDS, Kind
from app.import_export.exports import records
from app.import_export.imports import OnConflict
from app.import_export.snapshot import whole_snapshot
from app.import_export.uploads import (
    MAX_BYTES,
    MAX_LINES,
    bulk_items,
    converted,
    dry_run,
    size_of,
)
from app.plugins.admin import html
from app.plugins.admin.calls import api_request, can, require
from app.plugins.admin.frame import (
    AdminBlueprint,
    NavigationItem,
    current_session,
    render,
    see_other,
)
from app.plugins.admin.reports import from_replica
from app.plugins.admin.tables import Column, Row, Table
from app.plugins.admin.texts import gettext as _
from app.services.maintenance import uploads
from app.services.maintenance.import_runs import recent_runs

blp = AdminBlueprint("admin_data")

NAVIGATION = NavigationItem("Import and export", "admin_data.show", "arrows", 600)

PATIENCE = timedelta(minutes=1)
"""How long no worker takes an import before the page says that none seems to run."""

MAX_BODY_BYTES = MAX_BYTES + 1024 * 1024
"""The size of a request with a file, for which the limit of a request to the API is too small."""

EXPORTS = ("coupons", "customers", "orders")
IMPORTS = ("coupons", "customers")
CONFLICTS = {
    OnConflict.FAIL.value: "Report the line as an error",
    OnConflict.SKIP.value: "Skip the line",
    OnConflict.UPDATE.value: "Update the existing record",
}
"""What happens to a record that exists, by the value of the option."""


@blp.page("/data", tuple(f"list_{kind}" for kind in EXPORTS))
def show() -> Response:
    """Show the downloads, the upload and the latest imports."""
    return _page()


def _page(error: str = "") -> Response:
    columns = [
        Column(_("Import"), lambda row: _("Import %(id)s", id=row["id"])),
        Column(_("Source"), lambda row: html.words(row["source"])),
        Column(_("Records"), lambda row: html.words(row["kind"])),
        Column.of(_("Created"), "created", on_phone=True),
        Column.of(_("Updated"), "updated"),
        Column.of(_("Finished"), "finished_at", html.time, on_phone=True),
    ]
    # The numbers of an import of several kinds are in its event only.
    rows = [
        row._asdict() | ({} if row.kind else dict.fromkeys(("created", "updated")))
        for row in (recent_runs(20) if can("list_events") else ())
    ]
    files = [
        Column(_("File"), _file),
        Column(_("Records"), lambda row: html.words(row["kind"])),
        Column.of(_("Created"), "created"),
        Column.of(_("Updated"), "updated"),
        Column.of(_("Errors"), "failed", on_phone=True),
        Column(_("State"), _state, on_phone=True),
    ]
    # Until a worker begins, the numbers are those of the dry run.
    started = [
        row._asdict() | ({} if row.position else dict.fromkeys(uploads.COUNTS))
        for row in uploads.started(current_session().id)
    ]
    return render(
        "data.html",
        title=_("Import and export"),
        conflicts=CONFLICTS,
        error=error,
        exports=[kind for kind in EXPORTS if can(f"list_{kind}")],
        imports=[kind for kind in IMPORTS if can(f"bulk_{kind}")],
        runs=Table(_("Latest imports"), columns, rows),
        max_lines=MAX_LINES,
        files=Table(_("Your files"), files, started),
        has_errors=bool(error),
        status=400 if error else 200,
    )


def _file(row: Row) -> Markup:
    """Return the link to the result of a file, with the lines that failed."""
    address = url_for("admin_data.show_upload", upload_id=row["id"])
    return html.link(address, row["name"] or _("Upload"))


def _state(row: Row) -> str:
    if row["position"] == row["size"]:
        return _("Finished")
    done, size = html.number(row["position"]), html.number(row["size"])
    return _("%(done)s of %(size)s lines", done=done, size=size)


@blp.page("/data/<kind>.csv")
def download(kind: str) -> Response:
    """Download all records of a kind as CSV."""
    if kind not in EXPORTS:
        raise ShopError("shop_api_no_route")
    require(f"list_{kind}")
    columns = KINDS[kind].csv_columns
    # The response reads the first rows at once, and all others from the same source.
    return from_replica(lambda: csv_response(kind, columns, _rows(KINDS[kind]), mark=True))


def _rows(kind: Kind) -> Iterator[Iterator[list[str]]]:
    """Yield the cells of all records of a kind, in one snapshot."""
    with whole_snapshot() as snapshot:
        for chunk in records(snapshot, kind):
            yield (flattened(kind, record, kind.csv_columns) for record in chunk)


@blp.action("/data/upload", tuple(f"bulk_{kind}" for kind in IMPORTS))
def upload() -> Response | BaseResponse:
    """Check an uploaded file without writing its records, and store it for the import."""
    # A file of the largest size, and one that is larger, whose error stands beside its field.
    request.max_content_length = max(request.max_content_length or 0, MAX_BODY_BYTES)
    kind, on_conflict = request.form.get("kind", ""), request.form.get("on_conflict", "")
    if kind not in IMPORTS or on_conflict not in CONFLICTS:
        raise InvalidParams({"kind": f"must be any of {', '.join(IMPORTS)}."})
    require(f"bulk_{kind}")
    file = request.files.get("file")
    raw = file.read(MAX_BYTES + 1) if file else b""
    try:
        content, notices = converted(raw)
        size = size_of(content, kind)
    except ValueError as error:
        return _page(_(str(error)))
    digest, session_id = hashlib.sha256(raw).hexdigest(), current_session().id
    if uploads.was_imported(session_id, kind, digest):
        notices.append(_("You have already imported this file."))
    counts, failures = dry_run(current_principal(), kind, on_conflict, content)
    try:
        upload_id = uploads.keep(
            session_id,
            {
                "name": (file.filename or "")[:200] if file else "",
                "kind": kind,
                "on_conflict": on_conflict,
                "digest": digest,
                "content": content,
                "size": size,
                "failures": json.dumps({"notices": notices, "lines": failures}),
                **counts,
            },
        )
    except ValueError as error:
        return _page(_(str(error)))
    shown = {"show": "request"} if "_show" in request.form else {}
    return see_other("admin_data.show_upload", upload_id=upload_id, **shown)


_CODE = re.compile("^shop_api_[a-z_]+: ")


def _upload_of(upload_id: int) -> Any:
    found = uploads.find(current_session().id, upload_id)
    if found is None:
        raise ShopError("shop_api_no_route")
    require(f"bulk_{found.kind}")
    return found


@blp.page("/data/uploads/<id:upload_id>")
def show_upload(upload_id: int) -> Response:
    """Show the result of the dry run, the progress, or the result of the import."""
    found = _upload_of(upload_id)
    stored = json.loads(found.failures)
    is_running = found.queued_at is not None and found.position < found.size
    columns = [
        Column(_("Line"), lambda row: _("Line %(number)s", number=html.number(row["number"]))),
        Column(_("Error"), lambda row: _CODE.sub("", row["reason"]), on_phone=True),
    ]
    rows = [{"number": number, "reason": reason} for number, reason in stored["lines"]]
    sent = None
    if found.queued_at is None:
        limit = current_app.config["SHOP_BULK_LIMIT"]
        items = bulk_items(found.kind, found.on_conflict, found.content, limit)
        sent = api_request(f"bulk_{found.kind}", body={found.kind: items})
    return render(
        "upload.html",
        back=(url_for("admin_data.show"), _("Import and export")),
        title=found.name or _("Upload"),
        upload=found,
        notices=stored["notices"],
        right=found.created + found.updated,
        table=Table(_("Lines with errors"), columns, rows),
        sent=sent,
        opens="show" in request.args,
        is_running=is_running,
        refresh=2 if is_running else None,
        waits=is_running
        and not (found.position or found.claimed_at)
        and now() - found.queued_at > PATIENCE,
    )


@blp.action("/data/uploads/<id:upload_id>/import")
def start_import(upload_id: int) -> BaseResponse:
    """Let a worker import a file. The page shows the progress."""
    _upload_of(upload_id)
    uploads.enqueue(upload_id)
    return see_other("admin_data.show_upload", upload_id=upload_id)
