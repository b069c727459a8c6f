"""The rules for reading customers (spec 4.2, 5, 7.2; decisions 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    bindparam,
    exists,
    func,
    literal,
    select,
    union,
)

from app.auth.principals import Capability, Principal
from app.db.functions import leading_number
from app.db.read_pool import Fetch, fetch
from app.db.records import WANTED, Columns, Row, select_where
from app.db.search import Search, comparable, matches, number_found, without_wildcards
from app.emails import is_email
from app.errors import InvalidParams, ShopError
from app.models import RowCount
from app.models.user import FIRST_NAME_SORT, LAST_NAME_SORT, NAME_SORT, sort_key
from app.services.customer_statistics import ROLES, SUMS, TABLE, TOTALS
from app.services.filtering import FEW, FEW_FOUND, FilteredSet, RowCountFilter, between, count
from app.services.pagination import Page, fetch_page, page_size

Record = dict[str, Any]

ALL_ROLES = "all"

_HAS_ID = TABLE.c.id == bindparam(WANTED)
_HAS_EMAIL = TABLE.c.email_normalized == bindparam(WANTED)

SORT_KEYS: Mapping[str, ColumnElement[Any]] = {
    "registered": TABLE.c.created_at,
    "modified": TABLE.c.updated_at,
    "id": TABLE.c.id,
    "email": TABLE.c.email_normalized,
    "login": TABLE.c.username_normalized,
    "username": TABLE.c.username_normalized,
    "name": NAME_SORT,
    "first_name": FIRST_NAME_SORT,
    "last_name": LAST_NAME_SORT,
    **TOTALS,
}
_COUNTS: Any = RowCount.__table__.c
# How many users there are, and how many of each role.
_NUMBERS = (
    select(_COUNTS.table_name, _COUNTS.partition, func.sum(_COUNTS.count))
    .where(_COUNTS.table_name.in_(["users", "user_roles"]))
    .group_by(_COUNTS.table_name, _COUNTS.partition)
)
# Users that changed in a period registered at about the same time, and their ids follow each other:
# in these orders all of them may come last. Up to this number they are sorted instead.
_FEW_CHANGED = 100_000
# The sums of those that have orders, and 0 for all others.
_SUM_KEYS = {name: func.coalesce(sums.c[1], literal(0)) for name, sums in SUMS.items()}


def list_customers(
    actor: Principal, query: Mapping[str, Any], columns: Columns, default_size: int
) -> Page:
    """Return a page of the users with a role, by registration unless ``query`` says otherwise.

    Args:
        query: a loaded ``CustomerListQuery``.
        columns: what to select, of COLUMNS.
        default_size: rows on a page when the query sets no limit.
    """
    size = page_size(query, default_size)
    key = _sort_key(query)
    if not actor.can(Capability.LIST_USERS):
        return Page([], 0, query["page"], size or default_size)
    find = partial(_matching, query)
    return fetch_page(columns, TABLE.c.id, find, key=key, query=query, size=size)


def count_customers(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many users match."""
    _sort_key(query)
    actor.require("shop_api_user_cannot_read_customers_count", Capability.LIST_USERS)
    return count(partial(_matching, query))


def get_customer(actor: Principal, customer_id: int, columns: Columns) -> Row:
    """Return the user with this id."""
    require_positive(customer_id)
    return _readable(actor, _HAS_ID, customer_id, "shop_api_invalid_customer", columns)


def get_customer_by_email(actor: Principal, email: str, columns: Columns) -> Row:
    """Return the user with this e-mail address, in any case (spec 4.2)."""
    if not is_email(email):
        raise ShopError("shop_api_invalid_customer_email")
    key = comparable(email)
    return _readable(actor, _HAS_EMAIL, key, "shop_api_invalid_customer_email", columns)


def require_positive(customer_id: int) -> None:
    """Refuse an id that is not positive (spec 7.2)."""
    if customer_id < 1:
        raise ShopError("shop_api_invalid_customer_id")


def _readable(
    actor: Principal,
    condition: ColumnElement[bool],
    wanted: object,
    missing_code: str,
    columns: Columns,
) -> Row:
    rows: Sequence[Row] = fetch(
        select_where(tuple(columns), TABLE.c.id, condition), {WANTED: wanted}
    )
    if not rows:
        raise ShopError(missing_code)
    actor.require("shop_api_user_cannot_read_customer", Capability.LIST_USERS)
    return rows[0]


