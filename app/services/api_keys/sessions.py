"""Sessions of the admin pages: begin, list and end them (admin 1 and 5)."""

import secrets
from datetime import datetime, timedelta

from flask import current_app
from sqlalchemy import ColumnElement, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.auth.hashes import keyed_hash
from app.auth.principals import Capability, Permission, Principal
from app.db.read_pool import ReadRow, fetch
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import ADMIN_SESSIONS, API_KEYS, SIGN_IN_LINKS, USERS

MAX_USER_AGENT = 300
"""Characters of the browser's name that are stored."""


def new_token() -> str:
    """Return a random token with 256 bits."""
    return secrets.token_urlsafe(32)


def begin_session(key_id: int, user_agent: str) -> str:
    """Begin a session of a key and return its token.

    Raises:
        ShopError: the key was revoked, has expired or may not read.
    """
    token = new_token()

    def work(session: Session) -> None:
        require_reading_key(session, key_id)
        started = now()
        session.execute(
            insert(ADMIN_SESSIONS).values(
                token_hash=keyed_hash(token),
                key_id=key_id,
                created_at=started,
                last_used_at=started,
                expires_at=started + timedelta(days=current_app.config["SHOP_ADMIN_SESSION_DAYS"]),
                user_agent=user_agent[:MAX_USER_AGENT],
            )
        )

    run_in_transaction(work)
    return token


def require_reading_key(session: Session, key_id: int) -> None:
    """Raise ShopError unless a key can be used to sign in."""
    key = session.execute(
        select(API_KEYS, USERS.c.username)
        .join(USERS, USERS.c.id == API_KEYS.c.user_id)
        .where(API_KEYS.c.id == key_id)
    ).first()
    if key is None or (key.expires_at is not None and key.expires_at <= now()):
        raise ShopError("shop_api_invalid_key_id")
    if not Permission(key.permission).allows("GET"):
        raise ShopError("shop_api_key_cannot_sign_in")


def list_sessions(actor: Principal) -> list[ReadRow]:
    """Return the sessions of the actor, or all sessions for a key that may read all keys."""
    return list(
        fetch(
            select(
                ADMIN_SESSIONS.c.id,
                ADMIN_SESSIONS.c.created_at,
                ADMIN_SESSIONS.c.last_used_at,
                ADMIN_SESSIONS.c.expires_at,
                ADMIN_SESSIONS.c.user_agent,
                ADMIN_SESSIONS.c.key_id,
                API_KEYS.c.user_id,
                API_KEYS.c.description,
                API_KEYS.c.truncated_key,
                USERS.c.username,
            )
            .join(API_KEYS, API_KEYS.c.id == ADMIN_SESSIONS.c.key_id)
            .join(USERS, USERS.c.id == API_KEYS.c.user_id)
            .where(*manageable_keys(actor, "GET"), ~has_ended(now()))
            .order_by(ADMIN_SESSIONS.c.last_used_at.desc(), ADMIN_SESSIONS.c.id.desc())
            .limit(200)
        )
    )


def manages_keys(actor: Principal, method: str) -> bool:
    """Return whether an actor manages keys, and its key allows a method on them."""
    allowed = actor.resources is None or "keys" in actor.resources
    return actor.can(Capability.MANAGE_API_KEYS) and allowed and actor.permission.allows(method)


def manageable_keys(actor: Principal, method: str) -> list[ColumnElement[bool]]:
    """Return the condition for the keys whose sessions an actor may see or end."""
    return [] if manages_keys(actor, method) else [API_KEYS.c.user_id == actor.user_id]


def end_session(actor: Principal, session_id: int) -> None:
    """End a session of the actor, or any session for a key that may revoke all keys.

    Raises:
        ShopError: the actor has no such session.
    """
    keys = select(API_KEYS.c.id).where(*manageable_keys(actor, "DELETE"))
    this = ADMIN_SESSIONS.c.id == session_id, ADMIN_SESSIONS.c.key_id.in_(keys)
    if not run_in_transaction(lambda session: _end(session, *this)):
        raise ShopError("shop_api_invalid_session_id")


def _end(session: Session, *which: ColumnElement[bool]) -> bool:
    """End sessions, and return whether there were any."""
    ended = delete(ADMIN_SESSIONS).where(*which).returning(ADMIN_SESSIONS.c.id)
    return bool(session.execute(ended).all())


def end_every_session(user_id: int) -> None:
    """End all sessions of a user like one, and remove all unused links of the user."""
    keys = select(API_KEYS.c.id).where(API_KEYS.c.user_id == user_id)

    def work(session: Session) -> None:
        _end(session, ADMIN_SESSIONS.c.key_id.in_(keys))
        session.execute(delete(SIGN_IN_LINKS).where(SIGN_IN_LINKS.c.key_id.in_(keys)))

    run_in_transaction(work)


def end_sessions_of_key(session: Session, key_id: int) -> None:
    """End the sessions of a key, and remove its unused links and invitations."""
    session.execute(delete(ADMIN_SESSIONS).where(ADMIN_SESSIONS.c.key_id == key_id))
    session.execute(delete(SIGN_IN_LINKS).where(SIGN_IN_LINKS.c.key_id == key_id))


def has_ended(time: datetime) -> ColumnElement[bool]:
    """Return whether a session has ended at a time: its last day, or unused for too long."""
    idle = timedelta(days=current_app.config["SHOP_ADMIN_IDLE_DAYS"])
    return or_(ADMIN_SESSIONS.c.expires_at <= time, ADMIN_SESSIONS.c.last_used_at <= time - idle)
