"""Writing API keys: create, update, rotate, revoke (decisions 2)."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import cast

from flask import current_app
from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.auth.api_keys import ApiKeyCredentials, note_revocation
from app.auth.encryption import encrypt
from app.auth.hashes import keyed_hash
from app.auth.principals import Capability, Permission, Principal, capabilities_of
from app.catalog import Change, current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.records import Record, row_dicts, with_columns
from app.db.session import call_after_commit, now, run_in_transaction
from app.errors import ShopError
from app.models import API_KEYS, USERS
from app.models.api_key import ApiKeyRow
from app.services.api_keys.queries import SHOWN, require_own_key
from app.services.api_keys.rights import (
    Rights,
    checked_expiry,
    checked_resources,
    require_new_rights,
    require_rights,
    rights_of,
    with_stored_rights,
)
from app.services.api_keys.sessions import end_sessions_of_key
from app.services.api_keys.users import KeyUser, create_user, find_user, user_for
from app.services.common.bulk import Data
from app.services.common.roles import roles_of
from app.services.events.bulk import notify_deleted
from app.services.events.changes import changes_of
from app.services.events.outbox import NewEvent, record

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
        pair: a key and secret that clients already have; None generates them.
        rights: limits of the key in addition to its permission.
        reports: whether the key and a new user are events. False if a summary reports them.

    Raises:
        KeyExists: another key has the consumer key of ``pair``.
        RoleRequired: the user does not exist, and ``role`` is None.
    """
    pair = pair or _new_credentials()
    rights = replace(rights or Rights(permission), permission=permission)

    def work(session: Session) -> NewKey:
        same_key = API_KEYS.c.consumer_key_hash == keyed_hash(pair.consumer_key)
        if session.scalar(select(API_KEYS.c.id).where(same_key)):
            raise KeyExists
        user = find_user(session, login)
        if user is None:
            if role is None:
                raise RoleRequired
            user = create_user(session, login, role, None, reports=reports)
        key = _insert_key(session, user, rights, description, pair)
        if reports:
            _report(session, None, "key.created", None, key)
        return NewKey(
            key_id=key["id"],
            user_id=user.id,
            login=user.username,
            role=next(iter(roles_of(session, user.id)), ""),
            permission=permission.value,
            **asdict(pair),
        )

    return run_in_transaction(work)


def issue_key(actor: Principal, data: Data) -> Record:
    """Create a key for a request with a loaded ``ApiKeyCreate``.

    Returns:
        The key with ``consumer_key`` and ``consumer_secret``, which are not shown again.

    Raises:
        ShopError: the actor does not manage keys, the user cannot have a key, or the key would have
            more rights than the key of the actor.
    """
    actor.require("shop_api_user_cannot_create_key")
    rights = Rights(
        Permission(data["permission"]),
        checked_resources(data["resources"]),
        checked_expiry(data["expires_at"]),
    )
    pair = _new_credentials()

    def work(session: Session) -> Record:
        current, _ = _locked(session, actor)
        require_rights(current, rights)
        user = user_for(session, current, data)
        _require_not_above(session, current, user.id, "shop_api_user_cannot_create_key")
        key = _insert_key(session, user, rights, data["description"], pair)
        _report(session, actor, "key.created", None, key)
        return _shown(key, user.username) | asdict(pair)

    return run_in_transaction(work)


def require_new_key_again(actor: Principal, key_id: int) -> None:
    """Raise ShopError unless the actor can still create a key with the rights that a key has now.

    Otherwise a key whose rights were reduced could read the secret again that it once got.
    """

    def work(session: Session) -> None:
        actor.require("shop_api_user_cannot_create_key")
        current, key = _locked(session, actor, key_id)
        if key is None:
            return  # revoked: its secret gives no rights
        require_rights(current, rights_of(key))
        _require_not_above(session, current, key["user_id"], "shop_api_user_cannot_create_key")

    run_in_transaction(work)


