"""Order statistics of each customer as sort keys, and which of them have to be computed again."""

from decimal import Decimal
from typing import cast

from sqlalchemy import ForeignKey, Index, Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key, MoneySum


class CustomerTotal(Model):
    """The ``orders_count`` and ``total_spent`` of a user, in indexes that lists are read from.

    Database triggers add a row for each new user (migration 0046). The values are those of the
    statuses in ``TotalStatuses``, and are out of date for the customers in ``StaleTotal``. So a
    list is exact at any time, although writers of orders never change these rows, which writers of
    one customer would wait for.
    """

    __tablename__ = "customer_totals"

    customer_id: Mapped[int] = mapped_column(
        Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    orders_count: Mapped[int] = mapped_column(Id)
    total_spent: Mapped[Decimal] = mapped_column(MoneySum)

    __table_args__ = (
        Index("ix_customer_totals_orders_count", "orders_count", "customer_id"),
        Index("ix_customer_totals_total_spent", "total_spent", "customer_id"),
        {"sqlite_with_rowid": False},
    )


class StaleTotal(Model):
    """Customer whose orders have changed since the row in ``CustomerTotal`` was computed.

    Database triggers add a row with each change of ``OrderSum``, in the same transaction. Each
    transaction adds a shard of its own on PostgreSQL, so that none waits for another one.
    """

    __tablename__ = "stale_totals"

    customer_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    shard: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)

    __table_args__ = {"sqlite_with_rowid": False}


class TotalStatuses(Model):
    """The statuses that count in ``CustomerTotal``: a single row.

    A process in which other statuses count does not use the totals.
    """

    __tablename__ = "total_statuses"

    id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    statuses: Mapped[str] = mapped_column(Key)


CUSTOMER_TOTALS = cast("Table", CustomerTotal.__table__)
STALE_TOTALS = cast("Table", StaleTotal.__table__)
TOTAL_STATUSES = cast("Table", TotalStatuses.__table__)
