"""Roles and capabilities of stored users (decisions 2)."""

from collections.abc import Iterable

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.principals import Capability, capabilities_of
from app.conversions.numbers import INT64_MAX
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import USER_ROLES

_ROLES = (
    select(USER_ROLES.c.user_id, USER_ROLES.c.role)
    .where(is_one_of(USER_ROLES.c.user_id, bindparam("users", type_=IdList)))
    .order_by(USER_ROLES.c.user_id, USER_ROLES.c.position)
)


def roles_of(session: Session, user_id: int) -> list[str]:
    """Return the roles of a user. The first role is the one that responses contain."""
    return _roles_by_user(session, [user_id]).get(user_id, [])


def capabilities_by_user(session: Session, ids: Iterable[int]) -> dict[int, frozenset[Capability]]:
    """Return the capabilities of users by user ID, without users that have no role."""
    roles = _roles_by_user(session, [id_ for id_ in ids if 0 < id_ <= INT64_MAX])
    return {user_id: capabilities_of(names) for user_id, names in roles.items()}


def _roles_by_user(session: Session, ids: list[int]) -> dict[int, list[str]]:
    roles: dict[int, list[str]] = {}
    for user_id, role in session.execute(_ROLES, {"users": ids}):
        roles.setdefault(user_id, []).append(role)
    return roles
