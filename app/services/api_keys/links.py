"""Links that sign in once: of a key, and invitations of a colleague (admin 1 and 5)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, insert, select
from sqlalchemy.orm import Session

from app.auth.api_keys import allowed_resources, require_permission, require_resources
from app.auth.hashes import keyed_hash
from app.auth.principals import ROLES, Permission, Principal, capabilities_of
from app.conversions.text import is_username
from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.errors import InvalidParams, Sentence, ShopError
from app.models import API_KEYS, SIGN_IN_LINKS, USER_ROLES, USERS
from app.models.api_key import INVITATION_OF
from app.services.api_keys.rights import (
    Rights,
    checked_expiry,
    checked_resources,
    require_rights,
)
from app.services.api_keys.sessions import (
    manageable_keys,
    manages_keys,
    new_token,
    require_reading_key,
)
from app.services.api_keys.users import find_user, require_new_user
from app.services.api_keys.writes import issue_key, with_current_rights
from app.services.common.bulk import Data
from app.services.events.outbox import NewEvent, record

LINK_TIME = timedelta(minutes=10)
"""How long a link to sign in works."""

INVITATION_TIME = timedelta(hours=48)
"""How long an invitation works."""

MAX_INVITATIONS = 50
"""The maximum number of open invitations of a key."""

MAX_LINKS = 200
"""The number of unused links that a list contains."""


@dataclass(frozen=True, slots=True)
class Link:
    """An unused link.

    Args:
        user_id: the user of that key.
        key_id: the key of the session, or the key of the inviter.
        expires_at: until when it works.
        username: the user of the key.
        truncated_key: the end of its consumer key.
        rights: the rights of the session's key.
        login: the username of an invited user; None for a link of a key.
        role: the role of an invited user.
    """

    id: int
    user_id: int
    key_id: int
    expires_at: datetime
    username: str
    description: str
    truncated_key: str
    rights: Rights
    login: str | None
    role: str | None


_LINKS: Select[Any] = (
    select(
        SIGN_IN_LINKS,
        USERS.c.username,
        API_KEYS.c.user_id,
        API_KEYS.c.description,
        API_KEYS.c.truncated_key,
        API_KEYS.c.permission.label("own_permission"),
        API_KEYS.c.resources.label("own_resources"),
        API_KEYS.c.expires_at.label("own_expires_at"),
    )
    .join(API_KEYS, API_KEYS.c.id == SIGN_IN_LINKS.c.key_id)
    .join(USERS, USERS.c.id == API_KEYS.c.user_id)
)


def _link(row: Any) -> Link:
    own = row.login is None
    return Link(
        id=row.id,
        user_id=row.user_id,
        key_id=row.key_id,
        expires_at=row.expires_at,
        username=row.username,
        description=row.description,
        truncated_key=row.truncated_key,
        rights=Rights(
            Permission(row.own_permission if own else row.permission),
            allowed_resources(row.own_resources if own else row.resources),
            row.own_expires_at if own else row.key_expires_at,
        ),
        login=row.login,
        role=row.role,
    )


def create_link(key_id: int, lasts: timedelta = LINK_TIME) -> str:
    """Create a link for a key that may read, and return its token.

    Raises:
        ShopError: the key was revoked, has expired or may not read.
    """

    def work(session: Session) -> str:
        require_reading_key(session, key_id)
        token = new_token()
        _insert(session, token, key_id, lasts)
        return token

    return run_in_transaction(work)


def newest_reading_key(login: str) -> int | None:
    """Return the newest key of a user that may read and has not expired, or None."""
    statement = (
        select(API_KEYS.c.id, API_KEYS.c.expires_at)
        .join(USERS, USERS.c.id == API_KEYS.c.user_id)
        .where(
            USERS.c.username_normalized == login.lower(),
            API_KEYS.c.permission != Permission.WRITE.value,
        )
        .order_by(API_KEYS.c.id.desc())
    )
    keys = [key.id for key in fetch(statement) if not key.expires_at or key.expires_at > now()]
    return keys[0] if keys else None


def newest_administrator_key() -> int | None:
    """Return the newest key of an administrator that may read and has not expired, or None."""
    statement = (
        select(USERS.c.username)
        .join(USER_ROLES, USER_ROLES.c.user_id == USERS.c.id)
        .join(API_KEYS, API_KEYS.c.user_id == USERS.c.id)
        .where(USER_ROLES.c.role == "administrator")
        .order_by(API_KEYS.c.id.desc())
    )
    for user in fetch(statement):
        if key := newest_reading_key(user.username):
            return key
    return None


def _insert(session: Session, token: str, key_id: int, time: timedelta, **columns: object) -> int:
    created = now()
    statement = (
        insert(SIGN_IN_LINKS)
        .values(
            token_hash=keyed_hash(token),
            key_id=key_id,
            created_at=created,
            expires_at=created + time,
            **columns,
        )
        .returning(SIGN_IN_LINKS.c.id)
    )
    return int(session.execute(statement).scalar_one())


def find_link(token: str) -> Link | None:
    """Return the unused link with a token, or None. Changes nothing."""
    found = _LINKS.where(
        SIGN_IN_LINKS.c.token_hash == keyed_hash(token), SIGN_IN_LINKS.c.expires_at > now()
    )
    rows = fetch(found)
    return _link(rows[0]) if rows else None


def use_link(session: Session, token: str) -> Link:
    """Use up a link, in the transaction of a session, and return it.

    Raises:
        ShopError: the link is unknown, was used or has expired.
    """
    token_hash = keyed_hash(token)
    row = session.execute(_LINKS.where(SIGN_IN_LINKS.c.token_hash == token_hash)).first()
    # The conditional statement decides which of several requests uses the link.
    _remove(session, SIGN_IN_LINKS.c.token_hash == token_hash, SIGN_IN_LINKS.c.expires_at > now())
    return _link(row)


def _remove(session: Session, *which: ColumnElement[bool]) -> None:
    """Remove the link with the conditions, or raise ShopError if there is none."""
    removed = delete(SIGN_IN_LINKS).where(*which).returning(SIGN_IN_LINKS.c.id)
    if session.execute(removed).first() is None:
        raise ShopError("shop_api_sign_in_link_used")


def take_link(token: str) -> Link:
    """Use up a link of a key and return it, or raise ShopError as ``use_link`` does."""
    return run_in_transaction(lambda session: use_link(session, token))


def invite(actor: Principal, data: Data, form_id: str) -> str:
    """Create an invitation and return the token of its link, which is stored as a hash only.

    The token follows from the form, so that a form that is sent again has the same link.

    Args:
        actor: the inviter, who manages keys.
        data: ``login``, ``role``, ``permission``, ``resources`` and ``expires_at``, as in a loaded
            ``ApiKeyCreate``.
        form_id: the random ID of the form.

    Raises:
        ShopError: the actor may not give these rights, the user exists, or too many invitations
            of the actor's key are open.
    """
    actor.require("shop_api_user_cannot_create_key")
    login, role = data["login"], data["role"]
    if not is_username(login):
        raise ShopError("registration-error-invalid-username", param="invitation.login")
    if role not in ROLES:
        raise InvalidParams({"invitation.role": Sentence("must be one of {0}.", ", ".join(ROLES))})
    rights = Rights(
        Permission(data["permission"]),
        checked_resources(data["resources"]),
        checked_expiry(data["expires_at"]),
    )

    def work(session: Session) -> str:
        current = with_current_rights(session, actor)
        _require_invitation(session, current, login, role, rights)
        columns = rights.columns
        columns["key_expires_at"] = columns.pop("expires_at")
        key_id = actor.key_id or 0
        token = keyed_hash(f"invitation {key_id} {form_id} {login} {role} {columns}")
        this = select(SIGN_IN_LINKS.c.id).where(SIGN_IN_LINKS.c.token_hash == keyed_hash(token))
        if session.execute(this).first():
            return token
        _require_few_invitations(session, key_id)
        link_id = _insert(
            session, token, key_id, INVITATION_TIME, login=login, role=role, **columns
        )
        event = {"id": link_id, "login": login, "role": role, **rights.columns}
        event["expires_at"] = rights.expires_at and f"{rights.expires_at:%Y-%m-%dT%H:%M:%SZ}"
        record(session, actor, [NewEvent("invitation.created", link_id, {"invitation": event})])
        return token

    return run_in_transaction(work)


def _require_few_invitations(session: Session, key_id: int) -> None:
    """Raise InvalidParams if the maximum of invitations of a key, which is locked, is open."""
    of_key = *_open_invitations(), SIGN_IN_LINKS.c.key_id == key_id
    found = session.execute(select(func.count()).select_from(SIGN_IN_LINKS).where(*of_key))
    if found.scalar_one() >= MAX_INVITATIONS:
        reason = Sentence(
            "{0} invitations of your key are open. Withdraw one first.", MAX_INVITATIONS
        )
        raise InvalidParams({"invitation": reason})


def _require_invitation(
    session: Session, actor: Principal, login: str, role: str, rights: Rights
) -> None:
    """Raise ShopError unless an actor may give a new user a role and a key with rights."""
    require_rights(actor, rights)
    actor.require("shop_api_user_cannot_create_key", *capabilities_of([role]))
    require_new_user(actor)
    if find_user(session, login):
        raise InvalidParams({"invitation.login": "already belongs to a user."})


def accept_invitation(token: str, inviter: Principal) -> dict[str, object]:
    """Use up an invitation: create its user and key, and return the key with its secret.

    Args:
        inviter: the principal of the inviter's key, with its current rights.

    Raises:
        ShopError: the link cannot be used (410), the inviter may no longer give these rights (401),
            or the user exists or the key would have expired (400).
    """

    def work(session: Session) -> dict[str, object]:
        link = use_link(session, token)
        if link.login is None or link.role is None or link.key_id != inviter.key_id:
            raise ShopError("shop_api_sign_in_link_used")
        current = with_current_rights(session, inviter)
        require_permission(current, "POST")
        require_resources(current, "keys")
        _require_invitation(session, current, link.login, link.role, link.rights)
        names = link.rights.resources
        data = {
            "user_id": None,
            "username": link.login,
            "role": link.role,
            "permission": link.rights.permission.value,
            "resources": ["all"] if names is None else sorted(names),
            "expires_at": link.rights.expires_at,
            "description": f"{INVITATION_OF}{link.username}",
        }
        key = issue_key(inviter, data)
        event = {"id": link.id, "login": link.login, "role": link.role, "key_id": key["id"]}
        reported = {"invitation": event}
        new = NewEvent("invitation.accepted", link.id, reported, key["user_id"])
        record(session, inviter, [new])
        return key

    return run_in_transaction(work)


def _open_invitations() -> tuple[ColumnElement[bool], ...]:
    return SIGN_IN_LINKS.c.login.is_not(None), SIGN_IN_LINKS.c.expires_at > now()


def list_invitations(actor: Principal) -> list[Link]:
    """Return the open invitations of all inviters, for a key that may read all keys."""
    if not manages_keys(actor, "GET"):
        return []
    found = _LINKS.where(*_open_invitations()).order_by(SIGN_IN_LINKS.c.id.desc())
    return [_link(row) for row in fetch(found)]


def withdraw_invitation(actor: Principal, link_id: int) -> None:
    """Withdraw an open invitation.

    Raises:
        ShopError: the actor does not manage keys, or there is no such invitation.
    """
    actor.require("shop_api_user_cannot_delete_key")
    this = SIGN_IN_LINKS.c.id == link_id, SIGN_IN_LINKS.c.login.is_not(None)
    run_in_transaction(lambda session: _remove(session, *this))


def list_links(actor: Principal) -> list[Link]:
    """Return the unused links of the actor's keys, or of all keys for a key that may read them."""
    found = _LINKS.where(
        *manageable_keys(actor, "GET"),
        SIGN_IN_LINKS.c.login.is_(None),
        SIGN_IN_LINKS.c.expires_at > now(),
    )
    return [_link(row) for row in fetch(found.order_by(SIGN_IN_LINKS.c.id.desc()).limit(MAX_LINKS))]


def revoke_link(actor: Principal, link_id: int) -> None:
    """Revoke an unused link of the actor's keys, or of any key if the actor may revoke all keys.

    Raises:
        ShopError: the actor has no such link.
    """
    keys = select(API_KEYS.c.id).where(*manageable_keys(actor, "DELETE"))
    this = (
        SIGN_IN_LINKS.c.id == link_id,
        SIGN_IN_LINKS.c.login.is_(None),
        SIGN_IN_LINKS.c.key_id.in_(keys),
    )
    run_in_transaction(lambda session: _remove(session, *this))
