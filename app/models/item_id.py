"""The last ID of an item of an order or of a refund (records 5)."""

from typing import cast

from sqlalchemy import Table, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id


class ItemId(Model):
    """Source of the IDs of items, which are unique in the shop. Items have no table.

    On PostgreSQL, the sequence of the ID is used, and the table stays empty. On SQLite, the table
    has one row, which is replaced.
    """

    __tablename__ = "item_ids"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    single: Mapped[int] = mapped_column(Id, server_default=text("1"))

    __table_args__ = (UniqueConstraint("single"), AUTOINCREMENT)


ITEM_IDS = cast("Table", ItemId.__table__)
