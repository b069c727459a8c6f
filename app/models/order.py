"""Orders (decisions 7), and what triggers keep of them: their products and sums."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import (
    AUTOINCREMENT,
    Id,
    Json,
    Key,
    Money,
    MoneySum,
    OptionalMoney,
    UtcDateTime,
)
from app.models.address import AddressRow, BillingColumns, ShippingColumns
from app.models.user import USERS

Item = dict[str, Any]
"""Item of an order or refund as it is stored. Amounts are strings with two decimals."""


class Order(BillingColumns, ShippingColumns, Model):
    """An order, with copies of its items and addresses as of the time of the order."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # None for a guest. Orders of a deleted account become guest orders (decisions 5). Not a foreign
    # key: the worker clears it if an account has many orders (``Erasure``).
    customer_id: Mapped[int | None] = mapped_column(Id)
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
    line_items: Mapped[list[Item]] = mapped_column(Json)
    shipping_lines: Mapped[list[Item]] = mapped_column(Json)
    tax_lines: Mapped[list[Item]] = mapped_column(Json)
    fee_lines: Mapped[list[Item]] = mapped_column(Json)
    coupon_lines: Mapped[list[Item]] = mapped_column(Json)
    # Stored properties that responses do not contain, by item ID. None if there are none.
    item_details: Mapped[dict[str, Item] | None] = mapped_column(Json, sort_order=1)
    # Above the IDs of all items that the order and its refunds have ever had.
    next_item_id: Mapped[int] = mapped_column(Id, server_default=text("1"), sort_order=1)
    # Payment and origin (records 3). The defaults are for a previous release that still writes.
    transaction_id: Mapped[str] = mapped_column(Key, server_default=text("''"), sort_order=2)
    paid_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=2)
    created_via: Mapped[str] = mapped_column(Key, server_default=text("'rest-api'"), sort_order=2)
    # Not a foreign key, because SQLite cannot add one to a table. Permanent deletes clear it.
    parent_id: Mapped[int | None] = mapped_column(Id, sort_order=2)
    prices_include_tax: Mapped[bool] = mapped_column(server_default=false(), sort_order=2)
    discount_tax: Mapped[Decimal] = mapped_column(Money, server_default=text("0"), sort_order=2)
    cart_hash: Mapped[str] = mapped_column(Key, server_default=text("''"), sort_order=2)
    version: Mapped[str] = mapped_column(Key, server_default=text("''"), sort_order=2)
    # Sum of the refunds, changed only while the order is locked.
    total_refunded: Mapped[Decimal] = mapped_column(Money, server_default=text("0"), sort_order=2)
    # Units in the line items, and sum of the fees. None only if a previous release wrote the items.
    items: Mapped[int | None] = mapped_column(BigInteger, sort_order=2)
    fees: Mapped[Decimal | None] = mapped_column(OptionalMoney, sort_order=2)
    # Number of the changes that other columns do not show, such as those of metadata.
    revision: Mapped[int] = mapped_column(Id, server_default=text("0"), sort_order=2)
    # Lower-cased text that filter[q] searches.
    search_text: Mapped[str] = mapped_column(Key)
    # Key of a guest whose address ``lower()`` of the database does not normalize, otherwise None.
    billing_email_normalized: Mapped[str | None] = mapped_column(Key, sort_order=4)
    # When the personal data of the order was erased (people 5).
    erased_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=4)
    # Only set while the order is in the trash and its status is TRASH.
    trashed_at: Mapped[datetime | None] = mapped_column(UtcDateTime, sort_order=1)
    status_before_trash: Mapped[str | None] = mapped_column(Key, sort_order=1)

    @property
    def total_tax(self) -> Decimal:
        """Return the sum of all taxes. For plugins whose views return orders as objects."""
        return self.cart_tax + self.shipping_tax

    __table_args__ = (
        CheckConstraint("status <> ''", name="status_not_empty"),
        # In cents, so that the sum of thousands of orders of a customer fits into SQLite's 64 bits.
        CheckConstraint("abs(total) <= 1000000000000000", name="total_in_range"),
        Index("ix_orders_customer", "customer_id", "status", "total", "id"),
        # The last order of a customer in a status is the last entry. Without guests, because SQLite
        # would otherwise read all orders to count those of guests in the trash.
        Index(
            "ix_orders_customer_last",
            "customer_id",
            "status",
            "id",
            sqlite_where=text("customer_id IS NOT NULL"),
            postgresql_where=text("customer_id IS NOT NULL"),
        ),
        # Accounts with a completed order, which the index alone counts.
        Index(
            "ix_orders_paying",
            "customer_id",
            "completed_at",
            sqlite_where=text("customer_id IS NOT NULL AND completed_at IS NOT NULL"),
            postgresql_where=text("customer_id IS NOT NULL AND completed_at IS NOT NULL"),
        ),
        # Unique, because a download link identifies an order by its key.
        Index("uq_orders_order_key", "order_key", unique=True),
        # With the status, so that a list of several statuses is read from one index in its order,
        # and with the other times, so that the index alone finds the first order of a period.
        Index("ix_orders_id", "id", "status", "created_at", "updated_at"),
        Index("ix_orders_created", "created_at", "id", "status", "updated_at"),
        Index("ix_orders_updated", "updated_at", "id", "status", "created_at"),
        Index("ix_orders_total", "total", "id", "status"),
        Index("ix_orders_status_created", "status", "created_at", "id"),
        # Without longer texts, which an index of PostgreSQL cannot have.
        Index(
            "ix_orders_created_via",
            "created_via",
            "created_at",
            "id",
            "status",
            postgresql_where=text("octet_length(created_via) <= 1000"),
        ),
        # For parents that are deleted permanently.
        Index(
            "ix_orders_parent",
            "parent_id",
            sqlite_where=text("parent_id IS NOT NULL"),
            postgresql_where=text("parent_id IS NOT NULL"),
        ),
        # Orders that a previous release wrote, for the sweep of the worker.
        Index(
            "ix_orders_without_figures",
            "id",
            sqlite_where=text("items IS NULL"),
            postgresql_where=text("items IS NULL"),
        ),
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
        # Migration 0040 creates further indexes for reports, which differ between the databases.
        # The first order of a customer. With the total, so that PostgreSQL adds up the orders of
        # all customers in the order of this index.
        Index(
            "ix_orders_customer_created",
            "customer_id",
            "created_at",
            "id",
            "status",
            "currency",
            "total",
            sqlite_where=text("customer_id IS NOT NULL"),
            postgresql_where=text("customer_id IS NOT NULL"),
        ),
        # The orders of a guest by the normalized address.
        Index(
            "ix_orders_guest_normalized",
            "billing_email_normalized",
            "created_at",
            "id",
            "status",
            "currency",
            "customer_id",
            sqlite_where=text("customer_id IS NULL AND billing_email_normalized IS NOT NULL"),
            postgresql_where=text("customer_id IS NULL AND billing_email_normalized IS NOT NULL"),
        ),
        # Orders of guests whose personal data can be erased because of their age.
        Index(
            "ix_orders_guests_updated",
            "updated_at",
            "id",
            "status",
            sqlite_where=text("customer_id IS NULL AND erased_at IS NULL"),
            postgresql_where=text("customer_id IS NULL AND erased_at IS NULL"),
        ),
        # Addresses that only Python can lower-case, for reports of a previous release.
        Index(
            "ix_orders_unicode_emails",
            "created_at",
            sqlite_where=text("length(CAST(billing_email AS BLOB)) > length(billing_email)"),
            postgresql_where=text("octet_length(billing_email) > length(billing_email)"),
        ),
        AUTOINCREMENT,
    )


