"""Order note schemas (orders 7)."""

import marshmallow as ma

from app.schemas.base import Base, list_response, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form

MAX_NOTE_LENGTH = 65_536
"""Longest note in characters (decisions 17)."""

_NOTE = "Text of the note."
_CUSTOMER = "Whether the note is addressed to the customer."


class NoteText(inputs.Text):
    """Text of a note, kept as sent."""

    openapi = {**json_schema.TEXT_IN, "minLength": 1, "maxLength": MAX_NOTE_LENGTH}


class OrderNoteSchema(Base):
    """Order note in a response."""

    id = fields.Identifier("Note ID.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    note = fields.String(_NOTE)
    customer_note = fields.Boolean(_CUSTOMER)


class OrderNoteCreate(Base):
    """Fields of a new note. Only `note` is required."""

    note = NoteText(_NOTE, required=True)
    customer_note = inputs.StrictTrue(_CUSTOMER, load_default=False)


class OrderNoteUpdate(Base):
    """Fields of a note that can be updated."""

    note = NoteText(_NOTE, load_default=ma.missing)


set_form(
    OrderNoteCreate,
    {
        "Note": {
            "note": FormField("New note", kind="textarea", help=""),
            "customer_note": FormField("The note is for the customer", help=""),
        }
    },
)

OrderNoteResponse = response(OrderNoteSchema, "order_note")
OrderNoteList = list_response(OrderNoteSchema, "order_notes")

OrderNoteCreateRequest = request(OrderNoteCreate, "order_note")
OrderNoteUpdateRequest = request(OrderNoteUpdate, "order_note")
