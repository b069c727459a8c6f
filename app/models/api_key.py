"""API keys (decisions 2)."""

from datetime import datetime
from typing import TypedDict

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, UtcDateTime


class ApiKey(Model):
    """API key of a user. Deleted with the user (decisions 13)."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    user_id: Mapped[int] = mapped_column(Id, ForeignKey("users.id", ondelete="CASCADE"), index=True)
    permission: Mapped[str]
    description: Mapped[str]
    # Keyed hashes. Neither the consumer key nor the secret is stored in plaintext.
    consumer_key_hash: Mapped[str] = mapped_column(unique=True)
    consumer_secret_hash: Mapped[str]
    # Last characters of the consumer key, by which its owner recognizes it.
    truncated_key: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # Encrypted secret, required to verify signatures. None if signatures were disabled when the
    # key was created.
    consumer_secret_encrypted: Mapped[str | None]
    # Names separated by commas: ``all``, or the resources that the key can be used for.
    resources: Mapped[str] = mapped_column(server_default="all")
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    # To the minute.
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (
        CheckConstraint("permission IN ('read', 'write', 'read_write')", name="permission"),
        AUTOINCREMENT,
    )


INVITATION_OF = "invitation of "
"""Beginning of the description of an invited user's key. The username of the inviter follows."""

API_KEYS = ApiKey.__table__


class ApiKeyRow(TypedDict):
    """An API key by its column names."""

    id: int
    user_id: int
    permission: str
    description: str
    consumer_key_hash: str
    consumer_secret_hash: str
    truncated_key: str
    created_at: datetime
    consumer_secret_encrypted: str | None
    resources: str
    expires_at: datetime | None
    last_used_at: datetime | None


class AdminSession(Model):
    """Session of a browser. It has the rights of its API key, and is deleted with the key."""

    __tablename__ = "admin_sessions"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # Keyed hash of the token in the cookie.
    token_hash: Mapped[str] = mapped_column(unique=True)
    key_id: Mapped[int] = mapped_column(
        Id, ForeignKey("api_keys.id", ondelete="CASCADE"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    # The latest end of the session. It ends earlier if it is not used.
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    # To the minute.
    last_used_at: Mapped[datetime] = mapped_column(UtcDateTime)
    user_agent: Mapped[str]

    __table_args__ = (AUTOINCREMENT,)


class SignInLink(Model):
    """Link that begins a session once: with a key, or by accepting an invitation."""

    __tablename__ = "sign_in_links"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # Keyed hash of the token in the address.
    token_hash: Mapped[str] = mapped_column(unique=True)
    # The key of the session, or the key of the administrator who has written the invitation.
    key_id: Mapped[int] = mapped_column(
        Id, ForeignKey("api_keys.id", ondelete="CASCADE"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    # The user and the key that an invitation creates. None in other links.
    login: Mapped[str | None]
    role: Mapped[str | None]
    permission: Mapped[str | None]
    resources: Mapped[str | None]
    key_expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    __table_args__ = (AUTOINCREMENT,)


ADMIN_SESSIONS = AdminSession.__table__
SIGN_IN_LINKS = SignInLink.__table__
