"""API keys: create, list, revoke (decisions 2)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from flask import current_app
from sqlalchemy import Row, delete, select
from sqlalchemy.orm import Session

from app.auth.encryption import encrypt
from app.auth.principals import ApiKeyCredentials, Permission, keyed_hash, note_revocation
from app.db.read_pool import fetch
from app.db.search import comparable
from app.db.session import now, run_in_transaction
from app.models import ApiKey, User, UserRole
from app.models.user import role_of, with_normalized
from app.numbers import INT64_MAX
from app.services.customers import BLANK


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key as it is shown once, when it is created."""

    key_id: int
    user_id: int
    login: str
    role: str
    permission: str
    consumer_key: str
    consumer_secret: str


_KEYS = (
    select(
        ApiKey.id,
        User.username,
        ApiKey.permission,
        ApiKey.truncated_key,
        ApiKey.created_at,
        ApiKey.description,
    )
    .join(User, User.id == ApiKey.user_id)
    .order_by(ApiKey.id)
)


class KeyExists(Exception):
    """Another key has this consumer key."""


class RoleRequired(Exception):
    """There is no user with this name, and no role for a new one was given."""


def create_key(
    login: str,
    role: str | None,
    permission: Permission,
    description: str,
    pair: ApiKeyCredentials | None = None,
) -> NewKey:
    """Create a key for a user, and the user with that role when there is none.

    Args:
        login: the username, compared without case.
        role: a key of ROLES, used only for a new user; None when the user must exist.
        pair: a key and secret that clients already have; None makes new ones.

    Raises:
        KeyExists: the key of ``pair`` is another one's here.
        RoleRequired: there is no such user, and ``role`` is None.
    """
    pair = pair or ApiKeyCredentials(f"ck_{secrets.token_hex(20)}", f"cs_{secrets.token_hex(20)}")
    consumer_key, consumer_secret = pair.consumer_key, pair.consumer_secret

    signs = current_app.config["SHOP_LEGACY_API"]
    secret_to_sign_with = encrypt(consumer_secret) if signs else None

    def work(session: Session) -> NewKey:
        mine = ApiKey.consumer_key_hash == keyed_hash(consumer_key)
        if session.scalar(select(ApiKey.id).where(mine)):
            raise KeyExists
        user = session.scalar(select(User).where(User.username_normalized == comparable(login)))
        if user is None:
            if role is None:
                raise RoleRequired
            moment = now()
            account = BLANK | {"username": login, "email": ""}
            user = User(**with_normalized(account), created_at=moment, updated_at=moment)
            session.add(user)
            session.flush()
            session.add(UserRole(**role_of(user.id, role, moment)))
            session.flush()
        roles = session.scalars(
            select(UserRole.role).where(UserRole.user_id == user.id).order_by(UserRole.position)
        ).all()
        key = ApiKey(
            user_id=user.id,
            permission=permission.value,
            description=description,
            consumer_key_hash=keyed_hash(consumer_key),
            consumer_secret_hash=keyed_hash(consumer_secret),
            consumer_secret_encrypted=secret_to_sign_with,
            truncated_key=consumer_key[-7:],
            created_at=now(),
        )
        session.add(key)
        session.flush()
        return NewKey(
            key_id=key.id,
            user_id=user.id,
            login=user.username,
            role=roles[0] if roles else "",
            permission=permission.value,
            consumer_key=consumer_key,
            consumer_secret=consumer_secret,
        )

    return run_in_transaction(work)


def list_keys() -> list[Row[Any]]:
    """Return every key with its user, oldest first, without either secret."""
    return list(fetch(_KEYS))


def has_no_users() -> bool:
    """Tell whether the shop has no user yet."""
    return not fetch(select(User.id).limit(1))


def revoke_key(key_id: int) -> bool:
    """End a key at once. Return False when there is none with this id."""
    if key_id > INT64_MAX:
        return False

    def work(session: Session) -> bool:
        gone = session.execute(delete(ApiKey).where(ApiKey.id == key_id).returning(ApiKey.id))
        return gone.first() is not None

    revoked = run_in_transaction(work)
    note_revocation()
    return revoked
