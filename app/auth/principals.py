"""Who is calling: API keys, principals, capabilities and roles (decisions 2)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Protocol

from flask import current_app
from sqlalchemy import Row, bindparam, select

from app.auth.throttling import FailedLoginLimiter, network
from app.db.changes import Changes
from app.db.read_pool import fetch
from app.db.session import CHANGES
from app.errors import ShopError
from app.models import ApiKey, UserRole

MAX_PRINCIPALS = 1000
"""How many principals a worker remembers."""

_KNOWN_PRINCIPALS = "shop_api_known_principals"  # on app.extensions
_KEY_OF_THIS_PROCESS = secrets.token_bytes(32)  # no secret is remembered, not even by a plain hash


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


class InvalidCredentials(Exception):
    """Nobody has the credentials of a request; the message says what is wrong, and no more."""


class Credentials(Protocol):
    """What a request says of who sent it."""

    @property
    def consumer_key(self) -> str:
        """The key that it names, empty for none."""

    def principal(self) -> Principal:
        """Return who has these credentials, or raise InvalidCredentials."""


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
"""As long as the hash of a secret, and of none that is known."""


def capabilities_of(roles: list[str]) -> frozenset[Capability]:
    """Return the union of what the roles may do; a role that is not known may do nothing."""
    return frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))


def key_with_roles(consumer_key: str) -> Sequence[Row[Any]]:
    """Return the key with this name, a row for each role of its user; none when there is none."""
    return fetch(_KEY_WITH_ROLES, {"consumer_key_hash": keyed_hash(consumer_key)})


def principal_of(key: Sequence[Row[Any]]) -> Principal:
    """Return the principal of a key."""
    return Principal(
        user_id=key[0].user_id,
        key_id=key[0].id,
        permission=Permission(key[0].permission),
        capabilities=capabilities_of([row.role for row in key if row.role]),
    )


def cached_principal(sent: str, find: Callable[[], Principal]) -> Principal:
    """Return the principal whose credentials these are.

    One that was found is remembered until anything is committed, so that what ends or changes a
    key counts at once; ``app.db.changes`` says when that is.

    Args:
        sent: the credentials as they were sent.
        find: finds their principal, or raises InvalidCredentials.
    """
    extensions = current_app.extensions
    changes: Changes = extensions[CHANGES]
    mark = changes.mark()  # before the database is asked: a commit meanwhile is not missed
    known: dict[bytes, tuple[object, Principal]]
    known = extensions.setdefault(_KNOWN_PRINCIPALS, {})
    name = blake2b(sent.encode(), key=_KEY_OF_THIS_PROCESS).digest()
    found = known.get(name)
    if found and found[0] == mark:
        return found[1]
    principal = find()
    if len(known) >= MAX_PRINCIPALS:
        known.clear()
    known[name] = mark, principal
    return principal


@dataclass(frozen=True, slots=True)
class ApiKeyCredentials:
    """A consumer key and its secret (decisions 2)."""

    consumer_key: str
    consumer_secret: str = field(repr=False)

    def principal(self) -> Principal:
        """Return the principal whose key and secret these are, or raise InvalidCredentials."""
        return cached_principal(f"{self.consumer_key}\0{self.consumer_secret}", self.look_up)

    def look_up(self) -> Principal:
        """Return the same from the database."""
        key = key_with_roles(self.consumer_key)
        # The same work whether the key is unknown or the secret is wrong.
        expected = key[0].consumer_secret_hash if key else NO_SECRET
        if not hmac.compare_digest(keyed_hash(self.consumer_secret), expected) or not key:
            raise InvalidCredentials("The consumer key or its secret is wrong.")
        return principal_of(key)


ADDRESSES_OF_A_KEY = 10
"""From how many addresses a key may be misspelt, before somebody is trying it from everywhere."""


class FailedLogins:
    """Answers wrong credentials, and counts them for each address and for each key.

    Args:
        per_minute: how many of an address are answered 401 before the answer is 429, and how many
            of a key for each of ADDRESSES_OF_A_KEY; 0 counts nothing.
        redis_url: where to count for all workers; None: each counts in its own memory.
    """

    def __init__(self, per_minute: int, redis_url: str | None = None) -> None:
        self._per_minute = per_minute
        self._attempts = FailedLoginLimiter(redis_url)

    def refuse(self, address: str, consumer_key: str, reason: str) -> ShopError:
        """Count one more failure and return the error that answers it."""
        limits = {
            f"address {network(address)}": self._per_minute,
            f"key {keyed_hash(consumer_key)}": self._per_minute * ADDRESSES_OF_A_KEY,
        }
        seconds = self._attempts.hit(limits) if self._per_minute else 0
        if not seconds:
            return _authentication_error(reason)
        return ShopError("shop_api_too_many_requests", headers={"Retry-After": str(seconds)})


def authenticate(
    credentials: Credentials | None, refuse: Callable[[str, str], ShopError]
) -> Principal:
    """Return who sent a request (decisions 2).

    Args:
        credentials: what the request says, if it says anything.
        refuse: takes the consumer key of wrong credentials and what is wrong; returns the answer.

    Raises:
        ShopError: credentials are missing or wrong.
    """
    if credentials is None:
        raise _authentication_error("Send an API key by HTTP Basic authentication.")
    try:
        return credentials.principal()
    except InvalidCredentials as error:
        raise refuse(credentials.consumer_key, str(error)) from None


def require_permission(principal: Principal, method: str) -> None:
    """Refuse a key whose permission does not allow an HTTP method (decisions 2)."""
    if not principal.permission.allows(method):
        kind = "read" if method in {"GET", "HEAD"} else "write"
        raise _authentication_error(f"This API key has no {kind} permission.")


def _authentication_error(reason: str) -> ShopError:
    challenge = {"WWW-Authenticate": 'Basic realm="Shop Administration API", charset="UTF-8"'}
    return ShopError("shop_api_authentication_error", headers=challenge, reason=reason)


def keyed_hash(secret: str) -> str:
    """Return a keyed hash; 160 random bits need no slow one."""
    key: str = current_app.config["SECRET_KEY"]
    return hmac.digest(key.encode(), secret.encode(), "sha256").hex()
