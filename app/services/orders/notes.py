"""Notes of orders: read and write them (orders 7 and 9)."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import TRASH, Change
from app.db.read_pool import RowStream
from app.db.records import Columns, Record, Row, row_dicts
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import ORDER_NOTES, ORDERS
from app.services.common.bulk import Data, Precondition
from app.services.common.locks import hold_accounts
from app.services.events.hooks import notify
from app.services.orders.columns import note_created
from app.services.orders.queries import fetch_child, list_children

_CANNOT_READ = "shop_api_user_cannot_read_order_notes"


def list_notes(actor: Principal, order_id: int, columns: Columns) -> Sequence[Row] | RowStream:
    """Return the notes of an order, oldest first.

    Raises:
        ShopError: the order does not exist, or the capability is missing.
    """
    rows = list_children(ORDER_NOTES, order_id, columns)
    actor.require(_CANNOT_READ)
    return rows


def get_note(actor: Principal, order_id: int, note_id: int, columns: Columns) -> Row:
    """Return one note of an order.

    Raises:
        ShopError: the order or the note does not exist, the note belongs to another order, or the
            capability is missing.
    """
    rows = fetch_child(ORDER_NOTES, order_id, columns, note_id)
    if not rows:
        raise ShopError("shop_api_invalid_order_note_id")
    actor.require(_CANNOT_READ)
    return rows[0]


def create_note(actor: Principal, order_id: int, data: Data, *, needs_text: bool = True) -> Record:
    """Add a note to an order; return it by its column names.

    Args:
        data: a loaded ``OrderNoteCreate``.
        needs_text: whether a note without text is rejected.

    Raises:
        ShopError: the order does not exist, the capability is missing, or the note has no text.
    """

    def work(session: Session) -> Record:
        customer_id = _lock_order(session, order_id)
        actor.require("shop_api_user_cannot_create_order_note")
        if needs_text:
            _require_text(data.get("note", ""))
        customer_id = _held(session, customer_id)
        note = {"created_at": now(), **data, "order_id": order_id}
        note_id = session.execute(
            insert(ORDER_NOTES).values(note).returning(ORDER_NOTES.c.id)
        ).scalar_one()
        notify(session, actor, [note_created(note_id, note, customer_id)])
        return note | {"id": note_id}

    return run_in_transaction(work)


def update_note(
    actor: Principal,
    order_id: int,
    note_id: int,
    data: Data,
    precondition: Precondition | None = None,
) -> Record:
    """Change the text of a note; return the note by its column names.

    Args:
        data: a loaded ``OrderNoteUpdate``; without a text, nothing changes.

    Raises:
        ShopError: the note does not exist, the capability is missing, the precondition fails, or
            the new text is blank.
    """

    def work(session: Session) -> Record:
        note, customer_id = _lock_note(session, order_id, note_id)
        actor.require("shop_api_user_cannot_edit_order_note")
        if precondition:
            precondition(note)
        if "note" in data:
            _require_text(data["note"])
            changed = {"note": data["note"]}
            session.execute(update(ORDER_NOTES).where(ORDER_NOTES.c.id == note_id).values(changed))
            before = note | {"customer_id": _held(session, customer_id)}
            notify(session, actor, [Change("order_note.updated", before, before | changed)])
            note |= changed
        return note

    return run_in_transaction(work)


def delete_note(
    actor: Principal, order_id: int, note_id: int, precondition: Precondition | None = None
) -> None:
    """Delete a note permanently.

    Raises:
        ShopError: the note does not exist, the capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        note, _ = _lock_note(session, order_id, note_id)
        actor.require("shop_api_user_cannot_delete_order_note")
        if precondition:
            precondition(note)
        session.execute(delete(ORDER_NOTES).where(ORDER_NOTES.c.id == note_id))
        notify(session, actor, [Change("order_note.deleted", note, None)])

    run_in_transaction(work)


def _lock_order(session: Session, order_id: int) -> int | None:
    """Lock an order against deletion until the commit, and return its customer.

    Updates of the order do not wait for this lock, and neither does the deletion of its customer.
    """
    found = session.execute(
        select(ORDERS.c.customer_id)
        .where(ORDERS.c.id == order_id, ORDERS.c.status != TRASH)
        .with_for_update(read=True, key_share=True)
    ).first()
    if found is None:
        raise ShopError("shop_api_invalid_order_id")
    customer_id: int | None = found.customer_id
    return customer_id


def _held(session: Session, customer_id: int | None) -> int | None:
    """Return the customer of an order, or None if the customer was deleted since it was read."""
    return customer_id if hold_accounts(session, [customer_id or 0]) else None


def _lock_note(session: Session, order_id: int, note_id: int) -> tuple[Record, int | None]:
    """Return a note of an order, locked until the commit, and the customer of the order."""
    customer_id = _lock_order(session, order_id)
    of_order = ORDER_NOTES.c.id == note_id, ORDER_NOTES.c.order_id == order_id
    found = row_dicts(session.execute(select(ORDER_NOTES).where(*of_order).with_for_update()))
    if not found:
        raise ShopError("shop_api_invalid_order_note_id")
    return found[0], customer_id


def _require_text(note: str) -> None:
    if not note.strip():
        raise ShopError("shop_api_invalid_order_note")
