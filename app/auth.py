"""Who is calling: API keys, principals, capabilities and roles (decisions 2)."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from flask import current_app
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from sqlalchemy import Row, bindparam, select

from app.db import changes, fetch
from app.errors import ShopError
from app.models import ApiKey, UserRole

MOST_PRINCIPALS = 1000
"""How many principals a worker remembers."""

_KNOWN_PRINCIPALS = "shop_api_known_principals"  # on app.extensions


class Capability(StrEnum):
    """What a user may do (spec 5, decisions 2)."""

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
    """What a key may be used for."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"

    def allows(self, method: str) -> bool:
        """Tell whether a key with this permission may send an HTTP method."""
        needed = Permission.READ if method in {"GET", "HEAD"} else Permission.WRITE
        return self in {needed, Permission.READ_WRITE}


@dataclass(frozen=True, slots=True)
class Principal:
    """The user behind a request, and what that user may do."""

    user_id: int
    capabilities: frozenset[Capability]
    key_id: int | None = None
    permission: Permission = Permission.READ_WRITE

    def can(self, *capabilities: Capability) -> bool:
        """Tell whether the user holds every one of the capabilities."""
        return self.capabilities.issuperset(capabilities)

    def require(self, code: str, *capabilities: Capability) -> None:
        """Raise ShopError with ``code`` unless the user holds every one of the capabilities."""
        if not self.can(*capabilities):
            raise ShopError(code)


class WrongCredentials(Exception):
    """Nobody has the credentials of a request; the message says what is wrong, and no more."""


class Credentials(Protocol):
    """What a request says of who sent it."""

    def principal(self) -> Principal:
        """Return who has these credentials, or raise WrongCredentials."""


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


_HASH_OF_NOBODY = "0" * 64
"""As long as a hash, so that comparing with it takes as long."""


def capabilities_of(roles: list[str]) -> frozenset[Capability]:
    """Return the union of what the roles may do; a role that is not known may do nothing."""
    return frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))


def key_with_roles(consumer_key: str) -> Sequence[Row[Any]]:
    """Return the key with this name, a row for each role of its user; none when there is none."""
    return fetch(_KEY_WITH_ROLES, {"consumer_key_hash": digest(consumer_key)})


def principal_of(key: Sequence[Row[Any]]) -> Principal:
    """Return the principal of a key."""
    return Principal(
        user_id=key[0].user_id,
        key_id=key[0].id,
        permission=Permission(key[0].permission),
        capabilities=capabilities_of([row.role for row in key if row.role]),
    )


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A consumer key and its secret (decisions 2)."""

    consumer_key: str
    consumer_secret: str = field(repr=False)

    def principal(self) -> Principal:
        """Return the principal whose key and secret these are, or raise WrongCredentials.

        One that was found is remembered until anything is committed, so that what ends or changes
        a key counts at once; ``app.changes`` says when that is.
        """
        mark = changes().mark()  # before the database is asked: a commit meanwhile is not missed
        known: dict[str, tuple[object, Principal]]
        known = current_app.extensions.setdefault(_KNOWN_PRINCIPALS, {})
        name = digest(f"{self.consumer_key}\0{self.consumer_secret}")
        found = known.get(name)
        if found and found[0] == mark:
            return found[1]
        principal = self._look_up()
        if len(known) >= MOST_PRINCIPALS:
            known.clear()
        known[name] = mark, principal
        return principal

    def _look_up(self) -> Principal:
        key = key_with_roles(self.consumer_key)
        # The same work whether the key is unknown or the secret is wrong.
        expected = key[0].consumer_secret_hash if key else _HASH_OF_NOBODY
        if not hmac.compare_digest(digest(self.consumer_secret), expected) or not key:
            raise WrongCredentials("The consumer key or its secret is wrong.")
        return principal_of(key)


class FailedAttempts:
    """Counts wrong credentials for each address, in the memory of this process.

    Args:
        per_minute: how many are answered 401 before the answer is 429; 0 counts nothing.
    """

    def __init__(self, per_minute: int) -> None:
        self._limit = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def refuse(self, address: str, reason: str) -> ShopError:
        """Count one more failure of an address and return the error that answers it."""
        if self._limit is None or self._limiter.hit(self._limit, address):
            return _authentication_error(reason)
        reset = self._limiter.get_window_stats(self._limit, address).reset_time
        seconds = max(1, math.ceil(reset - time.time()))
        return ShopError("shop_api_too_many_requests", headers={"Retry-After": str(seconds)})


def authenticate(
    credentials: Credentials | None, address: str, attempts: FailedAttempts
) -> Principal:
    """Return who sent a request (decisions 2).

    Args:
        credentials: what the request says, if it says anything.
        address: where the request came from.
        attempts: counts the failures.

    Raises:
        ShopError: credentials are missing or wrong.
    """
    if credentials is None:
        raise _authentication_error("Send an API key by HTTP Basic authentication.")
    try:
        return credentials.principal()
    except WrongCredentials as error:
        raise attempts.refuse(address, str(error)) from None


def require_permission(principal: Principal, method: str) -> None:
    """Refuse a key whose permission does not allow an HTTP method (decisions 2)."""
    if not principal.permission.allows(method):
        kind = "read" if method in {"GET", "HEAD"} else "write"
        raise _authentication_error(f"This API key has no {kind} permission.")


def _authentication_error(reason: str) -> ShopError:
    challenge = {"WWW-Authenticate": 'Basic realm="Shop Administration API", charset="UTF-8"'}
    return ShopError("shop_api_authentication_error", headers=challenge, reason=reason)


def digest(secret: str) -> str:
    """Return a keyed hash; 160 random bits need no slow one."""
    key: str = current_app.config["SECRET_KEY"]
    return hmac.digest(key.encode(), secret.encode(), "sha256").hex()
