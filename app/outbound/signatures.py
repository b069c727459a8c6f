"""Signatures of deliveries: Standard Webhooks, and HMAC of the body alone (events 2 and 3).

The specification of Standard Webhooks is at https://www.standardwebhooks.com.
"""

import hmac
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence

from app.conversions.webhooks import SECRET_PREFIX, secret_key

SECRET_BYTES = 32
"""Length of a generated secret."""

MAX_AGE_SECONDS = 5 * 60
"""Difference between the time of a request and the clock of its receiver that is tolerated."""


def new_secret() -> str:
    """Return a random secret: ``whsec_`` and the base64 form of 32 bytes."""
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secrets_in_use: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of ``webhook-signature``: one ``v1`` signature for each secret.

    Args:
        secrets_in_use: the current secret and, for a day after a rotation, the previous one.
        message_id: value of ``webhook-id``.
        timestamp: value of ``webhook-timestamp``, in Unix seconds.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_hmac(_key(secret), signed)}" for secret in secrets_in_use)


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether headers, by lower-case name, have a valid signature of either form."""
    if of_body := headers.get("x-wc-webhook-signature"):
        return hmac.compare_digest(of_body.encode(), _hmac(secret.encode(), body).encode())
    timestamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > MAX_AGE_SECONDS:
        return False
    expected = sign([secret], headers.get("webhook-id", ""), int(timestamp), body)
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(each.encode(), expected.encode()) for each in given)


def _key(secret: str) -> bytes:
    # The secret of a webhook that another shop created can be any text.
    return secret_key(secret) or secret.encode()


def _hmac(key: bytes, message: bytes) -> str:
    return b64encode(hmac.digest(key, message, "sha256")).decode()
