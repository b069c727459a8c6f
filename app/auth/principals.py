"""Principals, capabilities, roles and API keys (decisions 2)."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from flask import current_app
from sqlalchemy import Row, bindparam, select

from app.auth.throttling import FailedLoginLimiter, network
from app.db.read_pool import fetch
from app.errors import ShopError
from app.models import ApiKey, UserRole

MAX_AGE_SECONDS = 1.0
"""How long a principal is cached. Changes of keys and roles take effect within this time, or
immediately with ``note_revocation``."""

MAX_CACHED_PRINCIPALS = 1000

_CACHE = "shop_api_principals"  # on app.extensions
_CACHE_KEY = secrets.token_bytes(
    32
)  # per process, so that the cache contains no plain hash of a secret


class Capability(StrEnum):
    """A permission of a user (spec 5, decisions 2)."""

    PUBLISH_SHOP_COUPONS = "publish_shop_coupons"
    READ_PRIVATE_SHOP_COUPONS = "read_private_shop_coupons"
    EDIT_SHOP_COUPONS = "edit_shop_coupons"
    EDIT_OTHERS_SHOP_COUPONS = "edit_others_shop_coupons"
    DELETE_SHOP_COUPONS = "delete_shop_coupons"
    DELETE_OTHERS_SHOP_COUPONS = "delete_others_shop_coupons"
    PUBLISH_SHOP_ORDERS = "publish_shop_orders"
    READ_PRIVATE_SHOP_ORDERS = "read_private_shop_orders"
    EDIT_SHOP_ORDERS = "edit_shop_orders"
    EDIT_OTHERS_SHOP_ORDERS = "edit_others_shop_orders"
    DELETE_SHOP_ORDERS = "delete_shop_orders"
    DELETE_OTHERS_SHOP_ORDERS = "delete_others_shop_orders"
    LIST_USERS = "list_users"
    CREATE_USERS = "create_users"
    EDIT_USERS = "edit_users"
    DELETE_USERS = "delete_users"


ROLES: dict[str, frozenset[Capability]] = {
    "administrator": frozenset(Capability),
    "shop_manager": frozenset(Capability) - {Capability.DELETE_USERS},
    "customer": frozenset(),
    "subscriber": frozenset(),
}


class Permission(StrEnum):
    """The permission of an API key."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"

    def allows(self, method: str) -> bool:
        """Return whether this permission allows an HTTP method."""
        needed = Permission.READ if method in {"GET", "HEAD"} else Permission.WRITE
        return self in {needed, Permission.READ_WRITE}


@dataclass(frozen=True, slots=True)
class Principal:
    """The user of a request, with the capabilities of the user."""

    user_id: int
    capabilities: frozenset[Capability]
    key_id: int | None = None
    permission: Permission = Permission.READ_WRITE

    def can(self, *capabilities: Capability) -> bool:
        """Return whether the user has all of the capabilities."""
        return self.capabilities.issuperset(capabilities)

    def require(self, code: str, *capabilities: Capability) -> None:
        """Raise ShopError with ``code`` unless the user has all of the capabilities."""
        if not self.can(*capabilities):
            raise ShopError(code)


class InvalidCredentials(Exception):
    """The credentials of a request are invalid. The message is safe to show to the client."""


class Credentials(Protocol):
    """The credentials of a request."""

    @property
    def consumer_key(self) -> str:
        """The consumer key, or an empty string."""

    def principal(self) -> Principal:
        """Return the principal of the credentials, or raise InvalidCredentials."""


_KEY_WITH_ROLES = (
    select(
        ApiKey.id,
        ApiKey.user_id,
        ApiKey.permission,
        ApiKey.consumer_secret_hash,
        ApiKey.consumer_secret_encrypted,
        UserRole.role,
    )
    .outerjoin(UserRole, UserRole.user_id == ApiKey.user_id)
    .where(ApiKey.consumer_key_hash == bindparam("consumer_key_hash"))
)


NO_SECRET = "0" * 64
"""A value with the length of a hash that matches no secret."""


def capabilities_of(roles: list[str]) -> frozenset[Capability]:
    """Return the capabilities of all roles. Unknown roles have no capabilities."""
    return frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))


def key_with_roles(consumer_key: str) -> Sequence[Row[Any]]:
    """Return one row for each role of the user of a key, or no rows for an unknown key."""
    return fetch(_KEY_WITH_ROLES, {"consumer_key_hash": keyed_hash(consumer_key)})


def principal_of(key: Sequence[Row[Any]]) -> Principal:
    """Return the principal of a key."""
    return Principal(
        user_id=key[0].user_id,
        key_id=key[0].id,
        permission=Permission(key[0].permission),
        capabilities=capabilities_of([row.role for row in key if row.role]),
    )


