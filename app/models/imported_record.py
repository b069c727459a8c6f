"""Records that were imported from another system, and where they came from."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime


class ImportSource(Model):
    """A shop from which records were imported."""

    __tablename__ = "import_sources"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # Address and table prefix of the shop, which are the same in every dump.
    name: Mapped[str] = mapped_column(Key, unique=True)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # None while the latest import is incomplete. Repeating the command completes it.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (AUTOINCREMENT,)


class ImportedRecord(Model):
    """The record of this shop that was created from a record of a source.

    With this table, a second import creates nothing twice, updates records that changed at the
    source, and keeps records that were edited in this shop.
    """

    __tablename__ = "imported_records"

    import_source_id: Mapped[int] = mapped_column(
        Id, ForeignKey("import_sources.id", ondelete="CASCADE"), primary_key=True
    )
    # customer, coupon, order, order_note, ...
    kind: Mapped[str] = mapped_column(Key, primary_key=True)
    # ID of the record at the source, and here.
    source_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    target_id: Mapped[int] = mapped_column(Id)
    # Hash of the converted record. A different hash means that it changed at the source.
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    # updated_at as it was written. A different time means that it was edited here. None for
    # records without updated_at.
    updated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # usage_count of a coupon as it was written, to which uses here are added.
    usage_count: Mapped[int | None] = mapped_column(Id)

    __table_args__ = (
        Index("ix_imported_records_target", "kind", "target_id"),
        {"sqlite_with_rowid": False},
    )


ERASED = b"erased"
"""Fingerprint of a record whose personal data was erased here, so that an import leaves it out."""

USES = ("order_coupon", "coupon_use")
"""Kinds of redemptions."""

IMPORTED_RECORDS = ImportedRecord.__table__
IMPORT_SOURCES = ImportSource.__table__
