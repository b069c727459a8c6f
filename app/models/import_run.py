"""Imports of records, stored so that each of them is reported by one event (events 1)."""

from datetime import datetime
from typing import cast

from sqlalchemy import Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime

_IS_RUNNING = text("finished_at IS NULL")


class ImportRun(Model):
    """An import with its progress. Its ID is ``resource_id`` of the event ``import.completed``."""

    __tablename__ = "import_runs"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # The origin of the records: file, restore, demo or the name of a shop.
    source: Mapped[str] = mapped_column(Key)
    # The kind of records in a file.
    kind: Mapped[str | None] = mapped_column(Key)
    # Numbers of records in committed transactions.
    created: Mapped[int] = mapped_column(Id)
    updated: Mapped[int] = mapped_column(Id)
    # When the numbers were written.
    progress_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # When the event was written.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        Index(
            "ix_import_runs_running",
            "progress_at",
            sqlite_where=_IS_RUNNING,
            postgresql_where=_IS_RUNNING,
        ),
        AUTOINCREMENT,
    )


IMPORT_RUNS = cast("Table", ImportRun.__table__)
