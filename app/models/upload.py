"""Files of the admin pages of the previous version, which a rolling upgrade lets run."""

from datetime import datetime

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime


class Upload(Model):
    """A file that a session has uploaded. It goes with the session.

    This version uses imports instead. The next one removes the table.
    """

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
