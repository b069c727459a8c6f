"""Permissions to download purchased files (decisions 8)."""

from datetime import datetime
from typing import cast

from sqlalchemy import ForeignKey, Index, Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime


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


DOWNLOADS = cast("Table", DownloadPermission.__table__)
