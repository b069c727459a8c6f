"""User accounts: customers of the shop and those who administer it (spec 2.2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from app.columns import NEVER_REUSED, Id, Key, UtcDateTime
from app.db import Base
from app.models.address import BillingColumns, ShippingColumns
from app.search import comparable, search_text


class User(BillingColumns, ShippingColumns, Base):
    """An account. The ``…_key`` columns hold its names as they are compared: without case.

    Python lowers them: the lower() of the two databases differ.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    username: Mapped[str] = mapped_column(Key)
    username_key: Mapped[str] = mapped_column(Key, unique=True)
    email: Mapped[str] = mapped_column(Key)  # empty when there is none
    email_key: Mapped[str] = mapped_column(Key)
    # None when no password opens the account.
    password_hash: Mapped[str | None]
    first_name: Mapped[str] = mapped_column(Key)
    last_name: Mapped[str] = mapped_column(Key)
    name_key: Mapped[str] = mapped_column(Key)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Everything that filter[q] searches.
    search_text: Mapped[str] = mapped_column(Key)

    __table_args__ = (
        CheckConstraint("username <> ''", name="username_not_empty"),
        # decisions 5: several accounts may have no address; an address has one account.
        Index(
            "uq_users_email_key",
            "email_key",
            unique=True,
            sqlite_where=text("email_key <> ''"),
            postgresql_where=text("email_key <> ''"),
        ),
        Index("ix_users_created", "created_at", "id"),
        # Together, so that a role can refer to both.
        UniqueConstraint("id", "created_at"),
        # With the registration, so that changes of a time can be sorted by it.
        Index("ix_users_updated", "updated_at", "id", "created_at"),
        Index("ix_users_email", "email_key", "id"),
        NEVER_REUSED,
    )


def sort_key(column: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[str]:
    """Return what a column of unlimited text is sorted by: an index entry has its limits.

    The numbers are literals: SQLite uses an index on an expression only for the same text.
    """
    return func.lower(func.substr(column, literal_column("1"), literal_column("200")))


NAME_SORT, FIRST_NAME_SORT, LAST_NAME_SORT = (
    sort_key(column) for column in (User.name_key, User.first_name, User.last_name)
)
Index("ix_users_name", NAME_SORT, User.id)
Index("ix_users_first_name", FIRST_NAME_SORT, User.id)
Index("ix_users_last_name", LAST_NAME_SORT, User.id)


def with_keys(account: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an account, completed by the ones that are made of others."""
    name = f"{account['first_name']} {account['last_name']}".strip()
    return {
        **account,
        "username_key": comparable(account["username"]),
        "email_key": comparable(account["email"]),
        "name_key": comparable(name),
        "search_text": search_text(account["email"], account["username"], name),
    }


class UserRole(Base):
    """A role that a user has; the first one is the one that the API shows (spec 2.2)."""

    __tablename__ = "user_roles"

    user_id: Mapped[int] = mapped_column(Id, primary_key=True)
    role: Mapped[str] = mapped_column(Key, primary_key=True)
    position: Mapped[int]
    # The user's registration, which the foreign key keeps the same: a list of one role by
    # registration, and its total, are read from the index below alone.
    registered_at: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (
        ForeignKeyConstraint(
            ["user_id", "registered_at"],
            ["users.id", "users.created_at"],
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        Index("ix_user_roles_role", "role", "registered_at", "user_id"),
        Index("ix_user_roles_first", "user_id", "position", "role"),
    )


def role_of(user_id: int, role: str, registered_at: datetime) -> dict[str, Any]:
    """Return the columns of a user's first role."""
    return {"user_id": user_id, "role": role, "position": 0, "registered_at": registered_at}
