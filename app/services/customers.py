"""The rules for reading customers (spec 4.2, 5, 7.2; decisions 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, func, literal, select

from app import sanitize
from app.auth import Capability, Principal
from app.columns import leading_number
from app.db import fetch
from app.errors import InvalidParams, ShopError
from app.models.user import (
    FIRST_NAME_SORT,
    LAST_NAME_SORT,
    NAME_SORT,
    sort_key,
)
from app.pagination import Matching, Page, Tallied, between, fetch_page, page_size
from app.search import comparable, matches, unindexed
from app.services.statistics import COLUMNS, ROLES, SUMS, TABLE

Columns = Sequence[ColumnElement[Any]]
Record = dict[str, Any]

EVERY_ROLE = "all"

SORT_KEYS: Mapping[str, ColumnElement[Any]] = {
    "registered": TABLE.c.created_at,
    "modified": TABLE.c.updated_at,
    "id": TABLE.c.id,
    "email": TABLE.c.email_key,
    "login": TABLE.c.username_key,
    "username": TABLE.c.username_key,
    "name": NAME_SORT,
    "first_name": FIRST_NAME_SORT,
    "last_name": LAST_NAME_SORT,
    "orders_count": COLUMNS["orders_count"],
    "total_spent": COLUMNS["total_spent"],
}


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
    key_of_ids, sums = key, SUMS.get(query["orderby"])
    if sums is not None:
        key_of_ids = func.coalesce(sums.c[1], literal(0))
    elif query["orderby"] == "registered" and query["role"] != EVERY_ROLE:
        key_of_ids = ROLES.c.registered_at
    return fetch_page(
        columns, TABLE.c.id, _matching(query), key=key, key_of_ids=key_of_ids, key_from=sums,
        query=query, size=size,
    )  # fmt: skip


def count_customers(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many users match."""
    _sort_key(query)
    actor.require("shop_api_user_cannot_read_customers_count", Capability.LIST_USERS)
    return _matching(query).total()


def get_customer(actor: Principal, customer_id: int, columns: Columns) -> Row[Any]:
    """Return the user with this id."""
    return _readable(actor, existing_id(customer_id), "shop_api_invalid_customer", columns)


def get_customer_by_email(actor: Principal, email: str, columns: Columns) -> Row[Any]:
    """Return the user with this e-mail address, in any case (spec 4.2)."""
    if not sanitize.is_email(email):
        raise ShopError("shop_api_invalid_customer_email")
    same = TABLE.c.email_key == comparable(email)
    return _readable(actor, same, "shop_api_invalid_customer_email", columns)


def existing_id(customer_id: int) -> ColumnElement[bool]:
    """Return the condition for an id, or refuse one that is not positive (spec 7.2)."""
    if customer_id < 1:
        raise ShopError("shop_api_invalid_customer_id")
    return TABLE.c.id == customer_id


def _readable(
    actor: Principal, condition: ColumnElement[bool], missing_code: str, columns: Columns
) -> Row[Any]:
    rows = fetch(select(*columns, TABLE.c.id).where(condition))
    if not rows:
        raise ShopError(missing_code)
    actor.require("shop_api_user_cannot_read_customer", Capability.LIST_USERS)
    return rows[0]


def _matching(query: Mapping[str, Any]) -> Matching:
    """Return the users that match a loaded ``CustomerFilter``.

    A role by registration, which is what most lists ask for, is found in the index of the roles
    alone.
    """
    conditions = between(TABLE, query)
    if query["role"] == EVERY_ROLE:
        ids = found = select(TABLE.c.id)
        tallied = Tallied("users", TABLE.c.created_at)
    else:
        ids = select(ROLES.c.user_id)
        if conditions or query["orderby"] not in {"registered", *SUMS}:
            ids = ids.join(TABLE, TABLE.c.id == ROLES.c.user_id)
        found = ids.where(unindexed(ROLES.c.role) == query["role"])
        ids = ids.where(ROLES.c.role == query["role"])
        tallied = Tallied("user_roles", ROLES.c.registered_at, [query["role"]])
    texts = [TABLE.c.email_key, TABLE.c.username_key, TABLE.c.name_key]
    (found_id,) = ids.selected_columns
    search = matches(TABLE.c.search_text, texts, query["q"] or "", found_id)
    if search is None:
        return Matching(ids.where(*conditions), tallied=None if conditions else tallied)
    return Matching(ids.where(*conditions, search), found=found.where(*conditions, search))


def _sort_key(query: Mapping[str, Any]) -> ColumnElement[Any]:
    orderby, meta_key = query["orderby"], query["orderby_meta_key"]
    if orderby not in {"meta_value", "meta_value_num"}:
        return SORT_KEYS[orderby]
    if meta_key is None:
        raise InvalidParams({"filter[orderby_meta_key]": f"is needed to sort by {orderby}."})
    column = TABLE.c[meta_key]
    return sort_key(column) if orderby == "meta_value" else leading_number(column)
