"""Orders, as the shop took them (decisions 7)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.columns import NEVER_REUSED, Id, Json, Key, Money, UtcDateTime
from app.db import Base
from app.models.address import BillingColumns, ShippingColumns


class Order(BillingColumns, ShippingColumns, Base):
    """An order. Its lines and addresses are what was agreed at the time, kept as they were."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # None for a guest. An account that goes leaves its orders to a guest (decisions 5).
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
    # Lines in the form in which the API shows them (decisions 7); money is text with 2 places.
    line_items: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    shipping_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    tax_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    fee_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    coupon_lines: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    # Everything that filter[q] searches.
    search_text: Mapped[str] = mapped_column(Key)

    @property
    def total_tax(self) -> Decimal:
        """All taxes together."""
        return self.cart_tax + self.shipping_tax

    __table_args__ = (
        CheckConstraint("status <> ''", name="status_not_empty"),
        # In cents. SQLite adds whole numbers of 64 bits: thousands of such orders of one customer.
        CheckConstraint("abs(total) <= 1000000000000000", name="total_in_range"),
        # The sums and counts of a customer are read from this index alone.
        Index("ix_orders_customer", "customer_id", "status", "total", "id"),
        # A download link contains the key of its order.
        Index("uq_orders_order_key", "order_key", unique=True),
        # With the status, so that a list of some statuses is read in its order from one index.
        Index("ix_orders_id", "id", "status"),
        Index("ix_orders_created", "created_at", "id", "status"),
        Index("ix_orders_updated", "updated_at", "id", "status"),
        Index("ix_orders_total", "total", "id", "status"),
        Index("ix_orders_status_created", "status", "created_at", "id"),
        Index(
            "ix_orders_guests",
            "created_at",
            "id",
            sqlite_where=text("customer_id IS NULL"),
            postgresql_where=text("customer_id IS NULL"),
        ),
        NEVER_REUSED,
    )
