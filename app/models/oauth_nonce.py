"""Nonces of OAuth 1.0a: each is good once (decisions 12)."""

from __future__ import annotations

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Base
from app.db.types import Key


class OAuthNonce(Base):
    """A nonce that a key has used; it goes when its timestamp is too old to be accepted."""

    __tablename__ = "oauth_nonces"

    # A hash of the key's id and the nonce: a nonce may be long.
    id: Mapped[str] = mapped_column(Key, primary_key=True)
    # The timestamp that was signed with it, in Unix seconds.
    sent: Mapped[int] = mapped_column(BigInteger, index=True)
