"""Cache of principals, so that most requests do not look up their key."""

import os
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from flask import current_app

from app.auth.principals import Principal

MAX_AGE_SECONDS = 1.0
"""How long a principal is cached. Changes of keys and roles take effect within this time, or
immediately with ``note_revocation``. A key that expires is not cached beyond that time."""

MAX_CACHED_PRINCIPALS = 1000

_REVOCATIONS = "revocations"  # in the instance folder

_CACHE = "shop_api_principals"  # on app.extensions
# Per process, so that the cache contains no plain hash of a secret.
_CACHE_KEY = secrets.token_bytes(32)


def cached_principal(sent: str, load: Callable[[], Principal]) -> Principal:
    """Return the principal of credentials from the cache, or load and cache it.

    A cached principal is used for at most MAX_AGE_SECONDS, and never after a revocation on this
    machine or after its key has expired.

    Args:
        sent: the credentials as sent.
        load: function that loads the principal, or raises InvalidCredentials.
    """
    cache: dict[bytes, tuple[int, float, Principal]]
    cache = current_app.extensions.setdefault(_CACHE, {})
    name = blake2b(sent.encode(), key=_CACHE_KEY).digest()
    # Read both before the key, so that a revocation in between is not missed.
    revocations, now = _revocation_count(), time.monotonic()
    found = cache.get(name)
    if found and found[0] == revocations and now < found[1]:
        return found[2]
    principal = load()
    age = MAX_AGE_SECONDS
    if principal.expires_at is not None:
        age = min(age, (principal.expires_at - datetime.now(UTC)).total_seconds())
    if len(cache) >= MAX_CACHED_PRINCIPALS:
        cache.clear()
    cache[name] = revocations, now + age, principal
    return principal


def forget_principals() -> None:
    """Remove the cached principals of this process, because one of them is out of date."""
    current_app.extensions.pop(_CACHE, None)


def note_revocation() -> None:
    """Invalidate the cached principals of all processes that share the instance folder.

    Call this function after the commit of a transaction that revokes or restricts a key. It
    appends to a file, whose size is compared on each cache lookup. The comparison takes a
    microsecond and needs no server.
    """
    forget_principals()
    try:
        with Path(current_app.instance_path, _REVOCATIONS).open("ab") as file:
            file.write(b".")
    except OSError as error:
        current_app.logger.warning(
            "%s cannot be written. Other processes accept revoked keys for up to %g seconds.",
            error.filename,
            MAX_AGE_SECONDS,
        )


def _revocation_count() -> int:
    try:
        # Called by each request.
        file = f"{current_app.instance_path}/{_REVOCATIONS}"
        return os.stat(file).st_size  # noqa: PTH116  # a Path takes five times as long
    except OSError:
        return 0
