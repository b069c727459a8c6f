"""Idempotency records: stored responses to requests with an ``Idempotency-Key``."""

from datetime import datetime, timedelta

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key, UtcDateTime

RETENTION = timedelta(hours=24)
"""How long a response is stored."""


class IdempotencyRecord(Model):
    """Response to a completed request, stored in the same transaction as its changes."""

    __tablename__ = "idempotency_records"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # Keyed hashes of the API key, operation and idempotency key, and of the body, which may contain
    # a password.
    request_hash: Mapped[str] = mapped_column(unique=True)
    body_hash: Mapped[str]
    status: Mapped[int]
    response_body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class IdempotencyPerson(Model):
    """Person whose data a stored response contains. It is blanked when the person is deleted."""

    __tablename__ = "idempotency_persons"

    record_id: Mapped[int] = mapped_column(
        Id, ForeignKey("idempotency_records.id", ondelete="CASCADE"), primary_key=True
    )
    # customer:<id>, order:<id>, or email: and the keyed hash of the address.
    person: Mapped[str] = mapped_column(Key, primary_key=True, index=True)


IDEMPOTENCY_RECORDS = IdempotencyRecord.__table__
IDEMPOTENCY_PERSONS = IdempotencyPerson.__table__
