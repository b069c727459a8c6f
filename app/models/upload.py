"""Uploaded files, which wait for their import on the admin pages."""

from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import ForeignKey, LargeBinary, Table, and_
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime

KEPT = timedelta(hours=1)
"""How long an uploaded file is kept."""


class Upload(Model):
    """A CSV file that a session has uploaded. It is kept for an hour."""

    __tablename__ = "uploads"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    session_id: Mapped[int] = mapped_column(
        Id, ForeignKey("admin_sessions.id", ondelete="CASCADE"), index=True
    )
    # Name of the file, and kind of its records.
    name: Mapped[str]
    kind: Mapped[str] = mapped_column(Key)
    on_conflict: Mapped[str] = mapped_column(Key)
    # SHA-256 of the file as it was sent.
    digest: Mapped[str] = mapped_column(Key)
    # Converted to UTF-8 and commas.
    content: Mapped[bytes] = mapped_column(LargeBinary)
    # Number of records, and how many of them the import has read.
    size: Mapped[int] = mapped_column(Id)
    position: Mapped[int] = mapped_column(Id)
    created: Mapped[int] = mapped_column(Id)
    updated: Mapped[int] = mapped_column(Id)
    skipped: Mapped[int] = mapped_column(Id)
    failed: Mapped[int] = mapped_column(Id)
    # The first lines that failed and why, as JSON: of the dry run, then of the import.
    failures: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)

    # When the import was requested, and since when a worker runs the next part of it.
    queued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (AUTOINCREMENT,)


UPLOADS = cast("Table", Upload.__table__)

IS_IMPORTING = and_(UPLOADS.c.queued_at.is_not(None), UPLOADS.c.position < UPLOADS.c.size)
"""Condition for files whose import was requested and has not ended."""
