"""Complete accounts with their metadata, as other dialects show them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Select, bindparam, case, exists, select

from app.db.read_pool import fetch
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ORDERS, USER_ROLES, USERS
from app.plugins.woocommerce.rest import lists
from app.plugins.woocommerce.rest.site import Object
from app.services.customers import statistics

_SHOWN = {
    name: statistics.COLUMNS[name]
    for name in (*USERS.c.keys(), "role", "statistics")
    if name not in {"password_hash", "search_text", "revision"}
    and not name.endswith(("_normalized", "_sort"))
    and not name.startswith(("billing_", "shipping_"))
}
_NAME_AND_STREET = ("first_name", "last_name", "company", "address_1", "address_2", "city")
SHIPPING_PARTS = (*_NAME_AND_STREET, "postcode", "country", "state", "phone")
BILLING_PARTS = (*SHIPPING_PARTS[:9], "email", "phone")
"""Addresses in the order of other dialects."""
_HAS_PAID = exists().where(ORDERS.c.customer_id == USERS.c.id, ORDERS.c.completed_at.is_not(None))
COLUMNS = (
    *(column.label(name) for name, column in _SHOWN.items()),
    lists.address(USERS.c, "billing", BILLING_PARTS),
    lists.address(USERS.c, "shipping", SHIPPING_PARTS),
    case((_HAS_PAID, 1), else_=0).label("is_paying"),
)
_ROLES: Select[tuple[int, str]] = select(USER_ROLES.c.user_id, USER_ROLES.c.role).where(
    is_one_of(USER_ROLES.c.user_id, bindparam("ids", type_=IdList))
)

KEYS: Mapping[str, ColumnElement[object]] = {
    "id": USERS.c.id,
    "registered_date": USERS.c.created_at,
    "modified": USERS.c.updated_at,
    "name": USERS.c.name_sort,
}


def records_without_metadata(ids: Sequence[int]) -> list[Object]:
    """Return accounts in the order of ``ids``, for a caller that reads their metadata."""
    return lists.records_with_ids(COLUMNS, USERS.c.id, ids)


def roles_of(ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the roles of accounts by their IDs."""
    found: dict[int, list[str]] = {}
    for user_id, role in fetch(_ROLES, {"ids": ids}):
        found.setdefault(user_id, []).append(role)
    return found
