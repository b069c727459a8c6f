"""Encryption with SECRET_KEY, for stored secrets that the service has to read again."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from flask import current_app

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


UNKNOWN_KEY_TOKEN = urlsafe_b64encode(b"\x80" + bytes(104)).decode()
"""Token for an unknown key. Decryption fails, but takes as long as for a consumer secret."""


def encrypt(text: str) -> str:
    """Encrypt and authenticate a text."""
    return _fernet().encrypt(text.encode()).decode()


def decrypt(token: str | None) -> str | None:
    """Decrypt a text. Returns None without a token, or if it was encrypted with another key."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415  # see _fernet

    try:
        return _fernet().decrypt(token).decode() if token else None
    except InvalidToken:
        return None


def _fernet() -> Fernet:
    # Import on first use, because the import takes longer than a small request.
    from cryptography.fernet import Fernet  # noqa: PLC0415  # see above

    secret: str = current_app.config["SECRET_KEY"]
    key = hmac.digest(secret.encode(), b"shop api: secrets that are read again", "sha256")
    return Fernet(urlsafe_b64encode(key))
