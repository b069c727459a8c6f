"""Sessions of the admin pages, and links that begin one."""

from datetime import datetime
from typing import cast

from sqlalchemy import ForeignKey, Table
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, UtcDateTime


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


ADMIN_SESSIONS = cast("Table", AdminSession.__table__)
SIGN_IN_LINKS = cast("Table", SignInLink.__table__)
