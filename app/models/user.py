"""User accounts of customers and administrators (spec 2.2)."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    Computed,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from app.conversions.emails import comparable_email
from app.conversions.text import comparable, comparable_name
from app.db.records import Record
from app.db.search import search_text
from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, Json, Key, MoneySum, UtcDateTime
from app.models.address import AddressRow, BillingColumns, ShippingColumns


def sort_key(column: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[str]:
    """Return the sort key of a text column, shortened because index entries have a maximum size."""
    return func.lower(func.substr(column, 1, 200))


def _sort_key_of(name: str) -> Computed:
    # Migration 0019 makes these columns virtual on SQLite, which cannot add stored ones.
    return Computed(f"lower(substr({name}, 1, 200))", persisted=True)


class User(BillingColumns, ShippingColumns, Model):
    """A user account.

    The ``…_normalized`` columns contain lower-cased values for comparisons. They are lower-cased in
    Python, because ``lower()`` differs between the two databases.
    """

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    username: Mapped[str] = mapped_column(Key)
    username_normalized: Mapped[str] = mapped_column(Key)
    email: Mapped[str] = mapped_column(Key)  # empty if the account has no e-mail
    email_normalized: Mapped[str] = mapped_column(Key)
    # None if the account has no password.
    password_hash: Mapped[str | None]
    first_name: Mapped[str] = mapped_column(Key)
    last_name: Mapped[str] = mapped_column(Key)
    name_normalized: Mapped[str] = mapped_column(Key)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Labels that coupons can name, None for none. ``UserTag`` has them, too.
    tags: Mapped[list[str] | None] = mapped_column(Json(none_as_null=True), sort_order=4)
    # Number of the changes that other columns do not show, such as those of metadata.
    revision: Mapped[int] = mapped_column(Id, server_default=text("0"), sort_order=2)
    # Lower-cased text that filter[q] searches.
    search_text: Mapped[str] = mapped_column(Key)

    # Sort keys of names. These are generated columns, because PostgreSQL reads the
    # records too if an index contains an expression.
    name_sort: Mapped[str] = mapped_column(Key, _sort_key_of("name_normalized"), sort_order=1)
    first_name_sort: Mapped[str] = mapped_column(Key, _sort_key_of("first_name"), sort_order=1)
    last_name_sort: Mapped[str] = mapped_column(Key, _sort_key_of("last_name"), sort_order=1)

    __table_args__ = (
        CheckConstraint("username <> ''", name="username_not_empty"),
        # decisions 5: an e-mail belongs to one account, but several accounts may have none.
        Index(
            "uq_users_email_normalized",
            "email_normalized",
            unique=True,
            sqlite_where=text("email_normalized <> ''"),
            postgresql_where=text("email_normalized <> ''"),
        ),
        # With the time of the last change, for lists of a period of changes.
        Index("ix_users_created", "created_at", "id", "updated_at"),
        # Named after the column before migration 0011, because SQLite cannot rename a constraint.
        # With the ID, so that PostgreSQL reads a list by username from this index alone.
        UniqueConstraint(
            "username_normalized", name="uq_users_username_key", postgresql_include=["id"]
        ),
        # Both columns, because the foreign key of a role refers to both.
        UniqueConstraint("id", "created_at"),
        # Includes created_at, so that users changed in a period can be sorted by it.
        Index("ix_users_updated", "updated_at", "id", "created_at"),
        # By ID, for users changed in a period in this order.
        Index("ix_users_changed", "id", "updated_at"),
        Index("ix_users_email", "email_normalized", "id"),
        Index("ix_users_name", "name_sort", "id"),
        Index("ix_users_first_name", "first_name_sort", "id"),
        Index("ix_users_last_name", "last_name_sort", "id"),
        AUTOINCREMENT,
    )


def with_normalized(account: Mapping[str, Any]) -> Record:
    """Return the columns of an account with its derived columns added."""
    name = f"{account['first_name']} {account['last_name']}".strip()
    email = comparable_email(account["email"])
    return {
        **account,
        "username_normalized": comparable(account["username"]),
        "email_normalized": email,
        "name_normalized": comparable_name(name),
        "search_text": search_text(account["email"], email, account["username"], name),
    }


class UserRole(Model):
    """Role of a user. Responses contain the first role (spec 2.2)."""

    __tablename__ = "user_roles"

    user_id: Mapped[int] = mapped_column(Id, primary_key=True)
    role: Mapped[str] = mapped_column(Key, primary_key=True)
    position: Mapped[int]
    # Copy of the user's created_at, kept equal by the foreign key, so that a list of one role by
    # registration and its total are read from the index below alone.
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


class UserTag(Model):
    """Tag of a user, for the filter of lists."""

    __tablename__ = "user_tags"

    tag: Mapped[str] = mapped_column(Key, primary_key=True)
    user_id: Mapped[int] = mapped_column(
        Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class MergedAccount(Model):
    """Account that was merged into another one, which no longer exists (people 6).

    Uses of coupons with its address count for the customer, until another account has the address.
    """

    __tablename__ = "merged_accounts"

    # The ID of the removed account.
    id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    customer_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"))
    # Empty if it had no address, or if a later merge removed another account with this address.
    email: Mapped[str] = mapped_column(Key)
    email_normalized: Mapped[str | None] = mapped_column(Key)

    __table_args__ = (
        UniqueConstraint("email_normalized"),
        Index("ix_merged_accounts_customer", "customer_id", "id"),
    )


def role_of(
    user_id: int, role: str, registered_at: datetime, position: int = 0
) -> dict[str, object]:
    """Return the columns of a role of a user; by default, of the first one."""
    return {"user_id": user_id, "role": role, "position": position, "registered_at": registered_at}


USERS = User.__table__

ON_REQUEST: Mapping[str, Any] = {"tags": None}
"""Columns that a request need not contain, and files of version 1.0 do not, with their values."""

USER_ROLES = UserRole.__table__
USER_TAGS = UserTag.__table__
MERGED_ACCOUNTS = MergedAccount.__table__


class UserRow(AddressRow):
    """A user by its column names, without those that the database computes."""

    id: int
    username: str
    username_normalized: str
    email: str
    email_normalized: str
    password_hash: str | None
    first_name: str
    last_name: str
    name_normalized: str
    created_at: datetime
    updated_at: datetime
    search_text: str
    revision: int
    tags: list[str] | None


class CustomerTotal(Model):
    """The ``orders_count`` and ``total_spent`` of a user, in indexes that lists are read from.

    Database triggers add a row for each new user (migration 0046). The values are those of the
    statuses in ``TotalStatuses``, and are out of date for the customers in ``StaleTotal``. So a
    list is exact at any time, although writers of orders never change these rows, which writers of
    one customer would wait for.
    """

    __tablename__ = "customer_totals"

    customer_id: Mapped[int] = mapped_column(
        Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    orders_count: Mapped[int] = mapped_column(Id)
    total_spent: Mapped[Decimal] = mapped_column(MoneySum)

    __table_args__ = (
        # With the other sum, which lists in this order compare.
        Index("ix_customer_totals_orders_count", "orders_count", "customer_id", "total_spent"),
        Index("ix_customer_totals_total_spent", "total_spent", "customer_id"),
        {"sqlite_with_rowid": False},
    )


class StaleTotal(Model):
    """Customer whose orders have changed since the row in ``CustomerTotal`` was computed.

    Database triggers add a row with each change of ``OrderSum``, in the same transaction. Each
    transaction adds a shard of its own on PostgreSQL, so that none waits for another one.
    """

    __tablename__ = "stale_totals"

    customer_id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    shard: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)

    __table_args__ = {"sqlite_with_rowid": False}


class TotalStatuses(Model):
    """The statuses that count in ``CustomerTotal``: a single row.

    A process in which other statuses count does not use the totals.
    """

    __tablename__ = "total_statuses"

    id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    statuses: Mapped[str] = mapped_column(Key)


CUSTOMER_TOTALS = CustomerTotal.__table__
STALE_TOTALS = StaleTotal.__table__
TOTAL_STATUSES = TotalStatuses.__table__
