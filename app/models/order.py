"""Orders (decisions 7)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from sqlalchemy import CheckConstraint, ForeignKey, Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, Money, UtcDateTime
from app.models.address import BillingColumns, ShippingColumns


class Order(BillingColumns, ShippingColumns, Model):
    """An order, with copies of its items and addresses as of the time of the order."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # None for a guest. Orders of a deleted account become guest orders (decisions 5).
    customer_id: Mapped[int | None] = mapped_column(Id, ForeignKey("users.id", ondelete="SET NULL"))
    order_number: Mapped[str] = mapped_column(Key)
    order_key: Mapped[str] = mapped_column(Key)
    status: Mapped[str] = mapped_column(Key)
    currency: Mapped[str] = mapped_column(Key)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    completed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    total: Mapped[Decimal] = mapped_column(Money)
    subtotal: Mapped[Decimal] = mapped_column(Money)
    cart_tax: Mapped[Decimal] = mapped_column(Money)
    shipping_tax: Mapped[Decimal] = mapped_column(Money)
    total_shipping: Mapped[Decimal] = mapped_column(Money)
    total_discount: Mapped[Decimal] = mapped_column(Money)
    payment_method_id: Mapped[str] = mapped_column(Key)
    payment_method_title: Mapped[str] = mapped_column(Key)
    payment_paid: Mapped[bool]
    note: Mapped[str] = mapped_column(Key)
    customer_ip: Mapped[str] = mapped_column(Key)
    customer_user_agent: Mapped[str] = mapped_column(Key)
    # Items as responses contain them (decisions 7). Amounts are strings with 2 decimals.
    line_items: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    shipping_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    tax_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    fee_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    coupon_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    # Stored properties that responses do not contain, by item ID. None if there are none.
    item_details: Mapped[dict[str, dict[str, Any]] | None] = mapped_column(Json, sort_order=1)
    # ID of the next new item. IDs are unique within the order and never reused.
    next_item_id: Mapped[int] = mapped_column(Id, server_default=text("1"), sort_order=1)
    # Number of the changes that other columns do not show, such as those of metadata.
    revision: Mapped[int] = mapped_column(Id, server_default=text("0"), sort_order=2)
    # Lower-cased text that filter[q] searches.
    search_text: Mapped[str] = mapped_column(Key)
    # Only set while the order is in the trash and its status is TRASH.
    trashed_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=1)
    status_before_trash: Mapped[str | None] = mapped_column(Key, sort_order=1)

    @property
    def total_tax(self) -> Decimal:
        """Return the sum of all taxes."""
        return self.cart_tax + self.shipping_tax

    __table_args__ = (
        CheckConstraint("status <> ''", name="status_not_empty"),
        # In cents, so that the sum of thousands of orders of a customer fits into SQLite's 64 bits.
        CheckConstraint("abs(total) <= 1000000000000000", name="total_in_range"),
        # The statistics of a customer are read from this index alone.
        Index("ix_orders_customer", "customer_id", "status", "total", "id"),
        # Unique, because a download link identifies an order by its key.
        Index("uq_orders_order_key", "order_key", unique=True),
        # With the status, so that a list of several statuses is read from one index in its order.
        Index("ix_orders_id", "id", "status"),
        Index("ix_orders_created", "created_at", "id", "status"),
        Index("ix_orders_updated", "updated_at", "id", "status"),
        Index("ix_orders_total", "total", "id", "status"),
        Index("ix_orders_status_created", "status", "created_at", "id"),
        # With the customer, because SQLite reads an index alone only if it contains the column of
        # its condition.
        Index(
            "ix_orders_guests",
            "created_at",
            "id",
            "customer_id",
            sqlite_where=text("customer_id IS NULL"),
            postgresql_where=text("customer_id IS NULL"),
        ),
        AUTOINCREMENT,
    )


ORDERS = cast("Table", Order.__table__)
