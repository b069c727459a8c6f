"""Who is calling: API keys, principals, capabilities and roles (decisions 2)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum

from flask import current_app
from sqlalchemy import bindparam, select
from werkzeug.datastructures import Authorization

from app.attempts import Attempts, network
from app.db import fetch
from app.errors import ShopError
from app.models import ApiKey, UserRole


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


_KEY_WITH_ROLES = (
    select(
        ApiKey.id,
        ApiKey.user_id,
        ApiKey.permission,
        ApiKey.consumer_secret_hash,
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


def principal_for(consumer_key: str, consumer_secret: str) -> Principal | None:
    """Return the principal whose key and secret these are, or None.

    Asks the database each time, so that a revoked key ends at once in every worker.
    """
    rows = fetch(_KEY_WITH_ROLES, {"consumer_key_hash": digest(consumer_key)})
    # The same work whether the key is unknown or the secret is wrong.
    expected = rows[0].consumer_secret_hash if rows else NO_SECRET
    if not hmac.compare_digest(digest(consumer_secret), expected) or not rows:
        return None
    return Principal(
        user_id=rows[0].user_id,
        key_id=rows[0].id,
        permission=Permission(rows[0].permission),
        capabilities=capabilities_of([row.role for row in rows if row.role]),
    )


class FailedAttempts:
    """Answers wrong credentials, and counts them for each address and for each key.

    Args:
        per_minute: how many are answered 401 before the answer is 429; 0 counts nothing.
        redis_url: where to count for all workers; None: each counts in its own memory.
    """

    def __init__(self, per_minute: int, redis_url: str | None = None) -> None:
        self._attempts = Attempts(per_minute, redis_url) if per_minute else None

    def refuse(self, address: str, consumer_key: str = "") -> ShopError:
        """Count one more failure and return the error that answers it."""
        names = [f"address {network(address)}", f"key {digest(consumer_key)}"]
        seconds = self._attempts.hit(*names) if self._attempts else 0
        if not seconds:
            return _authentication_error("The consumer key or its secret is wrong.")
        return ShopError("shop_api_too_many_requests", headers={"Retry-After": str(seconds)})


def authenticate(
    authorization: Authorization | None, address: str, attempts: FailedAttempts
) -> Principal:
    """Return who sent a request (decisions 2).

    Args:
        authorization: the parsed ``Authorization`` header, if there is one.
        address: where the request came from.
        attempts: counts the failures.

    Raises:
        ShopError: credentials are missing or wrong.
    """
    if authorization is None:
        raise _authentication_error("Send an API key by HTTP Basic authentication.")
    principal = None
    consumer_key = authorization.username or ""
    if authorization.type == "basic":
        principal = principal_for(consumer_key, authorization.password or "")
    if principal is None:
        raise attempts.refuse(address, consumer_key)
    return principal


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
