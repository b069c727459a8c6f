"""The rules for reading customers (spec 4.2, 5, 7.2; decisions 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    bindparam,
    exists,
    func,
    literal,
    select,
    union,
)

from app import sanitize
from app.auth.principals import Capability, Principal
from app.db.functions import leading_number
from app.db.read_pool import Fetch, fetch
from app.db.ready import MAX_SELECTS
from app.db.records import WANTED, Columns, Row, select_where
from app.db.search import comparable, matches, unindexed, without_wildcards
from app.errors import InvalidParams, ShopError
from app.models.user import FIRST_NAME_SORT, LAST_NAME_SORT, NAME_SORT, sort_key
from app.services.customer_statistics import ROLES, SUMS, TABLE, TOTALS
from app.services.filtering import (
    FEW,
    FilteredSet,
    IndexCount,
    RowCountFilter,
    between,
    count,
    count_in_index,
)
from app.services.pagination import Page, fetch_page, page_size

Record = dict[str, Any]

ALL_ROLES = "all"

_HAS_ID = TABLE.c.id == bindparam(WANTED)
_HAS_EMAIL = TABLE.c.email_key == bindparam(WANTED)

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
    **TOTALS,
}
# The same for those that have orders, and 0 for all others.
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
    key_of_ids, sums = key, SUMS.get(query["orderby"])
    if sums is not None:
        key_of_ids = _SUM_KEYS[query["orderby"]]
    elif query["orderby"] == "registered" and query["role"] != ALL_ROLES:
        key_of_ids = ROLES.c.registered_at
    return fetch_page(
        columns, TABLE.c.id, _matching(query), key=key, key_of_ids=key_of_ids, key_from=sums,
        query=query, size=size,
    )  # fmt: skip


def count_customers(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many users match."""
    _sort_key(query)
    actor.require("shop_api_user_cannot_read_customers_count", Capability.LIST_USERS)
    return count(_matching(query))


def get_customer(actor: Principal, customer_id: int, columns: Columns) -> Row:
    """Return the user with this id."""
    require_positive(customer_id)
    return _readable(actor, _HAS_ID, customer_id, "shop_api_invalid_customer", columns)


def get_customer_by_email(actor: Principal, email: str, columns: Columns) -> Row:
    """Return the user with this e-mail address, in any case (spec 4.2)."""
    if not sanitize.is_email(email):
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


def _matching(query: Mapping[str, Any]) -> FilteredSet:
    """Return the users that match a loaded ``CustomerFilter``.

    A role by registration, which is what most lists ask for, is found in the index of the roles
    alone.
    """
    conditions = between(TABLE, query)
    of_roles_alone = not conditions and query["orderby"] in {"registered", *SUMS}
    every = _every(query["role"], of_roles_alone)
    (found_id,) = every.ids.selected_columns
    texts = [TABLE.c.email_key, TABLE.c.username_key, TABLE.c.name_key]
    search = matches(TABLE.c.search_text, texts, query["q"] or "", found_id)
    if search is None:
        return every.where(conditions)
    return every.searched(search, conditions, partial(_anywhere, query["role"], query["q"]))


@lru_cache(MAX_SELECTS)
def _every(role: str, of_roles_alone: bool) -> FilteredSet:  # remembered by position
    """Return the users with a role, from the table of roles alone or from both."""
    if role == ALL_ROLES:
        return FilteredSet(select(TABLE.c.id), tallied=RowCountFilter("users", TABLE.c.created_at))
    ids = select(ROLES.c.user_id)
    if not of_roles_alone:
        ids = ids.join(TABLE, TABLE.c.id == ROLES.c.user_id)
    return FilteredSet(
        ids.where(ROLES.c.role == role),
        tallied=RowCountFilter("user_roles", ROLES.c.registered_at, (role,)),
        found=ids.where(unindexed(ROLES.c.role) == role),
    )


def _anywhere(role: str, pattern: str) -> IndexCount | None:
    """Return how a search is counted without looking for the role of everybody that it finds.

    In a shop nearly everybody is a customer. The others are those with other roles only; should
    there be anybody without a role, or many of the others, the tallies tell.
    """

    def outside(fetch: Fetch) -> list[int] | None:
        if role == ALL_ROLES:
            return []
        tallied = [
            RowCountFilter("users", TABLE.c.created_at),
            RowCountFilter("user_roles", ROLES.c.registered_at),
            RowCountFilter("user_roles", ROLES.c.registered_at, (role,)),
        ]
        everybody, roles, of_role = (each.total(fetch) for each in tallied)
        if everybody - of_role > FEW or roles - of_role > FEW:
            return None
        others = [row[0] for row in fetch(_others(role))]
        return others if len(others) == everybody - of_role else None

    return count_in_index(TABLE.c.search_text, TABLE.c.id, without_wildcards(pattern), outside)


@lru_cache(MAX_SELECTS)
def _others(role: str) -> CompoundSelect[Any]:
    """Return the users with other roles only."""
    same = ROLES.alias("same")
    has_role = exists().where(same.c.user_id == ROLES.c.user_id, same.c.role == role)
    # Two ranges of the index of roles; an inequality is none, and neither is an OR.
    ranges = (
        select(ROLES.c.user_id).where(other, ~has_role)
        for other in (ROLES.c.role < role, ROLES.c.role > role)
    )
    return union(*ranges)


def _sort_key(query: Mapping[str, Any]) -> ColumnElement[Any]:
    return _key_of(query["orderby"], query["orderby_meta_key"])


@lru_cache(MAX_SELECTS)
def _key_of(orderby: str, meta_key: str | None) -> ColumnElement[Any]:
    if orderby not in {"meta_value", "meta_value_num"}:
        return SORT_KEYS[orderby]
    if meta_key is None:
        raise InvalidParams({"filter[orderby_meta_key]": f"is needed to sort by {orderby}."})
    column = TABLE.c[meta_key]
    return sort_key(column) if orderby == "meta_value" else leading_number(column)
