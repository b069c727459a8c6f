"""Roles and capabilities of stored users (decisions 2)."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.auth.principals import Capability, capabilities_of
from app.conversions.numbers import INT64_MAX
from app.models import UserRole


def roles_of(session: Session, user_id: int) -> list[str]:
    """Return the roles of a user. The first role is the one that responses contain."""
    return _roles_by_user(session, [user_id]).get(user_id, [])


def capabilities_by_user(session: Session, ids: Iterable[int]) -> dict[int, frozenset[Capability]]:
    """Return the capabilities of users by user ID, without users that have no role."""
    roles = _roles_by_user(session, [id_ for id_ in ids if 0 < id_ <= INT64_MAX])
    return {user_id: capabilities_of(names) for user_id, names in roles.items()}


def _roles_by_user(session: Session, ids: list[int]) -> dict[int, list[str]]:
    statement = (
        select(UserRole.user_id, UserRole.role)
        .where(UserRole.user_id.in_(ids))
        .order_by(UserRole.user_id, UserRole.position)
    )
    roles: dict[int, list[str]] = {}
    for user_id, role in session.execute(statement):
        roles.setdefault(user_id, []).append(role)
    return roles
