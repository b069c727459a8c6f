"""Lookup and verification of API keys, and the cache of their principals (decisions 2)."""

import hmac
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from flask import current_app
from sqlalchemy import bindparam, or_, select, update

from app.auth.hashes import NO_SECRET, imported_hash, keyed_hash
from app.auth.principals import (
    ALL_RESOURCES,
    UNKNOWN_KEY,
    Credentials,
    InvalidCredentials,
    Permission,
    Principal,
    capabilities_of,
)
from app.db.read_pool import ReadRow, fetch
from app.db.session import try_to_write
from app.errors import Sentence, ShopError
from app.models import API_KEYS, USER_ROLES, USERS

MAX_AGE_SECONDS = 1.0
"""How long a principal is cached. Changes of keys and roles take effect within this time, or
immediately with ``note_revocation``. A key that expires is not cached beyond that time."""

MAX_CACHED_PRINCIPALS = 1000

_REVOCATIONS = "revocations"  # in the instance folder

_CACHE = "shop_api_principals"  # on app.extensions
# Per process, so that the cache contains no plain hash of a secret.
_CACHE_KEY = secrets.token_bytes(32)

_KEY_WITH_ROLES = (
    select(
        API_KEYS.c.id,
        API_KEYS.c.user_id,
        API_KEYS.c.permission,
        API_KEYS.c.resources,
        API_KEYS.c.expires_at,
        API_KEYS.c.last_used_at,
        API_KEYS.c.consumer_secret_hash,
        API_KEYS.c.consumer_secret_encrypted,
        USER_ROLES.c.role,
    )
    .outerjoin(USER_ROLES, USER_ROLES.c.user_id == API_KEYS.c.user_id)
    .where(
        API_KEYS.c.consumer_key_hash.in_(
            (bindparam("consumer_key_hash"), bindparam("imported_key_hash"))
        )
    )
    .order_by(API_KEYS.c.id)
)

_KEY_BY_ID = (
    select(API_KEYS, USER_ROLES.c.role)
    .outerjoin(USER_ROLES, USER_ROLES.c.user_id == API_KEYS.c.user_id)
    .where(API_KEYS.c.id == bindparam("key_id"))
)

_USER = select(USERS.c.id).where(USERS.c.id == bindparam("user_id"))


def key_with_roles(consumer_key: str) -> Sequence[ReadRow]:
    """Return one row for each role of the user of a key, or no rows for an unknown key.

    White space at the ends of the key is ignored, because it is often copied together with it.
    """
    consumer_key = consumer_key.strip()
    hashes = {
        "consumer_key_hash": keyed_hash(consumer_key),
        "imported_key_hash": imported_hash(consumer_key),
    }
    rows = fetch(_KEY_WITH_ROLES, hashes)
    # If a key was created here and also imported, use the older record.
    return [row for row in rows if row.id == rows[0].id]


def principal_of(key: Sequence[ReadRow]) -> Principal:
    """Return the principal of a key whose secret has been verified, and record its use.

    Raises:
        InvalidCredentials: the key has expired.
    """
    first = key[0]
    if first.expires_at is not None and first.expires_at <= datetime.now(UTC):
        raise InvalidCredentials("The API key has expired.")
    _record_use(first.id, first.last_used_at)
    return Principal(
        user_id=first.user_id,
        key_id=first.id,
        permission=Permission(first.permission),
        resources=allowed_resources(first.resources),
        expires_at=first.expires_at,
        capabilities=capabilities_of([row.role for row in key if row.role]),
    )


def principal_with_id(key_id: int) -> Principal:
    """Return the principal of the key with an ID, and record its use.

    Raises:
        InvalidCredentials: the key was revoked or has expired.
    """
    key = fetch(_KEY_BY_ID, {"key_id": key_id})
    if not key:
        raise InvalidCredentials(UNKNOWN_KEY)
    return principal_of(key)


def allowed_resources(stored: str) -> frozenset[str] | None:
    """Return the resources in the ``resources`` column of a key, or None if all are allowed."""
    names = frozenset(stored.split(","))
    return None if ALL_RESOURCES in names else names


@dataclass(frozen=True, slots=True)
class ApiKeyCredentials:
    """A consumer key and its secret, without the white space at their ends (decisions 2)."""

    consumer_key: str
    consumer_secret: str = field(repr=False)

    def principal(self) -> Principal:
        """Return the principal of the key, or raise InvalidCredentials."""
        return cached_principal(f"{self.consumer_key}\0{self.consumer_secret}", self.load_principal)

    def load_principal(self) -> Principal:
        """Load the principal from the database, without the cache."""
        key = key_with_roles(self.consumer_key)
        # Unknown keys take as much work as wrong secrets.
        expected = key[0].consumer_secret_hash if key else NO_SECRET
        if not hmac.compare_digest(keyed_hash(self.consumer_secret.strip()), expected) or not key:
            raise InvalidCredentials(UNKNOWN_KEY)
        return principal_of(key)


def authenticate(
    credentials: Credentials | None, record_failure: Callable[[str, str], ShopError]
) -> Principal:
    """Return the principal of a request (decisions 2).

    Args:
        record_failure: function that takes the consumer key of invalid credentials and the reason,
            and returns the error to raise.

    Raises:
        ShopError: credentials are missing or invalid.
    """
    if credentials is None:
        raise authentication_error("Send an API key by HTTP Basic authentication.")
    try:
        return credentials.principal()
    except InvalidCredentials as error:
        raise record_failure(credentials.consumer_key, str(error)) from None


def require_permission(principal: Principal, method: str) -> None:
    """Raise ShopError unless the permission of the key allows an HTTP method (decisions 2)."""
    if not principal.permission.allows(method):
        reads = method in {"GET", "HEAD"}
        raise authentication_error(
            "This API key has no read permission."
            if reads
            else "This API key has no write permission."
        )


def require_resources(principal: Principal, *needed: str) -> None:
    """Raise ShopError unless the key allows all of the resources."""
    if principal.resources is not None:
        for resource in needed:
            if resource not in principal.resources:
                reason = Sentence("This API key is not valid for the resource {0}.", resource)
                raise authentication_error(reason)


def require_user(principal: Principal) -> None:
    """Raise ShopError if the user of a request was deleted with its keys.

    For a second, another machine does not notice it (``cached_principal``). Call this function when
    a record of the user cannot be written.
    """
    if not fetch(_USER, {"user_id": principal.user_id}):
        forget_principals()
        raise authentication_error(UNKNOWN_KEY)


def authentication_error(reason: str | Sentence) -> ShopError:
    """Return the error for missing, invalid or insufficient credentials."""
    headers = {"WWW-Authenticate": 'Basic realm="Shop Administration API", charset="UTF-8"'}
    return ShopError("shop_api_authentication_error", headers=headers, reason=reason)


def _record_use(key_id: int, last_used_at: datetime | None) -> None:
    """Store that a key is used in the current minute.

    A worker reads a key at most once per second, together with its ``last_used_at``. Only the first
    request of a key in a minute writes, and it does not wait for other transactions. If the
    database is busy or read-only, a later request writes instead.
    """
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    if last_used_at is not None and last_used_at >= minute:
        return
    is_due = or_(API_KEYS.c.last_used_at.is_(None), API_KEYS.c.last_used_at < minute)
    key = (
        select(API_KEYS.c.id)
        .where(API_KEYS.c.id == key_id, is_due)
        .with_for_update(skip_locked=True)
    )
    try_to_write(update(API_KEYS).where(API_KEYS.c.id.in_(key)).values(last_used_at=minute))


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
