"""Order notes, written by users or by status changes (orders 7)."""

from datetime import datetime
from typing import cast

from sqlalchemy import ForeignKey, Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime


class OrderNote(Model):
    """Note of an order. Deleted with the order."""

    __tablename__ = "order_notes"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    order_id: Mapped[int] = mapped_column(Id, ForeignKey("orders.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    note: Mapped[str] = mapped_column(Key)
    # Whether the note is addressed to the customer.
    customer_note: Mapped[bool]
    # Empty for the system.
    author: Mapped[str] = mapped_column(Key, server_default=text("''"))

    __table_args__ = (Index("ix_order_notes_order", "order_id", "id"), AUTOINCREMENT)


ORDER_NOTES = cast("Table", OrderNote.__table__)
