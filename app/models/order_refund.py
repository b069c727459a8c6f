"""Refunds of orders (records 2)."""

from datetime import datetime
from decimal import Decimal
from typing import NotRequired, TypedDict

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, Money, UtcDateTime
from app.models.order import Item


class RefundedItem(TypedDict):
    """Item of a refund: what was refunded of an item of the order, which it describes.

    Amounts are strings with 2 decimals.
    """

    id: int  # of the item of the order; 0 if an import does not know it
    item_id: int  # of this item, which is unique in the shop
    quantity: int
    total: str
    total_tax: str
    meta_id: NotRequired[int]  # of the metadata with the ID of the item; only if it was imported
    list: str  # of the order: line_items, shipping_lines or fee_lines
    name: str
    product_id: int | None
    variation_id: int
    sku: str | None
    tax_class: str | None


class OrderRefundRow(TypedDict):
    """Row of a refund."""

    id: int
    order_id: int
    created_at: datetime
    updated_at: datetime
    amount: Decimal
    reason: str
    refunded_by: int | None
    line_items: list[Item]
    revision: int


class OrderRefund(Model):
    """Refund of an order. Deleted with the order."""

    __tablename__ = "order_refunds"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    order_id: Mapped[int] = mapped_column(Id, ForeignKey("orders.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    amount: Mapped[Decimal] = mapped_column(Money)
    reason: Mapped[str] = mapped_column(Key)
    # None for a command, and after the account was deleted.
    refunded_by: Mapped[int | None] = mapped_column(Id, ForeignKey("users.id", ondelete="SET NULL"))
    line_items: Mapped[list[Item]] = mapped_column(Json)
    # Number of the changes that other columns do not show, such as those of metadata.
    revision: Mapped[int] = mapped_column(Id, server_default=text("0"))

    __table_args__ = (
        CheckConstraint("amount > 0", name="amount_positive"),
        Index("ix_order_refunds_order", "order_id", "id"),
        Index("ix_order_refunds_created", "created_at", "id"),
        Index("ix_order_refunds_updated", "updated_at", "id"),
        Index("ix_order_refunds_report", "created_at", "order_id", "amount"),
        Index("ix_order_refunds_user", "refunded_by"),
        AUTOINCREMENT,
    )


ORDER_REFUNDS = OrderRefund.__table__
