"""Writing API keys: create, update, rotate, revoke (decisions 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.auth.api_keys import ApiKeyCredentials
from app.auth.hashes import keyed_hash
from app.auth.principal_cache import note_revocation
from app.auth.principals import Capability, Permission, Principal, capabilities_of
from app.conversions.numbers import INT64_MAX
from app.db.session import call_after_commit, run_in_transaction
from app.errors import ShopError
from app.models import ApiKey
from app.services.api_keys.columns import (
    columns_of,
    insert_key,
    new_credentials,
    record_of,
    record_with_secret,
    secret_columns,
    set_columns,
)
from app.services.api_keys.queries import require_own_key
from app.services.api_keys.rights import (
    Rights,
    checked_expiry,
    checked_resources,
    require_new_rights,
    require_rights,
    rights_of,
    with_stored_rights,
)
from app.services.api_keys.users import create_user, find_user, report_user, user_for
from app.services.customers.roles import roles_of

Record = dict[str, Any]

OPERATOR = Principal(user_id=0, capabilities=frozenset(Capability))
"""The actor of commands. Commands have all capabilities."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key with its secret, which is shown only once."""

    key_id: int
    user_id: int
    login: str
    role: str
    permission: str
    consumer_key: str
    consumer_secret: str


class KeyExists(Exception):
    """Another key has this consumer key."""


class RoleRequired(Exception):
    """The user does not exist, and no role for a new user was given."""


def create_key(
    login: str,
    role: str | None,
    permission: Permission,
    description: str,
    pair: ApiKeyCredentials | None = None,
    *,
    rights: Rights | None = None,
    reports: bool = True,
) -> NewKey:
    """Create a key for a user, for a command. Create the user if it does not exist.

    Unlike ``issue_key``, this function checks no capabilities.

    Args:
        login: the username, in any letter case.
        role: a key of ROLES, used only for a new user; None if the user must exist.
        permission: the permission of the key.
        pair: a key and secret that clients already have; None generates them.
        rights: limits of the key in addition to its permission.
        reports: whether a new user is an event. False if a summary reports it.

    Raises:
        KeyExists: another key has the consumer key of ``pair``.
        RoleRequired: the user does not exist, and ``role`` is None.
    """
    pair = pair or new_credentials()
    rights = replace(rights or Rights(permission), permission=permission)

    def work(session: Session) -> NewKey:
        same_key = ApiKey.consumer_key_hash == keyed_hash(pair.consumer_key)
        if session.scalar(select(ApiKey.id).where(same_key)):
            raise KeyExists
        user = find_user(session, login)
        if user is None:
            if role is None:
                raise RoleRequired
            user = create_user(session, login, role)
            if reports:
                report_user(session, None, user)
        roles = roles_of(session, user.id)
        key = insert_key(session, user.id, rights, description, pair)
        return NewKey(
            key_id=key.id,
            user_id=user.id,
            login=user.username,
            role=roles[0] if roles else "",
            permission=permission.value,
            consumer_key=pair.consumer_key,
            consumer_secret=pair.consumer_secret,
        )

    return run_in_transaction(work)


