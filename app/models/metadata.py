"""Metadata: data that integrations attach to records (records 1)."""

from sqlalchemy import ForeignKey, Index, false
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, JsonText, Key


class MetadataColumns:
    """Columns of an entry of metadata. IDs ascend within a record and are never reused."""

    @declared_attr
    def id(cls) -> Mapped[int]:  # noqa: N805  # a declared attribute
        """Return the ID, the first column of each table."""
        return mapped_column(Id, primary_key=True, sort_order=-1)

    key: Mapped[str] = mapped_column(Key)
    # As JSON, with the keys of objects in the order in which they were sent.
    value: Mapped[str] = mapped_column(JsonText)
    # Whether an import brought the entry with a key that begins with an underscore.
    internal: Mapped[bool] = mapped_column(server_default=false())


class FoundEntry(MetadataColumns):
    """Columns of an entry that filters find."""

    # The text that filters compare; None for long texts, lists, objects and null.
    found_value: Mapped[str | None] = mapped_column(Key)


def _indexes(record: str) -> tuple[Index, Index, dict[str, bool]]:
    """Return the indexes by which the entries of a record are read, and records are found."""
    return (
        Index(f"ix_{record}_metadata_{record}", f"{record}_id", "id"),
        Index(f"ix_{record}_metadata_found", "key", "found_value", f"{record}_id"),
        AUTOINCREMENT,
    )


class CouponMetadata(FoundEntry, Model):
    """Entry of a coupon. Deleted with the coupon."""

    __tablename__ = "coupon_metadata"

    coupon_id: Mapped[int] = mapped_column(Id, ForeignKey("coupons.id", ondelete="CASCADE"))

    __table_args__ = _indexes("coupon")


class CustomerMetadata(FoundEntry, Model):
    """Entry of a customer. Deleted with the customer."""

    __tablename__ = "customer_metadata"

    customer_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))

    __table_args__ = _indexes("customer")


class OrderMetadata(FoundEntry, Model):
    """Entry of an order. Deleted with the order."""

    __tablename__ = "order_metadata"

    order_id: Mapped[int] = mapped_column(Id, ForeignKey("orders.id", ondelete="CASCADE"))

    __table_args__ = _indexes("order")


class RefundMetadata(FoundEntry, Model):
    """Entry of a refund. Deleted with the refund."""

    __tablename__ = "refund_metadata"

    refund_id: Mapped[int] = mapped_column(Id, ForeignKey("order_refunds.id", ondelete="CASCADE"))

    __table_args__ = _indexes("refund")


class ItemMetadata(MetadataColumns, Model):
    """Entry of an item of an order or of a refund. Deleted with the item and with the order."""

    __tablename__ = "item_metadata"

    order_id: Mapped[int] = mapped_column(Id, ForeignKey("orders.id", ondelete="CASCADE"))
    # Items have no table: they are stored in their order.
    item_id: Mapped[int] = mapped_column(Id)

    __table_args__ = (Index("ix_item_metadata_order", "order_id", "id"), AUTOINCREMENT)


COUPON_METADATA = CouponMetadata.__table__
CUSTOMER_METADATA = CustomerMetadata.__table__
ORDER_METADATA = OrderMetadata.__table__
REFUND_METADATA = RefundMetadata.__table__
ITEM_METADATA = ItemMetadata.__table__