def _matching(query: Mapping[str, Any], fetch: Fetch) -> FilteredSet:
    """Return the users that match a loaded ``CustomerFilter``.

    Where ``user_roles`` has everything that is asked for, its index by role and registration is
    read alone. Otherwise a role that few users have is looked up first; one that most users have is
    checked while the users are read in the order of the list.
    """
    role, orderby = query["role"], query["orderby"]
    if role == ALL_ROLES:
        every = FilteredSet(
            select(TABLE.c.id), row_count=RowCountFilter("users", TABLE.c.created_at)
        )
        return _of_users(query, every, [])
    row_count = RowCountFilter("user_roles", ROLES.c.registered_at, (role,))
    of_role = select(ROLES.c.user_id).where(ROLES.c.role == role)
    is_changed_then = query["updated_at_min"] or query["updated_at_max"]
    search = _search(query, ROLES.c.user_id)
    if not search and not is_changed_then and orderby in {"registered", *SUMS}:
        conditions = between({"created_at": ROLES.c.registered_at}, query)
        return FilteredSet(
            of_role.where(*conditions),
            row_count=None if conditions else row_count,
            **_sums(query) or {"key": ROLES.c.registered_at},
        )
    numbers = {(kind, label): int(number) for kind, label, number in fetch(_NUMBERS)}
    number = numbers.get(("user_roles", role), 0)
    if number <= FEW_FOUND:
        found = of_role.join(TABLE, TABLE.c.id == ROLES.c.user_id).where(*between(TABLE.c, query))
        if search:
            found = found.where(search.few)
        return FilteredSet(found, found=found, finds_quickly=True, **_sums(query))
    others = _others(role, numbers, fetch)
    has_role = (
        exists().where(ROLES.c.user_id == TABLE.c.id, ROLES.c.role == role)
        if others is None
        else TABLE.c.id.not_in(others)
    )
    return _of_users(query, FilteredSet(select(TABLE.c.id).where(has_role), number=number), others)


def _of_users(
    query: Mapping[str, Any], every: FilteredSet, others: Sequence[int] | None
) -> FilteredSet:
    """Return the users that match, of those with a frequent role.

    Args:
        every: the users with the role.
        others: all users without it; None if they are many.
    """
    conditions = between(TABLE.c, query)
    ids = every.ids.where(*conditions)
    search = _search(query, TABLE.c.id)
    if search is None:
        if not conditions:
            return replace(every, **_sums(query))
        sorted_up_to = _FEW_CHANGED if _follows_changes(query) else 0
        return FilteredSet(ids, sorted_up_to=sorted_up_to, **_sums(query))
    number = None
    text = without_wildcards(query["q"])
    if text is not None and others is not None and not conditions:
        number = number_found(TABLE.c.search_text, text, others)
    return FilteredSet(
        ids.where(search.many),
        found=ids.where(search.few),
        finds_quickly=True,
        number=number,
        **_sums(query),
    )


def _follows_changes(query: Mapping[str, Any]) -> bool:
    """Return whether a period of changes is sorted by what a change follows."""
    has_period = query["updated_at_min"] or query["updated_at_max"]
    return bool(has_period) and query["orderby"] in {"registered", "id"}


def _search(query: Mapping[str, Any], user_id: ColumnElement[int]) -> Search | None:
    texts = [TABLE.c.email_normalized, TABLE.c.username_normalized, TABLE.c.name_normalized]
    return matches(TABLE.c.search_text, texts, query["q"] or "", user_id)


def _sums(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a list is sorted by, if these are sums of orders; empty otherwise."""
    name = query["orderby"]
    return {"key": _SUM_KEYS[name], "key_from": SUMS[name]} if name in SUMS else {}


def _others(role: str, numbers: Mapping[tuple[str, str], int], fetch: Fetch) -> list[int] | None:
    """Return the ids of all users without a role; None if they are many.

    They are found by their other roles. The numbers tell whether there are users without any.

    Args:
        numbers: how many users there are, and how many of each role.
    """
    missing = numbers.get(("users", ""), 0) - numbers.get(("user_roles", role), 0)
    others = sum(
        number
        for (kind, label), number in numbers.items()
        if kind == "user_roles" and label != role
    )
    if max(missing, others) > FEW:
        return None
    same = ROLES.alias("same")
    has_role = exists().where(same.c.user_id == ROLES.c.user_id, same.c.role == role)
    # Two ranges of the index of roles; an inequality is none, and neither is an OR.
    ranges = (
        select(ROLES.c.user_id).where(other, ~has_role)
        for other in (ROLES.c.role < role, ROLES.c.role > role)
    )
    ids = [row[0] for row in fetch(union(*ranges))]
    return ids if len(ids) == missing else None


def _sort_key(query: Mapping[str, Any]) -> ColumnElement[Any]:
    orderby, meta_key = query["orderby"], query["orderby_meta_key"]
    if orderby not in {"meta_value", "meta_value_num"}:
        return SORT_KEYS[orderby]
    if meta_key is None:
        raise InvalidParams({"filter[orderby_meta_key]": f"is needed to sort by {orderby}."})
    column = TABLE.c[meta_key]
    return sort_key(column) if orderby == "meta_value" else leading_number(column)
