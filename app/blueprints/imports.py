"""Imports of files: sent, read, started and cancelled, natively only (people 7)."""

from collections.abc import Callable
from functools import wraps

from flask import Response, current_app, request

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.idempotency import idempotent, idempotent_with_query
from app.api.openapi.document import LINK_HEADER, PAGE_HEADERS
from app.api.representations import IMPORT, IMPORT_ERROR
from app.api.request_parser import body_of
from app.api.responses import json_response, next_link, page_response
from app.db.records import Record
from app.errors import ShopError
from app.import_export.stored_files import ANY, FORMATS, StoredFile, format_of, stored_file
from app.schemas import imports as schemas
from app.schemas.examples import imports as examples
from app.schemas.queries import ReadQuery
from app.services.imports import queries as import_queries
from app.services.imports import runs as imports
from app.services.imports.queries import ImportQuery

View = Callable[..., Response]

blp = Blueprint(
    "imports",
    __name__,
    url_prefix="/imports",
    description="Import files with coupons or customers.",
    always_strict=True,
    extends_orders=True,
)
init_app = blp.init_app

_WRITES = tuple(code for codes in imports.WRITES.values() for code in codes)
_READS = tuple(import_queries.READS.values())


def _receiving_file(view: View) -> View:
    """Check the right to import, then the body, and pass the checked file to a view.

    The file is read before the transaction that stores it.
    """

    @wraps(view)
    def wrapper(query: Query) -> Response:
        imports.require_import(current_principal(), query["kind"])
        if request.mimetype not in {ANY, *FORMATS}:
            raise ShopError(
                "shop_api_unsupported_media_type",
                param="Content-Type",
                message="The {param} must be {formats}.",
                formats=" or ".join(FORMATS),
            )
        request.max_content_length = current_app.config["SHOP_IMPORT_MAX_BYTES"]
        body = body_of(request)
        file_format = FORMATS.get(request.mimetype) or format_of(body)
        file = stored_file(body, query["kind"], file_format)
        return view(query, file, file_format)

    return wrapper


@blp.route("")
@blp.rights(*_READS)
@blp.errors("shop_api_user_cannot_import")
@blp.arguments(schemas.ImportListQuery, location="query")
@blp.response(200, schemas.ImportList, headers=PAGE_HEADERS, example={"imports": [examples.IMPORT]})
def list_imports(query: Query) -> Response:
    """List imports.

    Returns the imports of the kinds that the caller can list, newest first, also those of commands.
    They are kept for `SHOP_EVENTS_DAYS`.
    """
    serializer = IMPORT.only(query["selection"])
    page = import_queries.list_imports(
        current_principal(), ImportQuery.of(query), serializer.columns
    )
    return page_response("imports", serializer.rows, page)


@blp.route("", methods=["POST"])
@blp.rights(*_WRITES)
@blp.errors(
    "shop_api_user_cannot_import",
    "shop_api_unsupported_media_type",
    "shop_api_request_entity_too_large",
    "shop_api_invalid_import",
    "shop_api_invalid_import_status",
)
@blp.accepts_file(ANY)
@blp.arguments(schemas.ImportCreateQuery, location="query")
@_receiving_file
@idempotent_with_query
@blp.response(201, schemas.ImportResponse, example={"import": examples.IMPORT})
def create_import(query: Query, file: StoredFile, file_format: str) -> Response:
    """Import a file.

    The body is a file of up to `SHOP_IMPORT_MAX_BYTES` and 1,000,000 records, in the format of an
    export: CSV with commas (`text/csv`), or NDJSON (`application/x-ndjson`), in UTF-8. As
    `application/octet-stream`, a file that begins with a brace is NDJSON. An unknown column or a
    column `password` rejects the file. A worker then imports it, with the rules and rights of bulk
    requests. A line that fails does not affect the others.
    """
    given = imports.NewImport(
        query["kind"],
        query["name"] or "",
        file_format,
        query["on_conflict"],
        dry_run=query["dry_run"] == "true",
    )
    created = imports.create_import(current_principal(), given, file.parts, file.size)
    return _import(created, 201)


@blp.route("/<id:import_id>")
@blp.rights(*_READS)
@blp.errors("shop_api_invalid_import_id", "shop_api_user_cannot_import")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.ImportResponse, example={"import": examples.IMPORT})
def get_import(query: Query, import_id: int) -> Response:
    """Retrieve an import.

    Returns the import with its progress.
    """
    serializer = IMPORT.only(query["selection"])
    row = import_queries.get_import(current_principal(), import_id, serializer.columns)
    return json_response({"import": serializer.row(row)})


@blp.route("/<id:import_id>/errors")
@blp.rights(*_READS)
@blp.errors("shop_api_invalid_import_id", "shop_api_user_cannot_import")
@blp.arguments(schemas.ImportErrorsQuery, location="query")
@blp.response(
    200,
    schemas.ImportErrorList,
    headers=LINK_HEADER,
    example={"import_errors": [examples.IMPORT_ERROR]},
)
def list_import_errors(query: Query, import_id: int) -> Response:
    """List the errors of an import.

    Returns the lines that failed, the first 10,000 of them, in their order.
    """
    serializer = IMPORT_ERROR.only(query["selection"])
    page = import_queries.list_errors(
        current_principal(), import_id, ImportQuery.of(query), serializer.columns
    )
    links = next_link("filter[after]", page.rows[-1][-1]) if page.has_more else {}
    return json_response({"import_errors": serializer.rows(page.rows)}, headers=links)


@blp.route("/<id:import_id>/start", methods=["POST"])
@blp.rights(*_WRITES)
@blp.errors(
    "shop_api_invalid_import_id", "shop_api_user_cannot_import", "shop_api_invalid_import_status"
)
@idempotent
@blp.response(200, schemas.ImportResponse, example={"import": examples.IMPORT})
def start_import(import_id: int) -> Response:
    """Start an import.

    Imports the file after its dry run. After a cancel or a failure, the import continues where it
    stopped. Only the user who has created it can start it. The file is kept for an hour.
    """
    return _import(imports.start_import(current_principal(), import_id))


@blp.route("/<id:import_id>/cancel", methods=["POST"])
@blp.rights(*_WRITES)
@blp.errors(
    "shop_api_invalid_import_id", "shop_api_user_cannot_import", "shop_api_invalid_import_status"
)
@idempotent
@blp.response(200, schemas.ImportResponse, example={"import": examples.CANCELLED})
def cancel_import(import_id: int) -> Response:
    """Cancel an import.

    What it has written stays.
    """
    return _import(imports.cancel_import(current_principal(), import_id))


def _import(run: Record, status: int = 200) -> Response:
    return json_response({"import": IMPORT.record(run)}, status)
