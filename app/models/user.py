"""User accounts and their roles."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db import NEVER_REUSED, Base, Id, UtcDateTime


class User(Base):
    """An account: a customer of the shop or one who administers it."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    username: Mapped[str]
    # The name without case, as Python lowers it: the lower() of the two databases differ.
    username_key: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint("username <> ''", name="username_not_empty"),
        NEVER_REUSED,
    )


class UserRole(Base):
    """A role that a user has; the first one is the one that the API shows (spec 2.2)."""

    __tablename__ = "user_roles"

    user_id: Mapped[int] = mapped_column(
        Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    role: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int]
