"""Users of API keys: existing users, and users that are created together with a key."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.orm import Session

from app.auth.api_keys import require_user
from app.auth.principals import ROLES, Principal
from app.catalog import Change
from app.conversions.text import comparable, is_username
from app.db.records import row_dicts
from app.errors import InvalidParams, Sentence, ShopError
from app.models import USER_ROLES, USERS
from app.models.user import UserRow, role_of
from app.services.common.bulk import Data, single_result
from app.services.common.roles import roles_of
from app.services.customers.columns import new_account, public_account, with_computed
from app.services.events.hooks import notify
from app.services.events.outbox import Cause


class KeyUser(NamedTuple):
    """The user of a key."""

    id: int
    username: str


def user_for(session: Session, actor: Principal, data: Data) -> KeyUser:
    """Return the user of a new key: the requested user, or the actor. A new user needs a role.

    Args:
        data: a loaded ``ApiKeyCreate``.

    Raises:
        ShopError: the user does not exist, cannot be created, or does not have the given role.
    """
    user_id, username, role = data["user_id"], data["username"], data["role"]
    if role and role not in ROLES:
        raise InvalidParams({"key.role": Sentence("must be one of {0}.", ", ".join(ROLES))})
    if user_id is not None and username:
        raise InvalidParams({"key.username": "cannot be sent together with user_id."})
    if not username:
        user = _user_where(session, USERS.c.id == (actor.user_id if user_id is None else user_id))
        if user is None:
            require_user(actor)
            raise InvalidParams({"key.user_id": "does not identify a user."})
    elif (user := find_user(session, username)) is None:
        return _new_user(session, actor, username, role)
    if role and role not in roles_of(session, user.id):
        reason = Sentence("is not a role of the existing user {0}.", repr(user.username))
        raise InvalidParams({"key.role": reason})
    return user


def _new_user(session: Session, actor: Principal, username: str, role: str) -> KeyUser:
    if not is_username(username):
        raise ShopError("registration-error-invalid-username")
    if not role:
        reason = Sentence("is required, because the user {0} does not exist.", repr(username))
        raise InvalidParams({"key.role": reason})
    require_new_user(actor)
    return create_user(session, username, role, actor)


def require_new_user(actor: Principal) -> None:
    """Raise ShopError unless the actor and its key can create users."""
    actor.require("shop_api_user_cannot_create_customer")
    if actor.resources is not None and "customers" not in actor.resources:
        raise ShopError("shop_api_user_cannot_create_customer")


def find_user(session: Session, username: str) -> KeyUser | None:
    """Return the user with a username, in any letter case."""
    return _user_where(session, USERS.c.username_normalized == comparable(username))


def _user_where(session: Session, condition: ColumnElement[bool]) -> KeyUser | None:
    row = session.execute(select(USERS.c.id, USERS.c.username).where(condition)).first()
    return KeyUser(*row) if row else None


def create_user(
    session: Session, username: str, role: str, cause: Cause | None, *, reports: bool = True
) -> KeyUser:
    """Create a user without e-mail address and password. With ``reports``, write its event."""
    new = insert(USERS).values(new_account({}, username, email="")).returning(*USERS.c)
    users: list[UserRow] = row_dicts(session.execute(new))
    (user,) = users
    session.execute(insert(USER_ROLES).values(role_of(user["id"], role, user["created_at"])))
    if reports:
        customer = single_result(with_computed(session, [public_account(user)]))
        notify(session, cause, [Change("customer.created", None, customer)])
    return KeyUser(user["id"], user["username"])
