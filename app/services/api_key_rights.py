"""The rights of API keys: a key can only give rights that it has itself (decisions 2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.auth.api_keys import allowed_resources
from app.auth.principals import ALL_RESOURCES, Permission, Principal
from app.catalog import current_catalog
from app.db.session import now
from app.errors import InvalidParams, ShopError
from app.text import did_you_mean


@dataclass(frozen=True, slots=True)
class Rights:
    """Limits of a key, within the capabilities of its user.

    Args:
        permission: HTTP methods that the key allows.
        resources: resources that the key allows; None for all.
        expires_at: when the key expires, in UTC; None for never.
    """

    permission: Permission
    resources: frozenset[str] | None = None
    expires_at: datetime | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Return the rights as the columns of a key."""
        names = {ALL_RESOURCES} if self.resources is None else self.resources
        return {
            "permission": self.permission.value,
            "resources": ",".join(sorted(names)),
            "expires_at": self.expires_at,
        }


NO_RIGHTS = None
"""The rights of a key that does not exist yet, or whose secret the actor does not know."""


def rights_of(key: Mapping[str, Any]) -> Rights:
    """Return the rights in the columns of a key."""
    resources = allowed_resources(key["resources"])
    return Rights(Permission(key["permission"]), resources, key["expires_at"])


def checked_resources(names: Collection[str]) -> frozenset[str] | None:
    """Return the resources with these names, or None for all.

    Raises:
        InvalidParams: there are no names, or some are unknown.
    """
    if ALL_RESOURCES in names:
        return None
    known = [ALL_RESOURCES, *sorted(current_catalog().resources)]
    unknown = [name for name in names if name not in known]
    if unknown:
        suggestion = did_you_mean(unknown[0], known)
        reason = (
            f"unknown resource {unknown[0]!r}{suggestion}. Known resources: {', '.join(known)}."
        )
        raise InvalidParams({"key.resources": reason})
    if not names:
        raise InvalidParams({"key.resources": "must name at least one resource, or 'all'."})
    return frozenset(names)


def checked_expiry(expires_at: datetime | None) -> datetime | None:
    """Return the time when a key expires, or raise InvalidParams if it is not in the future."""
    if expires_at is not None and expires_at <= now():
        raise InvalidParams({"key.expires_at": "must be in the future."})
    return expires_at


def require_rights(actor: Principal, wanted: Rights, held: Rights | None = NO_RIGHTS) -> None:
    """Raise ShopError unless the actor's key has all rights that another key gets.

    Otherwise a key with few rights could be used to obtain a key with more.

    Args:
        actor: the principal of the key in use.
        wanted: the rights that the other key will have.
        held: the rights that it already has. They can be kept or reduced.

    Raises:
        ShopError: ``shop_api_insufficient_key_rights`` with the first input that exceeds the
            rights.
    """
    checks = {
        "key.permission": _is_permission_covered(actor, wanted, held),
        "key.resources": _are_resources_covered(actor, wanted, held),
        "key.expires_at": _is_expiry_covered(actor, wanted, held),
    }
    for param, is_covered in checks.items():
        if not is_covered:
            raise ShopError("shop_api_insufficient_key_rights", param=param)


def _is_permission_covered(actor: Principal, wanted: Rights, held: Rights | None) -> bool:
    kept = held.permission.parts if held else frozenset()
    return wanted.permission.parts <= actor.permission.parts | kept


def _are_resources_covered(actor: Principal, wanted: Rights, held: Rights | None) -> bool:
    if actor.resources is None or (held and held.resources is None):
        return True
    kept = held.resources if held and held.resources else frozenset()
    return wanted.resources is not None and wanted.resources <= actor.resources | kept


def _is_expiry_covered(actor: Principal, wanted: Rights, held: Rights | None) -> bool:
    limits = [actor.expires_at, *([held.expires_at] if held else [])]
    return any(
        limit is None or (wanted.expires_at is not None and wanted.expires_at <= limit)
        for limit in limits
    )
