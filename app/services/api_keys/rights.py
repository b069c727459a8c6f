"""The rights of API keys: a key can only give rights that it has itself (decisions 2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from app.auth.api_keys import allowed_resources, authentication_error, forget_principals
from app.auth.principals import ALL_RESOURCES, UNKNOWN_KEY, Permission, Principal
from app.catalog import current_catalog
from app.conversions.text import did_you_mean
from app.db.records import Record
from app.db.session import now
from app.errors import InvalidParams, Sentence, ShopError
from app.models.api_key import ApiKeyRow


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
    def columns(self) -> Record:
        """Return the rights as the columns of a key."""
        names = {ALL_RESOURCES} if self.resources is None else self.resources
        return {
            "permission": self.permission.value,
            "resources": ",".join(sorted(names)),
            "expires_at": self.expires_at,
        }

    def beyond(self, limits: Rights) -> list[str]:
        """Return the inputs of the rights that exceed those of another key."""
        exceeded = {
            "key.permission": not self.permission.parts <= limits.permission.parts,
            "key.resources": limits.resources is not None
            and (self.resources is None or not self.resources <= limits.resources),
            "key.expires_at": limits.expires_at is not None
            and (self.expires_at is None or self.expires_at > limits.expires_at),
        }
        return [param for param, is_exceeded in exceeded.items() if is_exceeded]


def rights_of(key: ApiKeyRow) -> Rights:
    """Return the rights of a stored key."""
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
        reason = Sentence(
            "unknown resource {0}{1}. Known resources: {2}.",
            repr(unknown[0]),
            suggestion,
            ", ".join(known),
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


def require_rights(actor: Principal, wanted: Rights) -> None:
    """Raise ShopError unless the actor's key has all rights that another key gets.

    Otherwise a key with few rights could be used to obtain a key with more.

    Args:
        actor: the principal of the key in use, with its stored rights.

    Raises:
        ShopError: ``shop_api_insufficient_key_rights`` with the first input that exceeds the
            rights.
    """
    limits = Rights(actor.permission, actor.resources, actor.expires_at)
    for param in wanted.beyond(limits):
        raise ShopError("shop_api_insufficient_key_rights", param=param)


def require_new_rights(actor: Principal, wanted: Rights, held: Rights) -> None:
    """Raise ShopError unless a key may get rights in place of those that it has.

    Rights can be kept and reduced. If any right grows, all of them must be within the rights of the
    actor's key. Otherwise two limited keys could be combined to an unlimited one.
    """
    if wanted.beyond(held):
        require_rights(actor, wanted)


def with_stored_rights(actor: Principal, key: ApiKeyRow | None) -> Principal:
    """Return an actor with the rights that its key has now, not those of the cached principal.

    Args:
        key: the stored key of the actor; None if it was revoked.

    Raises:
        ShopError: the key was revoked.
    """
    if key is None:
        forget_principals()  # another machine has revoked it
        raise authentication_error(UNKNOWN_KEY)
    return replace(
        actor,
        permission=Permission(key["permission"]),
        resources=allowed_resources(key["resources"]),
        expires_at=key["expires_at"],
    )
