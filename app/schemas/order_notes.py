"""Order note schemas (orders 7)."""

from __future__ import annotations

from typing import Any

import marshmallow as ma

from app.schemas import fields, inputs, json_schema
from app.schemas.envelope import Base, Wrapped

MAX_NOTE_LENGTH = 65_536
"""Longest note in characters (decisions 17)."""

_NOTE = "Text of the note."
_CUSTOMER = "Whether the note is addressed to the customer."


class NoteText(inputs.Text):
    """Text of a note, kept as sent."""

    openapi = {**json_schema.TEXT_IN, "minLength": 1, "maxLength": MAX_NOTE_LENGTH}

    def convert(self, value: Any) -> str:
        """Return the text, or raise ValueError."""
        text = super().convert(value)
        if len(text) > MAX_NOTE_LENGTH:
            raise ValueError(f"is longer than {MAX_NOTE_LENGTH:,} characters.")
        return text


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


class OrderNoteResponse(Base):
    """Single order note."""

    order_note = ma.fields.Nested(OrderNoteSchema, required=True)


class OrderNoteList(Base):
    """Notes of an order."""

    order_notes = ma.fields.List(ma.fields.Nested(OrderNoteSchema), required=True)


class OrderNoteCreateRequest(Base):
    """Request that creates an order note."""

    order_note = Wrapped(OrderNoteCreate, missing_code="shop_api_missing_order_note_data")


class OrderNoteUpdateRequest(Base):
    """Request that updates an order note."""

    order_note = Wrapped(OrderNoteUpdate, missing_code="shop_api_missing_order_note_data")
