"""Answers that are given again to a repeated request (``Idempotency-Key``)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Base
from app.db.types import Id, UtcDateTime


class IdempotencyRecord(Base):
    """The answer of a request that was done, written in the transaction that did it."""

    __tablename__ = "kept_answers"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # Keyed hashes: of who asks for what under which key; of the body, which may hold a password.
    request_hash: Mapped[str] = mapped_column(unique=True)
    body_hash: Mapped[str]
    status: Mapped[int]
    answer: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
