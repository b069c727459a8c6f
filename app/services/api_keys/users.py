"""Users of API keys: existing users, and users that are created together with a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.auth.api_keys import require_user
from app.auth.principals import ROLES, Capability, Principal
from app.catalog import Change
from app.conversions.text import is_username
from app.db.search import comparable
from app.errors import InvalidParams, ShopError
from app.models import User, UserRole
from app.models.user import role_of
from app.services.common.bulk import single_result
from app.services.customers.columns import new_account, public_account, with_computed
from app.services.customers.roles import roles_of
from app.services.events.hooks import notify
from app.services.events.outbox import Cause


def user_for(session: Session, actor: Principal, data: Mapping[str, Any]) -> User:
    """Return the user of a new key: the requested user, or the actor. A new user needs a role.

    Args:
        session: the session of the transaction.
        actor: the principal of the request.
        data: a loaded ``ApiKeyCreate``.

    Raises:
        ShopError: the user does not exist, cannot be created, or does not have the given role.
    """
    user_id, username, role = data["user_id"], data["username"], data["role"]
    if role and role not in ROLES:
        raise InvalidParams({"key.role": f"must be one of {', '.join(ROLES)}."})
    if user_id is not None and username:
        raise InvalidParams({"key.username": "cannot be sent together with user_id."})
    if not username:
        user = session.get(User, actor.user_id if user_id is None else user_id)
        if user is None:
            require_user(actor)
            raise InvalidParams({"key.user_id": "does not identify a user."})
    elif (user := find_user(session, username)) is None:
        return _new_user(session, actor, username, role)
    if role and role not in roles_of(session, user.id):
        raise InvalidParams({"key.role": f"is not a role of the existing user {user.username!r}."})
    return user


def _new_user(session: Session, actor: Principal, username: str, role: str) -> User:
    if not is_username(username):
        raise ShopError("registration-error-invalid-username")
    if not role:
        raise InvalidParams(
            {"key.role": f"is required, because the user {username!r} does not exist."}
        )
    actor.require("shop_api_user_cannot_create_customer", Capability.CREATE_USERS)
    if actor.resources is not None and "customers" not in actor.resources:
        raise ShopError("shop_api_user_cannot_create_customer")
    user = create_user(session, username, role)
    report_user(session, actor, user)
    return user


def find_user(session: Session, username: str) -> User | None:
    """Return the user with a username, in any letter case."""
    return session.scalar(select(User).where(User.username_normalized == comparable(username)))


def create_user(session: Session, username: str, role: str) -> User:
    """Create a user without an e-mail address and a password."""
    user = User(**new_account({}, username, email=""))
    session.add(user)
    session.flush()
    session.add(UserRole(**role_of(user.id, role, user.created_at)))
    session.flush()
    return user


def report_user(session: Session, cause: Cause | None, user: User) -> None:
    """Write the event of a new user."""
    columns = {column.name: getattr(user, column.name) for column in User.__table__.columns}
    customer = single_result(with_computed(session, [public_account(columns)]))
    notify(session, cause, [Change("customer.created", None, customer)])
