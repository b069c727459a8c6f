"""What must be read again, yet not by who reads the database: encrypted under SECRET_KEY."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from flask import current_app

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


UNKNOWN_KEY_TOKEN = urlsafe_b64encode(b"\x80" + bytes(104)).decode()
"""As long as an encrypted consumer secret; decrypting it takes as long, and makes nothing."""


def encrypt(text: str) -> str:
    """Return a text, encrypted and authenticated."""
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str | None) -> str | None:
    """Return the text again; None when there is none, or it was encrypted under another key."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415  # see _fernet

    try:
        return _fernet().decrypt(token).decode() if token else None
    except InvalidToken:
        return None


def _fernet() -> Fernet:
    # Only who uses it loads it: it takes longer than the rest of a small request.
    from cryptography.fernet import Fernet  # noqa: PLC0415  # see above

    secret: str = current_app.config["SECRET_KEY"]
    key = hmac.digest(secret.encode(), b"shop api: secrets that are read again", "sha256")
    return Fernet(urlsafe_b64encode(key))
