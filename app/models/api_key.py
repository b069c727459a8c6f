"""API keys (decisions 2)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Base
from app.db.types import AUTOINCREMENT, Id, UtcDateTime


class ApiKey(Base):
    """API key of a user. Deleted with the user (decisions 13)."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"), index=True)
    permission: Mapped[str]
    description: Mapped[str]
    # Keyed hashes. Neither the consumer key nor the secret is stored in plaintext.
    consumer_key_hash: Mapped[str] = mapped_column(unique=True)
    consumer_secret_hash: Mapped[str]
    # Last characters of the consumer key, by which its owner recognises it.
    truncated_key: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Encrypted secret, required to verify signatures. None if the legacy API was disabled when the
    # key was created.
    consumer_secret_encrypted: Mapped[str | None]

    __table_args__ = (
        CheckConstraint("permission IN ('read', 'write', 'read_write')", name="permission"),
        AUTOINCREMENT,
    )