def update_key(actor: Principal, key_id: int, data: Data) -> Record:
    """Change the supplied fields of a key. A restriction takes effect immediately.

    Raises:
        ShopError: the key does not exist, the actor does not manage keys, or the key would get
            rights that the key of the actor does not have.
    """

    def work(session: Session) -> Record:
        current, key = _locked_key(session, actor, key_id)
        actor.require("shop_api_user_cannot_edit_key")
        _require_not_above(session, actor, key["user_id"], "shop_api_user_cannot_edit_key")
        held = wanted = rights_of(key)
        if "permission" in data:
            wanted = replace(wanted, permission=Permission(data["permission"]))
        if "resources" in data:
            wanted = replace(wanted, resources=checked_resources(data["resources"]))
        if "expires_at" in data:
            wanted = replace(wanted, expires_at=checked_expiry(data["expires_at"]))
        require_new_rights(current, wanted, held)
        description = data.get("description", key["description"])
        before = key
        key = _update_key(session, key, {"description": description, **wanted.columns})
        _report(session, actor, "key.updated", before, key)
        return _shown(key, _username_of(session, key))

    return run_in_transaction(work)


def rotate_key(actor: Principal, key_id: int) -> Record:
    """Replace the consumer key and the secret of a key. The old ones stop working immediately.

    Returns:
        The key with the new ``consumer_key`` and ``consumer_secret``, which are not shown again.

    Raises:
        ShopError: the key does not exist, it is the key of another user and the actor does not
            manage keys, or it has more rights than the key of the actor.
    """
    pair = _new_credentials()

    def work(session: Session) -> Record:
        current, key = _locked_key(session, actor, key_id)
        _require_rotation(session, actor, current, key)
        key = _update_key(session, key, _secret_columns(pair))
        _report(session, actor, "key.rotated", None, key)
        end_sessions_of_key(session, key_id)
        return _shown(key, _username_of(session, key)) | asdict(pair)

    return run_in_transaction(work)


def require_rotated_key_again(actor: Principal, key_id: int) -> None:
    """Raise ShopError unless the actor could still rotate a key, whose secret it once got."""

    def work(session: Session) -> None:
        current, key = _locked(session, actor, key_id)
        if key is not None:  # otherwise revoked: its secret gives no rights
            _require_rotation(session, actor, current, key)

    run_in_transaction(work)


def _require_rotation(
    session: Session, actor: Principal, current: Principal, key: ApiKeyRow
) -> None:
    require_own_key(actor, key["user_id"], "shop_api_user_cannot_edit_key")
    _require_not_above(session, actor, key["user_id"], "shop_api_user_cannot_edit_key")
    # The actor learns the new secret, and with it obtains all rights of the key.
    require_rights(current, rights_of(key))


def delete_key(actor: Principal, key_id: int) -> None:
    """Revoke a key immediately, regardless of its rights.

    Raises:
        ShopError: the key does not exist, or the actor does not manage keys.
    """

    def work(session: Session) -> None:
        _locked_key(session, actor, key_id)
        actor.require("shop_api_user_cannot_delete_key")
        session.execute(delete(API_KEYS).where(API_KEYS.c.id == key_id))
        notify_deleted(session, actor, "key", [key_id])
        call_after_commit(session, note_revocation)

    run_in_transaction(work)


def revoke_key(key_id: int) -> bool:
    """Revoke a key immediately, for a command. Returns False if it does not exist."""
    if key_id > INT64_MAX:
        return False

    def work(session: Session) -> bool:
        this = delete(API_KEYS).where(API_KEYS.c.id == key_id).returning(API_KEYS.c.id)
        deleted = session.execute(this).first()
        if deleted is not None:
            notify_deleted(session, None, "key", [key_id])
        call_after_commit(session, note_revocation)
        return deleted is not None

    return run_in_transaction(work)


def _new_credentials() -> ApiKeyCredentials:
    """Return a random consumer key and secret, with 160 bits each."""
    return ApiKeyCredentials(f"ck_{secrets.token_hex(20)}", f"cs_{secrets.token_hex(20)}")


