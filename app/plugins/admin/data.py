"""Import and export: CSV files of records, and the imports of the API (admin 2 and 5)."""

import re
from collections.abc import Iterator
from datetime import timedelta

import orjson
from flask import Response, current_app, request, url_for
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.api.csv_responses import csv_response
from app.errors import InvalidParams, Sentence, ShopError, reason_of
from app.import_export.csv_format import flattened
from app.import_export.export_kinds import KINDS, Kind
from app.import_export.exports import records, whole_snapshot
from app.import_export.imports import OnConflict
from app.import_export.stored_files import MAX_RECORDS, converted, is_unicode
from app.models import IMPORT_ERRORS
from app.plugins.admin import html, texts
from app.plugins.admin.calls import api_request, call, can, form_headers, require
from app.plugins.admin.frame import AdminBlueprint, render, see_other
from app.plugins.admin.reports import from_replica
from app.plugins.admin.tables import Table
from app.plugins.admin.texts import gettext as _
from app.services.imports.queries import ImportQuery, is_late, list_errors

blp = AdminBlueprint("admin_data", "Import and export", "arrows", 600)

PATIENCE = timedelta(minutes=1)
"""How long no worker takes an import before the page says that none seems to run."""

SHOWN_IMPORTS, SHOWN_ERRORS = 20, 100
FORM_BYTES = 1024 * 1024
"""The size of a form beside its file."""

EXPORTS = ("coupons", "customers", "orders")
IMPORTS = ("coupons", "customers")
CONFLICTS = {
    OnConflict.FAIL.value: "Report the line as an error",
    OnConflict.SKIP.value: "Skip the line",
    OnConflict.UPDATE.value: "Update the existing record",
}
"""What happens to a record that exists, by the value of the option."""

STATES = {
    "waiting": "Waiting",
    "running": "Running",
    "ready": "Ready",
    "finished": "Finished",
    "cancelled": "Cancelled",
    "failed": "Failed",
}


@blp.page("/data", tuple(f"list_{kind}" for kind in EXPORTS))
def show() -> Response:
    """Show the downloads, the form of a new import and the latest imports."""
    return _page()


def _page(error: str = "") -> Response:
    reads = can("list_imports")
    rows = call("list_imports", query={"limit": SHOWN_IMPORTS}).content if reads else ()
    return render(
        "data.html",
        title=_("Import and export"),
        conflicts=CONFLICTS,
        error=error,
        exports=[kind for kind in EXPORTS if can(f"list_{kind}")],
        imports=_importable(),
        max_lines=MAX_RECORDS,
        max_bytes=current_app.config["SHOP_IMPORT_MAX_BYTES"] // 1024**2,
        runs=Table(_("Latest imports"), rows),
        states=STATES,
        has_errors=bool(error),
        status=400 if error else 200,
    )


def _importable() -> list[str]:
    return [kind for kind in IMPORTS if can("create_import", f"bulk_{kind}")]


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
    """Send a file to the API for a dry run. The page shows what an import would do."""
    limit = current_app.config["SHOP_IMPORT_MAX_BYTES"]
    # A file of the largest size, and one that is larger, whose error stands beside its field.
    request.max_content_length = limit + FORM_BYTES
    kind, on_conflict = request.form.get("kind", ""), request.form.get("on_conflict", "")
    if kind not in IMPORTS or on_conflict not in CONFLICTS:
        raise InvalidParams({"kind": Sentence("must be one of {0}.", ", ".join(IMPORTS))})
    file = request.files.get("file")
    raw = file.read(limit + 1) if file else b""
    if not raw.strip():
        return _page(_("Choose a CSV file with at least one record."))
    name = (file.filename or "")[:200].strip() if file else ""
    query = {"kind": kind, "on_conflict": on_conflict, "dry_run": "true", "name": name}
    try:
        sent = call("create_import", query=query, body=converted(raw, kind), headers=form_headers())
    except RequestEntityTooLarge:
        return _page(_("The file is larger than %(limit)s bytes.", limit=html.number(limit)))
    except ValueError as error:
        return _page(texts.of_api(reason_of(error)))
    except ShopError as error:
        if error.code not in _OF_FILE:
            raise
        return _page(texts.of_api(error.sentence()))
    shown = {"show": "request"} if "_show" in request.form else {}
    notice = {} if is_unicode(raw) else {"done": "windows"}
    return see_other("admin_data.show_import", import_id=sent.content["id"], **shown, **notice)


_OF_FILE = {
    "shop_api_invalid_import",
    "shop_api_invalid_import_status",
    "shop_api_request_entity_too_large",
}
"""The errors of a file, which stand beside its field."""


_SENTENCE_END = re.compile(r"(?<=\.) ")
"""What separates the sentences of a reason, which is stored as one text."""


@blp.page("/data/imports/<id:import_id>", ("list_imports",))
def show_import(import_id: int) -> Response:
    """Show the progress, the numbers and the lines that failed of an import."""
    found = call("get_import", import_id=import_id).content
    columns = IMPORT_ERRORS.c.line, IMPORT_ERRORS.c["message"], IMPORT_ERRORS.c.sentence
    query = ImportQuery(limit=SHOWN_ERRORS)
    require("list_import_errors")
    found_errors = list_errors(current_principal(), import_id, query, columns).rows
    errors = [
        {"line": line, "error": texts.of_api(Sentence.of(orjson.loads(stored)) if stored else text)}
        for line, text, stored, *_more in found_errors
    ]
    status = found["status"]
    sent = None
    if found["user_id"] is not None:
        given = {name: found[name] for name in ("kind", "on_conflict", "name")}
        sent = api_request("create_import", query=given, file=found["name"] or "file.csv")
    return render(
        "import.html",
        back=(url_for("admin_data.show"), _("Import and export")),
        title=found["name"] or _("Import %(id)s", id=import_id),
        found=found,
        state=STATES[status],
        reason=" ".join(map(texts.of_api, _SENTENCE_END.split(found["reason"] or ""))),
        right=found["created"] + found["updated"],
        table=Table(_("Lines with errors"), errors),
        sent=sent,
        opens="show" in request.args,
        is_running=status in {"waiting", "running"},
        can_change=found["kind"] in _importable() and found["user_id"] is not None,
        refresh=2 if status in {"waiting", "running"} and found["user_id"] is not None else None,
        waits=status == "waiting" and is_late(import_id, PATIENCE),
    )


@blp.action("/data/imports/<id:import_id>/start", ("start_import",))
def start(import_id: int) -> BaseResponse:
    """Start an import. The page shows the progress."""
    call("start_import", import_id=import_id, headers=form_headers())
    return see_other("admin_data.show_import", import_id=import_id)


@blp.action("/data/imports/<id:import_id>/cancel", ("cancel_import",))
def cancel(import_id: int) -> BaseResponse:
    """Cancel an import."""
    call("cancel_import", import_id=import_id, headers=form_headers())
    return see_other("admin_data.show_import", import_id=import_id)
