"""Sums of the orders of each customer, kept by triggers."""

from decimal import Decimal
from typing import cast

from sqlalchemy import Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key, MoneySum


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


ORDER_SUMS = cast("Table", OrderSum.__table__)
