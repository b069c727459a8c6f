"""The session of a request: its cookie, and its lookup (admin 1).

A session has the rights that its API key has at each request. Revoking the key or deleting its user
deletes the session, so it ends on all machines at once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Response, current_app, request
from sqlalchemy import bindparam, select, update

from app.auth.api_keys import principal_of
from app.auth.hashes import keyed_hash
from app.auth.principals import InvalidCredentials, Principal
from app.db.read_pool import fetch
from app.db.session import try_to_write
from app.models import ADMIN_SESSIONS, API_KEYS, USER_ROLES, USERS
from app.services.api_keys.sessions import has_ended


def is_loopback() -> bool:
    """Return whether the browser uses a loopback address of this machine."""
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_possible() -> bool:
    """Return whether a cookie can be kept secret: with TLS, or on this machine."""
    return request.is_secure or is_loopback()


def name() -> str:
    """Return the name of the cookie.

    Cookies ignore the port, so several services on one machine have different names.
    """
    prefix = current_app.config["SHOP_URL_PREFIX"]
    of = prefix if request.is_secure else f"{prefix} {request.host.rpartition(':')[2]}"
    kept = f"shop_session_{sha256(of.encode()).hexdigest()[:8]}"
    return f"__Host-{kept}" if request.is_secure else kept


def token() -> str | None:
    """Return the token in the cookie, or None."""
    return request.cookies.get(name()) if is_possible() else None


def store(response: Response, value: str) -> None:
    """Set the cookie."""
    days = current_app.config["SHOP_ADMIN_SESSION_DAYS"]
    response.set_cookie(
        name(),
        value,
        max_age=days * 86_400,
        path="/",
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def remove(response: Response) -> None:
    """Remove the cookie."""
    response.delete_cookie(
        name(), path="/", secure=request.is_secure, httponly=True, samesite="Lax"
    )


_SESSION = (
    select(
        ADMIN_SESSIONS.c.id.label("session_id"),
        ADMIN_SESSIONS.c.last_used_at.label("session_used_at"),
        API_KEYS.c.id,
        API_KEYS.c.user_id,
        API_KEYS.c.permission,
        API_KEYS.c.resources,
        API_KEYS.c.expires_at,
        API_KEYS.c.last_used_at,
        API_KEYS.c.description,
        USERS.c.username,
        USER_ROLES.c.role,
    )
    .join(API_KEYS, API_KEYS.c.id == ADMIN_SESSIONS.c.key_id)
    .join(USERS, USERS.c.id == API_KEYS.c.user_id)
    .outerjoin(USER_ROLES, USER_ROLES.c.user_id == API_KEYS.c.user_id)
    .where(ADMIN_SESSIONS.c.token_hash == bindparam("token_hash"))
)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that has not ended."""

    id: int
    principal: Principal
    username: str
    description: str


def find_session(token: str) -> Session | None:
    """Return the session that the token of a cookie belongs to, or None if it has ended."""
    now = datetime.now(UTC)
    rows = fetch(_SESSION.where(~has_ended(now)), {"token_hash": keyed_hash(token)})
    if not rows:
        return None
    first = rows[0]
    try:
        principal = principal_of(rows)
    except InvalidCredentials:
        return None
    _record_use(first.session_id, first.session_used_at, now)
    return Session(first.session_id, principal, first.username, first.description)


def _record_use(session_id: int, used_at: datetime, now: datetime) -> None:
    """Store that a session is used in the current minute, at most once a minute."""
    minute = now.replace(second=0, microsecond=0)
    if used_at >= minute:
        return
    this = (
        select(ADMIN_SESSIONS.c.id)
        .where(ADMIN_SESSIONS.c.id == session_id, ADMIN_SESSIONS.c.last_used_at < minute)
        .with_for_update(skip_locked=True)
    )
    try_to_write(
        update(ADMIN_SESSIONS).where(ADMIN_SESSIONS.c.id.in_(this)).values(last_used_at=minute)
    )