def _secret_columns(pair: ApiKeyCredentials) -> Record:
    """Return the columns that contain hashes of credentials and the encrypted secret."""
    # Only signatures need the secret itself.
    signs = any(current_app.config[name] for name in ("SHOP_LEGACY_API", "SHOP_WC_V3"))
    return {
        "consumer_key_hash": keyed_hash(pair.consumer_key),
        "consumer_secret_hash": keyed_hash(pair.consumer_secret),
        "consumer_secret_encrypted": encrypt(pair.consumer_secret) if signs else None,
        "truncated_key": pair.consumer_key[-7:],
    }


def _insert_key(
    session: Session, user: KeyUser, rights: Rights, description: str, pair: ApiKeyCredentials
) -> ApiKeyRow:
    new = insert(API_KEYS).values(
        user_id=user.id,
        description=description,
        created_at=now(),
        **rights.columns,
        **_secret_columns(pair),
    )
    (key,) = row_dicts(session.execute(new.returning(*API_KEYS.c)))
    return cast("ApiKeyRow", key)


def _update_key(session: Session, key: ApiKeyRow, columns: Mapping[str, object]) -> ApiKeyRow:
    """Write columns of a key, forget the cached principal of the key, and return it."""
    after = with_columns(key, columns)
    if after != key:
        session.execute(update(API_KEYS).where(API_KEYS.c.id == key["id"]).values(columns))
    call_after_commit(session, note_revocation)
    return after


def _report(
    session: Session,
    actor: Principal | None,
    event: str,
    before: ApiKeyRow | None,
    after: ApiKeyRow,
) -> None:
    """Write the event of a key, without what only readers of keys may see (people 1)."""
    values = current_catalog().event_values["key"]
    changes = changes_of(Change(event, before, after), None)
    new = NewEvent(event, after["id"], {"key": values(after)}, changes=changes)
    record(session, actor, [new])


def _username_of(session: Session, key: ApiKeyRow) -> str:
    statement = select(USERS.c.username).where(USERS.c.id == key["user_id"])
    username: str = session.execute(statement).scalar_one()
    return username


def _shown(key: Mapping[str, object], username: str) -> Record:
    """Return a key by the names of ``queries.COLUMNS``, without its hashes."""
    return {name: key[name] for name in SHOWN} | {"username": username}


def _require_not_above(session: Session, actor: Principal, user_id: int, code: str) -> None:
    """Raise ShopError if a user has capabilities that the actor lacks (decisions 2)."""
    if not actor.can(*capabilities_of(roles_of(session, user_id))):  # also for one's own key
        raise ShopError(code)


def with_current_rights(session: Session, actor: Principal) -> Principal:
    """Lock the key of an actor and return the actor with its rights, or raise ShopError."""
    return _locked(session, actor)[0]


def _locked_key(session: Session, actor: Principal, key_id: int) -> tuple[Principal, ApiKeyRow]:
    """Return the actor with its current rights, and a key. Both keys are locked."""
    current, key = _locked(session, actor, key_id)
    if key is None:
        raise ShopError("shop_api_invalid_key_id")
    return current, key


def _locked(
    session: Session, actor: Principal, key_id: int | None = None
) -> tuple[Principal, ApiKeyRow | None]:
    ids = [id_ for id_ in (actor.key_id, key_id) if id_ is not None and id_ <= INT64_MAX]
    rows: list[ApiKeyRow] = row_dicts(
        session.execute(
            select(API_KEYS)
            .where(API_KEYS.c.id.in_(ids))
            .order_by(API_KEYS.c.id)  # the same order everywhere avoids deadlocks
            .with_for_update()
        )
    )
    keys = {key["id"]: key for key in rows}
    current = actor
    if actor.key_id is not None:
        current = with_stored_rights(actor, keys.get(actor.key_id))
    return current, keys.get(key_id) if key_id is not None else None
