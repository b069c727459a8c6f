"""The rules for reading API keys (decisions 2)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from app.auth.principals import Capability, Principal
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import ReadRow, fetch
from app.db.records import Columns, NamedColumns, Row, as_printed
from app.errors import ShopError
from app.models import API_KEYS, USERS
from app.services.common.filtering import ListQuery, Matching
from app.services.common.pagination import Page
from app.services.common.plans import fetch_page

SHOWN = (
    "id",
    "user_id",
    "description",
    "permission",
    "resources",
    "truncated_key",
    "created_at",
    "expires_at",
    "last_used_at",
)

COLUMNS: NamedColumns = {
    **{name: API_KEYS.c[name] for name in SHOWN},
    "username": select(USERS.c.username).where(USERS.c.id == API_KEYS.c.user_id).scalar_subquery(),
}
SORT_KEYS: NamedColumns = {"date": API_KEYS.c.created_at, "id": API_KEYS.c.id}


@dataclass(frozen=True, kw_only=True)
class KeyQuery(ListQuery):
    """What a list of API keys may ask."""

    user_id: int | None = None


def list_keys(actor: Principal, query: KeyQuery, columns: Columns) -> Page:
    """Return a page of the keys: all keys for a manager of keys, or their own."""
    conditions = []
    if not actor.can(Capability.MANAGE_API_KEYS):
        conditions.append(API_KEYS.c.user_id == actor.user_id)
    if query.user_id is not None:
        conditions.append(
            API_KEYS.c.user_id == min(query.user_id, INT64_MAX)
        )  # larger IDs match no user
    matching = Matching(API_KEYS.c.id, conditions)
    return fetch_page(columns, matching, query, key=SORT_KEYS[query.orderby], may_read=True)


def get_key(actor: Principal, key_id: int, columns: Columns) -> Row:
    """Return the key with this ID.

    Raises:
        ShopError: the key does not exist, or it is the key of another user and the actor does not
            manage keys.
    """
    printed = (as_printed(column) for column in columns)
    rows: Sequence[Row] = fetch(select(*printed, API_KEYS.c.user_id).where(API_KEYS.c.id == key_id))
    if not rows:
        raise ShopError("shop_api_invalid_key_id")
    require_own_key(actor, rows[0][-1], "shop_api_user_cannot_read_key")
    return rows[0]


def require_own_key(actor: Principal, owner_id: int, code: str) -> None:
    """Raise ShopError with ``code`` unless the actor owns a key or manages keys."""
    if owner_id != actor.user_id:
        actor.require(code)


def every_key() -> list[ReadRow]:
    """Return all keys by the names of COLUMNS, oldest first, for a command."""
    columns = [column.label(name) for name, column in COLUMNS.items()]
    return list(fetch(select(*columns).order_by(API_KEYS.c.id)))


def exists(key_id: int) -> bool:
    """Return whether a key exists."""
    return abs(key_id) <= INT64_MAX and bool(
        fetch(select(API_KEYS.c.id).where(API_KEYS.c.id == key_id))
    )


def count_keys() -> int:
    """Return the number of keys, including expired keys."""
    return int(fetch(select(func.count()).select_from(API_KEYS))[0][0])


def has_no_users() -> bool:
    """Return whether the shop has no users yet."""
    return not fetch(select(USERS.c.id).limit(1))