def issue_key(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create a key for a request with a loaded ``ApiKeyCreate``.

    Returns:
        The key with ``consumer_key`` and ``consumer_secret``, which are not shown again.

    Raises:
        ShopError: the actor does not manage keys, the user cannot have a key, or the key would have
            more rights than the key of the actor.
    """
    actor.require("shop_api_user_cannot_create_key", Capability.MANAGE_API_KEYS)
    rights = Rights(
        Permission(data["permission"]),
        checked_resources(data["resources"]),
        checked_expiry(data["expires_at"]),
    )
    pair = new_credentials()

    def work(session: Session) -> Record:
        current, _ = _locked(session, actor)
        require_rights(current, rights)
        user = user_for(session, current, data)
        _require_not_above(session, current, user.id, "shop_api_user_cannot_create_key")
        return record_with_secret(
            session, insert_key(session, user.id, rights, data["description"], pair), pair
        )

    return run_in_transaction(work)


def require_new_key_again(actor: Principal, key_id: int) -> None:
    """Raise ShopError unless the actor can still create a key with the rights that a key has now.

    Otherwise a key whose rights were reduced could read the secret again that it once got.
    """

    def work(session: Session) -> None:
        actor.require("shop_api_user_cannot_create_key", Capability.MANAGE_API_KEYS)
        current, key = _locked(session, actor, key_id)
        if key is None:
            return  # revoked: its secret gives no rights
        require_rights(current, rights_of(columns_of(key)))
        _require_not_above(session, current, key.user_id, "shop_api_user_cannot_create_key")

    run_in_transaction(work)


def update_key(actor: Principal, key_id: int, data: Mapping[str, Any]) -> Record:
    """Change the supplied fields of a key. A restriction takes effect immediately.

    Raises:
        ShopError: the key does not exist, the actor does not manage keys, or the key would get
            rights that the key of the actor does not have.
    """

    def work(session: Session) -> Record:
        current, key = _locked_key(session, actor, key_id)
        actor.require("shop_api_user_cannot_edit_key", Capability.MANAGE_API_KEYS)
        _require_not_above(session, actor, key.user_id, "shop_api_user_cannot_edit_key")
        held = wanted = rights_of(columns_of(key))
        if "permission" in data:
            wanted = replace(wanted, permission=Permission(data["permission"]))
        if "resources" in data:
            wanted = replace(wanted, resources=checked_resources(data["resources"]))
        if "expires_at" in data:
            wanted = replace(wanted, expires_at=checked_expiry(data["expires_at"]))
        require_new_rights(current, wanted, held)
        set_columns(
            key, {"description": data.get("description", key.description), **wanted.columns}
        )
        call_after_commit(session, note_revocation)
        return record_of(session, key)

    return run_in_transaction(work)


def rotate_key(actor: Principal, key_id: int) -> Record:
    """Replace the consumer key and the secret of a key. The old ones stop working immediately.

    Returns:
        The key with the new ``consumer_key`` and ``consumer_secret``, which are not shown again.

    Raises:
        ShopError: the key does not exist, it is the key of another user and the actor does not
            manage keys, or it has more rights than the key of the actor.
    """
    pair = new_credentials()

    def work(session: Session) -> Record:
        current, key = _locked_key(session, actor, key_id)
        require_own_key(actor, key.user_id, "shop_api_user_cannot_edit_key")
        _require_not_above(session, actor, key.user_id, "shop_api_user_cannot_edit_key")
        # The actor learns the new secret, and with it obtains all rights of the key.
        require_rights(current, rights_of(columns_of(key)))
        set_columns(key, secret_columns(pair))
        call_after_commit(session, note_revocation)
        return record_with_secret(session, key, pair)

    return run_in_transaction(work)


def delete_key(actor: Principal, key_id: int) -> None:
    """Revoke a key immediately, regardless of its rights.

    Raises:
        ShopError: the key does not exist, or the actor does not manage keys.
    """

    def work(session: Session) -> None:
        _, key = _locked_key(session, actor, key_id)
        actor.require("shop_api_user_cannot_delete_key", Capability.MANAGE_API_KEYS)
        session.delete(key)
        call_after_commit(session, note_revocation)

    run_in_transaction(work)


def revoke_key(key_id: int) -> bool:
    """Revoke a key immediately, for a command. Returns False if it does not exist."""
    if key_id > INT64_MAX:
        return False

    def work(session: Session) -> bool:
        deleted = session.execute(delete(ApiKey).where(ApiKey.id == key_id).returning(ApiKey.id))
        call_after_commit(session, note_revocation)
        return deleted.first() is not None

    return run_in_transaction(work)


def _require_not_above(session: Session, actor: Principal, user_id: int, code: str) -> None:
    """Raise ShopError if a user has capabilities that the actor lacks (decisions 2)."""
    actor.require(code, *capabilities_of(roles_of(session, user_id)))


def _locked_key(session: Session, actor: Principal, key_id: int) -> tuple[Principal, ApiKey]:
    """Return the actor with its current rights, and a key. Both keys are locked.

    Raises:
        ShopError: the key does not exist, or that of the actor was revoked.
    """
    current, key = _locked(session, actor, key_id)
    if key is None:
        raise ShopError("shop_api_invalid_key_id")
    return current, key


def _locked(
    session: Session, actor: Principal, key_id: int | None = None
) -> tuple[Principal, ApiKey | None]:
    ids = [id_ for id_ in (actor.key_id, key_id) if id_ is not None and id_ <= INT64_MAX]
    rows = session.scalars(
        select(ApiKey)
        .where(ApiKey.id.in_(ids))
        .order_by(ApiKey.id)  # the same order everywhere avoids deadlocks
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    keys = {key.id: key for key in rows}
    current = actor
    if actor.key_id is not None:
        current = with_stored_rights(actor, keys.get(actor.key_id))
    return current, keys.get(key_id) if key_id is not None else None
