"""API keys (decisions 2)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Base
from app.db.types import AUTOINCREMENT, Id, UtcDateTime


class ApiKey(Base):
    """A key of a user; it goes when the user goes (decisions 13)."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"), index=True)
    permission: Mapped[str]
    description: Mapped[str]
    # Keyed hashes: neither half is stored in clear.
    consumer_key_hash: Mapped[str] = mapped_column(unique=True)
    consumer_secret_hash: Mapped[str]
    # The end of the consumer key, by which its owner recognises it.
    ending: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # The secret again, encrypted: a signature can only be checked with it. None where the mounts
    # that accept signatures were off when the key was made.
    consumer_secret_encrypted: Mapped[str | None]

    __table_args__ = (
        CheckConstraint("permission IN ('read', 'write', 'read_write')", name="permission"),
        AUTOINCREMENT,
    )
