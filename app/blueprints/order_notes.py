"""Order notes: the endpoint table of orders 7."""

from collections.abc import Mapping

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body, Query
from app.api.etags import precondition, with_etag
from app.api.idempotency import idempotent
from app.api.representations import ORDER_NOTE
from app.api.responses import delete_response, json_response, page_response
from app.schemas.base import DeleteResponse
from app.schemas.examples import orders as examples
from app.schemas.orders import note as schemas
from app.schemas.queries import ReadQuery
from app.services.common.pagination import Page
from app.services.orders import notes as order_notes

blp = Blueprint(
    "order_notes",
    __name__,
    url_prefix="/orders",
    description="Create, list, update and delete the notes of an order.",
    reads_replicas=True,
)


def _body(note: Mapping[str, object]) -> Body:
    return {"order_note": ORDER_NOTE.record(note)}


init_app = blp.init_app


@blp.route("/<id:order_id>/notes")
@blp.errors("shop_api_invalid_order_id", "shop_api_user_cannot_read_order_notes")
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.OrderNoteList, example={"order_notes": [examples.ORDER_NOTE]})
def list_order_notes(query: Query, order_id: int) -> Response:
    """List the notes of an order.

    Returns all notes, oldest first. A status change adds a note automatically.
    """
    serializer = ORDER_NOTE.only(query["selection"])
    rows = order_notes.list_notes(current_principal(), order_id, serializer.columns)
    return page_response("order_notes", serializer.rows, Page(rows, None))


@blp.route("/<id:order_id>/notes", methods=["POST"])
@blp.errors(
    "shop_api_missing_order_note_data",
    "shop_api_invalid_order_id",
    "shop_api_user_cannot_create_order_note",
    "shop_api_invalid_order_note",
)
@blp.arguments(schemas.OrderNoteCreateRequest, example={"order_note": examples.NEW_ORDER_NOTE})
@idempotent
@blp.response(201, schemas.OrderNoteResponse, example={"order_note": examples.ORDER_NOTE})
def create_order_note(body: Body, order_id: int) -> Response:
    """Create an order note.

    Only `note` is required.
    """
    note = order_notes.create_note(current_principal(), order_id, body["order_note"])
    return json_response(_body(note), 201)


@blp.route("/<id:order_id>/notes/<id:note_id>")
@with_etag
@blp.errors(
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_note_id",
    "shop_api_user_cannot_read_order_notes",
)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, schemas.OrderNoteResponse, example={"order_note": examples.ORDER_NOTE})
def get_order_note(query: Query, order_id: int, note_id: int) -> Response:
    """Retrieve an order note.

    The note must belong to the order.
    """
    serializer = ORDER_NOTE.only(query["selection"])
    row = order_notes.get_note(current_principal(), order_id, note_id, serializer.columns)
    return json_response({"order_note": serializer.row(row)})


@blp.route("/<id:order_id>/notes/<id:note_id>", methods=["PUT"])
@blp.errors(
    "shop_api_missing_order_note_data",
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_note_id",
    "shop_api_user_cannot_edit_order_note",
    "shop_api_precondition_failed",
    "shop_api_invalid_order_note",
)
@blp.arguments(schemas.OrderNoteUpdateRequest, example={"order_note": examples.ORDER_NOTE_UPDATE})
@blp.response(200, schemas.OrderNoteResponse, example={"order_note": examples.UPDATED_ORDER_NOTE})
def update_order_note(body: Body, order_id: int, note_id: int) -> Response:
    """Update an order note.

    Only the text can be updated; `customer_note` is ignored.
    """
    note = order_notes.update_note(
        current_principal(), order_id, note_id, body["order_note"], precondition(_body)
    )
    return json_response(_body(note))


@blp.route("/<id:order_id>/notes/<id:note_id>", methods=["DELETE"])
@blp.errors(
    "shop_api_invalid_order_id",
    "shop_api_invalid_order_note_id",
    "shop_api_user_cannot_delete_order_note",
    "shop_api_precondition_failed",
)
@blp.response(200, DeleteResponse, example={"message": "Permanently deleted order note"})
def delete_order_note(order_id: int, note_id: int) -> Response:
    """Delete an order note permanently.

    Notes have no trash.
    """
    order_notes.delete_note(current_principal(), order_id, note_id, precondition(_body))
    return delete_response("order note")