def cached_principal(sent: str, load: Callable[[], Principal]) -> Principal:
    """Return the principal of credentials from the cache, or load and cache it.

    A cached principal is used for at most MAX_AGE_SECONDS, and never after a revocation on this
    machine.

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
    if found and found[0] == revocations and now - found[1] < MAX_AGE_SECONDS:
        return found[2]
    principal = load()
    if len(cache) >= MAX_CACHED_PRINCIPALS:
        cache.clear()
    cache[name] = revocations, now, principal
    return principal


def note_revocation() -> None:
    """Invalidate the cached principals of all processes that share the instance folder.

    Call this function after the commit of a transaction that revokes or restricts a key. It
    appends to a file, whose size is compared on each cache lookup. The comparison takes a
    microsecond and needs no server.
    """
    current_app.extensions.pop(_CACHE, None)
    try:
        with _revocation_file().open("ab") as file:
            file.write(b".")
    except OSError as error:
        current_app.logger.warning(
            "%s cannot be written. Other processes accept revoked keys for up to %g seconds.",
            error.filename,
            MAX_AGE_SECONDS,
        )


def _revocation_count() -> int:
    try:
        return _revocation_file().stat().st_size
    except OSError:
        return 0


def _revocation_file() -> Path:
    return Path(current_app.instance_path, "revocations")


@dataclass(frozen=True, slots=True)
class ApiKeyCredentials:
    """A consumer key and its secret (decisions 2)."""

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
        if not hmac.compare_digest(keyed_hash(self.consumer_secret), expected) or not key:
            raise InvalidCredentials("The consumer key or its secret is wrong.")
        return principal_of(key)


ADDRESSES_PER_KEY = 10
"""The limit of failed logins of a key, as a multiple of the limit of an address."""


MAX_ADDRESSES = 10_000
"""Maximum number of addresses over their limit that a worker stores."""


class FailedLogins:
    """Counts failed logins for each address and each key, and creates the error responses.

    Args:
        per_minute: failed logins of an address that receive 401 before the status becomes 429. A
            key has ADDRESSES_PER_KEY times as many. 0 disables the limits.
        redis_url: the Redis server that counts for all workers, or None to count in the memory of
            each worker.
    """

    def __init__(self, per_minute: int, redis_url: str | None = None) -> None:
        self._per_minute = per_minute
        self._limiter = FailedLoginLimiter(redis_url)
        self._blocked_until: dict[str, float] = {}

    def is_blocked(self, address: str) -> bool:
        """Return whether this worker sent a 429 response to an address that has not expired.

        This check does not count anything or use Redis, so it costs valid requests nothing.
        """
        return (
            bool(self._blocked_until)
            and self._blocked_until.get(network(address), 0) > time.monotonic()
        )

    def record(self, address: str, consumer_key: str, reason: str) -> ShopError:
        """Count a failed login and return the error for the response."""
        limits = {
            f"address {network(address)}": self._per_minute,
            f"key {keyed_hash(consumer_key)}": self._per_minute * ADDRESSES_PER_KEY,
        }
        seconds = self._limiter.hit(limits) if self._per_minute else 0
        if not seconds:
            return _authentication_error(reason)
        if len(self._blocked_until) >= MAX_ADDRESSES:
            self._blocked_until.clear()
        self._blocked_until[network(address)] = time.monotonic() + seconds
        return ShopError("shop_api_too_many_requests", headers={"Retry-After": str(seconds)})


def authenticate(
    credentials: Credentials | None, record_failure: Callable[[str, str], ShopError]
) -> Principal:
    """Return the principal of a request (decisions 2).

    Args:
        credentials: the credentials of the request, or None.
        record_failure: function that takes the consumer key of invalid credentials and the reason,
            and returns the error to raise.

    Raises:
        ShopError: credentials are missing or invalid.
    """
    if credentials is None:
        raise _authentication_error("Send an API key by HTTP Basic authentication.")
    try:
        return credentials.principal()
    except InvalidCredentials as error:
        raise record_failure(credentials.consumer_key, str(error)) from None


def require_permission(principal: Principal, method: str) -> None:
    """Raise ShopError unless the permission of the key allows an HTTP method (decisions 2)."""
    if not principal.permission.allows(method):
        kind = "read" if method in {"GET", "HEAD"} else "write"
        raise _authentication_error(f"This API key has no {kind} permission.")


def _authentication_error(reason: str) -> ShopError:
    challenge = {"WWW-Authenticate": 'Basic realm="Shop Administration API", charset="UTF-8"'}
    return ShopError("shop_api_authentication_error", headers=challenge, reason=reason)


def keyed_hash(secret: str) -> str:
    """Return a keyed hash. Secrets with 160 random bits do not need a slow hash."""
    key: str = current_app.config["SECRET_KEY"]
    return hmac.digest(key.encode(), secret.encode(), "sha256").hex()