ORDERS = Order.__table__
ORDERS.add_is_dependent_on(USERS)  # without a foreign key


class OrderRow(AddressRow):
    """An order by its column names."""

    id: int
    customer_id: int | None
    order_number: str
    order_key: str
    status: str
    currency: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    total: Decimal
    subtotal: Decimal
    cart_tax: Decimal
    shipping_tax: Decimal
    total_shipping: Decimal
    total_discount: Decimal
    payment_method_id: str
    payment_method_title: str
    payment_paid: bool
    note: str
    customer_ip: str
    customer_user_agent: str
    line_items: list[Item]
    shipping_lines: list[Item]
    tax_lines: list[Item]
    fee_lines: list[Item]
    coupon_lines: list[Item]
    item_details: dict[str, Item] | None
    next_item_id: int
    transaction_id: str
    paid_at: datetime | None
    created_via: str
    parent_id: int | None
    prices_include_tax: bool
    discount_tax: Decimal
    cart_hash: str
    version: str
    total_refunded: Decimal
    items: int | None
    fees: Decimal | None
    revision: int
    search_text: str
    billing_email_normalized: str | None
    erased_at: datetime | None
    trashed_at: datetime | None
    status_before_trash: str | None


class OrderProduct(Model):
    """Product of an order, and how many units of it the line items contain.

    Orders are found by their products, and the best sellers are computed from these rows. Database
    triggers keep them (migration 0041) in the transaction of every write of an order.
    """

    __tablename__ = "order_products"

    order_id: Mapped[int] = mapped_column(
        Id, ForeignKey("orders.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    product_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    quantity: Mapped[int] = mapped_column(Id)

    __table_args__ = (
        Index("ix_order_products_product", "product_id", "order_id"),
        {"sqlite_with_rowid": False},
    )


ORDER_PRODUCTS = OrderProduct.__table__


class OrderSum(Model):
    """Number and total of a customer's orders in a status.

    ``orders_count`` and ``total_spent`` are sums of these rows, so that a customer with 100,000
    orders costs as little as one with a single order. The statuses that count are not part of the
    table, because plugins and settings can differ between processes.

    Database triggers keep the sums (migration 0033) in the transaction of every write, as those of
    ``RowCount``. They are spread over shards in the same way, so that concurrent writers of orders
    of one customer never wait for each other on PostgreSQL (orders 8). Only the sum of the shards
    is meaningful, and a single shard can be negative.

    There is no foreign key: the orders of a deleted account lose their customer, which removes the
    sums.
    """

    __tablename__ = "order_sums"

    customer_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    status: Mapped[str] = mapped_column(Key, primary_key=True)
    shard: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    orders: Mapped[int] = mapped_column(Id)
    total: Mapped[Decimal] = mapped_column(MoneySum)

    __table_args__ = {"sqlite_with_rowid": False}


ORDER_SUMS = OrderSum.__table__


class ItemId(Model):
    """Source of the IDs of items, which are unique in the shop. Items have no table.

    On PostgreSQL, the sequence of the ID is used, and the table stays empty. On SQLite, the table
    has one row, which is replaced.
    """

    __tablename__ = "item_ids"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    single: Mapped[int] = mapped_column(Id, server_default=text("1"))

    __table_args__ = (UniqueConstraint("single"), AUTOINCREMENT)


ITEM_IDS = ItemId.__table__


class DownloadPermission(Model):
    """Permission of an order's customer to download a file."""

    __tablename__ = "download_permissions"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    order_id: Mapped[int] = mapped_column(Id, ForeignKey("orders.id", ondelete="CASCADE"))
    product_id: Mapped[int] = mapped_column(Id)
    download_id: Mapped[str] = mapped_column(Key)
    download_name: Mapped[str] = mapped_column(Key)
    download_url: Mapped[str] = mapped_column(Key)
    file_name: Mapped[str] = mapped_column(Key)
    file_url: Mapped[str] = mapped_column(Key)
    # None means unlimited.
    downloads_remaining: Mapped[int | None] = mapped_column(Id)
    access_expires: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (Index("ix_download_permissions_order", "order_id", "id"), AUTOINCREMENT)


DOWNLOADS = DownloadPermission.__table__


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


ORDER_NOTES = OrderNote.__table__
