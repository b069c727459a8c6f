"""Imports of records, with the parts of their files and the lines that failed (people 7).

Runs that load a demo shop are not imports, but are resumed as imports are.
"""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, LargeBinary, false, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Key, UtcDateTime

_IS_RUNNING = text("finished_at IS NULL")
_ZERO = text("0")


class ImportStatus(StrEnum):
    """State of an import."""

    WAITING = "waiting"
    RUNNING = "running"
    READY = "ready"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


UNFINISHED = (ImportStatus.WAITING, ImportStatus.RUNNING, ImportStatus.READY)
"""The states of imports whose files are kept until they end."""


class ImportRun(Model):
    """An import with its progress. Its ID is ``resource_id`` of the event ``import.completed``.

    Without a key, it is the import of a command.
    """

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
    # When the event was written, or the dry run ended.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # None: an import of a command that has not failed.
    status: Mapped[str | None] = mapped_column(Key)
    # Name of the file, and its format: csv or ndjson.
    name: Mapped[str] = mapped_column(server_default=text("''"))
    format: Mapped[str | None] = mapped_column(Key)
    on_conflict: Mapped[str | None] = mapped_column(Key)
    dry_run: Mapped[bool] = mapped_column(server_default=false())
    # Number of records of the file, and how many of them were read.
    size: Mapped[int] = mapped_column(Id, server_default=_ZERO)
    position: Mapped[int] = mapped_column(Id, server_default=_ZERO)
    skipped: Mapped[int] = mapped_column(Id, server_default=_ZERO)
    failed: Mapped[int] = mapped_column(Id, server_default=_ZERO)
    # Why the import failed.
    reason: Mapped[str | None]
    # Who started it. Both can have been deleted.
    user_id: Mapped[int | None] = mapped_column(Id)
    key_id: Mapped[int | None] = mapped_column(Id)
    created_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # Since when a worker imports the next part.
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        Index(
            "ix_import_runs_running",
            "progress_at",
            sqlite_where=_IS_RUNNING,
            postgresql_where=_IS_RUNNING,
        ),
        AUTOINCREMENT,
    )


class ImportPart(Model):
    """Some records of the file of an import. A part is deleted when it was imported."""

    __tablename__ = "import_parts"

    import_id: Mapped[int] = mapped_column(
        Id, ForeignKey("import_runs.id", ondelete="CASCADE"), primary_key=True
    )
    # Number of records before the part.
    position: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    # Compressed JSON.
    content: Mapped[bytes] = mapped_column(LargeBinary)


class ImportLineError(Model):
    """A line that failed."""

    __tablename__ = "import_errors"

    import_id: Mapped[int] = mapped_column(
        Id, ForeignKey("import_runs.id", ondelete="CASCADE"), primary_key=True
    )
    line: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    code: Mapped[str] = mapped_column(Key)
    message: Mapped[str]
    param: Mapped[str | None]
    # The message as data, in JSON. Earlier versions have not stored it.
    sentence: Mapped[str | None]


IMPORT_RUNS = ImportRun.__table__
IMPORT_PARTS = ImportPart.__table__
IMPORT_ERRORS = ImportLineError.__table__


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


class DemoRun(Model):
    """A run of ``shop-api demo`` with its arguments and progress. Another one can resume it."""

    __tablename__ = "demo_runs"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    seed: Mapped[int] = mapped_column(Id)
    # Current time of the shop: the argument --now, or the time when the run began.
    present: Mapped[datetime] = mapped_column(UtcDateTime)
    # Numbers of requested and of committed records.
    customers: Mapped[int] = mapped_column(Id)
    coupons: Mapped[int] = mapped_column(Id)
    orders: Mapped[int] = mapped_column(Id)
    customers_loaded: Mapped[int] = mapped_column(Id)
    coupons_loaded: Mapped[int] = mapped_column(Id)
    orders_loaded: Mapped[int] = mapped_column(Id)
    # First numbers of its records. Records of earlier runs have lower numbers.
    first_customer: Mapped[int] = mapped_column(Id)
    first_coupon: Mapped[int] = mapped_column(Id)
    first_order: Mapped[int] = mapped_column(Id)
    # None until the run is complete.
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (AUTOINCREMENT,)


DEMO_RUNS = DemoRun.__table__
