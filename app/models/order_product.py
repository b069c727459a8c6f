"""Products of orders, kept by triggers."""

from typing import cast

from sqlalchemy import ForeignKey, Index, Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id


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


ORDER_PRODUCTS = cast("Table", OrderProduct.__table__)
