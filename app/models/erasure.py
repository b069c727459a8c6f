"""Erasures that are not complete: what the worker still clears of deleted accounts (people 5)."""

from datetime import datetime

from sqlalchemy import ForeignKey, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, UtcDateTime

_ZERO = text("0")


class Erasure(Model):
    """Erasure of an account with so many orders, uses or events that the worker completes it.

    The account no longer exists. Readers hide what is left of it.
    """

    __tablename__ = "erasures"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # ``Traces`` as encrypted JSON. It contains the addresses of the account.
    traces_encrypted: Mapped[str]
    # Where the next batch begins: the step, and the last record of the step.
    step: Mapped[int] = mapped_column(Id)
    after: Mapped[int] = mapped_column(Id)
    # Number of records that were cleared.
    erased: Mapped[int] = mapped_column(Id, server_default=_ZERO)

    __table_args__ = (AUTOINCREMENT,)


class ErasedAccount(Model):
    """Account of an erasure, or an account merged into it. Orders and uses still name it."""

    __tablename__ = "erased_accounts"

    customer_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    erasure_id: Mapped[int] = mapped_column(
        Id, ForeignKey("erasures.id", ondelete="CASCADE"), index=True
    )
    # The hash that uses without an address get, so that limits count them at once.
    email_normalized: Mapped[str] = mapped_column(server_default=text("''"))


ERASURES = Erasure.__table__
ERASED_ACCOUNTS = ErasedAccount.__table__
