"""Complete accounts with their metadata, as other dialects show them."""

from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy import ColumnElement, Select, bindparam, case, exists, select

from app.auth.principals import Capability, Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ORDERS, USER_ROLES, USERS
from app.plugins.woocommerce.rest.lists import (
    RecordListQuery,
    address,
    conditions_of,
    fetch_records,
    phrase_of,
    records_with_ids,
)
from app.plugins.woocommerce.rest.site import Object
from app.services.common.metadata import CUSTOMER, entries_of
from app.services.common.pagination import Total
from app.services.customers.queries import of_role
from app.services.customers.statistics import COLUMNS

_SHOWN = {
    name: COLUMNS[name]
    for name in (*USERS.c.keys(), "role", "statistics")
    if name not in {"password_hash", "search_text", "revision"}
    and not name.endswith(("_normalized", "_sort"))
    and not name.startswith(("billing_", "shipping_"))
}
SHIPPING_PARTS = (
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "postcode",
    "country",
    "state",
    "phone",
)
BILLING_PARTS = (*SHIPPING_PARTS[:9], "email", "phone")
"""Addresses in the order of other dialects."""
_HAS_PAID = exists().where(ORDERS.c.customer_id == USERS.c.id, ORDERS.c.completed_at.is_not(None))
_COLUMNS = (
    *(column.label(name) for name, column in _SHOWN.items()),
    address(USERS.c, "billing", BILLING_PARTS),
    address(USERS.c, "shipping", SHIPPING_PARTS),
    case((_HAS_PAID, 1), else_=0).label("is_paying"),
)
_ROLES: Select[tuple[int, str]] = select(USER_ROLES.c.user_id, USER_ROLES.c.role).where(
    is_one_of(USER_ROLES.c.user_id, bindparam("ids", type_=IdList))
)

_KEYS: Mapping[str, ColumnElement[object]] = {
    "id": USERS.c.id,
    "registered_date": USERS.c.created_at,
    "modified": USERS.c.updated_at,
    "name": USERS.c.name_sort,
}


def list_records(
    actor: Principal, query: RecordListQuery, role: str, email: str | None
) -> tuple[list[Object], Total]:
    """Return a page of accounts and the number of all that match.

    Args:
        role: only accounts with this role; ``all`` for all accounts.
        email: only the account with this e-mail address; None for all.
    """
    search = phrase_of(query.search, USERS.c.search_text, USERS.c.id)
    conditions = conditions_of(query, USERS.c)
    if email is not None:
        conditions.append(USERS.c.email_normalized == comparable_email(email))
    find = partial(of_role, role, conditions, search)
    may_read = actor.can(Capability.LIST_USERS)
    records, total = fetch_records(_COLUMNS, find, query, keys=_KEYS, may_read=may_read)
    return _with_metadata(records), total


def records_by_id(ids: Sequence[int]) -> list[Object]:
    """Return accounts in the order of ``ids``. Unknown IDs are left out."""
    return _with_metadata(records_without_metadata(ids))


def records_without_metadata(ids: Sequence[int]) -> list[Object]:
    """Return accounts in the order of ``ids``, for a caller that reads their metadata."""
    return records_with_ids(_COLUMNS, USERS.c.id, ids)


def _with_metadata(records: list[Object]) -> list[Object]:
    metadata = entries_of(fetch, CUSTOMER, [each["id"] for each in records])
    for each in records:
        each["metadata"] = metadata.get(each["id"], [])
    return records


def roles_of(ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the roles of accounts by their IDs."""
    found: dict[int, list[str]] = {}
    for user_id, role in fetch(_ROLES, {"ids": ids}):
        found.setdefault(user_id, []).append(role)
    return found
