"""How many records there are of a week, counted as they are written."""

from __future__ import annotations

from datetime import date

from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Base
from app.db.types import Id, Key


class RowCount(Base):
    """A number of records of one kind, label and week (from Monday on, UTC) of creation.

    A list reads its total here, and how many weeks to leave out before a page, instead of counting
    a million entries of an index. With a week a list of years is some hundred numbers to add and
    at most some thousand entries to skip; a day or a month would have more of the one or the other.

    Triggers of the database keep the numbers (migration 0004), within the transaction of every
    write, whoever writes: also a bulk, a cascade, an import. A number is spread over slots: on
    PostgreSQL writers at the same time count in slots of their own, and so never wait for each
    other. Only the sum has a meaning; a slot may be negative.
    """

    __tablename__ = "tallies"

    # The table: users, user_roles (label: the role), coupons and orders (label: the status).
    kind: Mapped[str] = mapped_column(Key, primary_key=True)
    label: Mapped[str] = mapped_column(Key, primary_key=True)
    week: Mapped[date] = mapped_column(primary_key=True)
    slot: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(Id)

    __table_args__ = {"sqlite_with_rowid": False}
