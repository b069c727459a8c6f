"""The rules for reading customers (spec 4.2, 5, 7.2; decisions 5)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    bindparam,
    exists,
    func,
    literal,
    select,
    union,
)

from app.auth.principals import Capability, Principal
from app.conversions.emails import comparable_email, is_email
from app.db.read_pool import MAX_SELECTS, Fetch, fetch
from app.db.records import WANTED, Columns, Row, select_where
from app.db.search import matches
from app.db.sql.functions import is_one_of, leading_number
from app.db.sql.index_hints import Condition
from app.db.sql.types import IdList
from app.errors import InvalidParams, ShopError
from app.models import ROW_COUNTS, USER_ROLES, USER_TAGS, USERS
from app.models.user import sort_key
from app.services.common import metadata, plans
from app.services.common.filtering import Matching, Ranking, Subset, between
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page
from app.services.common.row_counts import RowCountFilter
from app.services.customers import totals
from app.services.customers.statistics import SUMS, TOTALS

ALL_ROLES = "all"

_HAS_ID = USERS.c.id == bindparam(WANTED)
_HAS_EMAIL = USERS.c.email_normalized == bindparam(WANTED)

SORT_KEYS: Mapping[str, ColumnElement[Any]] = {
    "registered": USERS.c.created_at,
    "modified": USERS.c.updated_at,
    "id": USERS.c.id,
    "email": USERS.c.email_normalized,
    "login": USERS.c.username_normalized,
    "username": USERS.c.username_normalized,
    "name": USERS.c.name_sort,
    "first_name": USERS.c.first_name_sort,
    "last_name": USERS.c.last_name_sort,
    **TOTALS,
}
_COUNTS: Any = ROW_COUNTS.c
# The number of users, and the number of users with each role.
_NUMBERS = (
    select(_COUNTS.table_name, _COUNTS.partition, func.sum(_COUNTS.count))
    .where(_COUNTS.table_name.in_(["users", "user_roles"]))
    .group_by(_COUNTS.table_name, _COUNTS.partition)
)
# Users that were updated in a period often registered at the same time, so all of them can come
# last in the order of registration or ID. Up to this number of users is sorted instead.
_FEW_CHANGED = 100_000
_FEW_SUMS, _MOST_SUMS = 100, 20_000
_TEXTS = [USERS.c.email_normalized, USERS.c.username_normalized, USERS.c.name_normalized]


def list_customers(actor: Principal, query: Mapping[str, Any], columns: Columns) -> Page:
    """Return a page of the users that match, by default in the order of their registration.

    The page is empty without the capability to list users (spec 4.2).

    Args:
        query: a loaded ``CustomerListQuery``.

    Raises:
        InvalidParams: ``orderby`` requires a field to sort by.
    """
    return fetch_page(
        columns,
        partial(_matching, query),
        query,
        key=_sort_key(query),
        may_read=actor.can(Capability.LIST_USERS),
        record_id=USERS.c.id,
    )


def first_customers(
    actor: Principal, query: Mapping[str, Any], columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the first users that a search finds, the one with this e-mail address first.

    Args:
        query: a loaded ``CustomerListQuery`` with ``q``, and all roles.
    """
    if not actor.can(Capability.LIST_USERS):
        return []
    is_exact = USERS.c.email_normalized == comparable_email(query["q"])
    key = SORT_KEYS["registered"]
    return plans.first_matches(columns, _matching(query, fetch), limit, key=key, is_exact=is_exact)


def count_customers(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return the number of users that match.

    Raises:
        InvalidParams: ``orderby`` requires a field to sort by.
        ShopError: the capability is missing.
    """
    _sort_key(query)
    actor.require("shop_api_user_cannot_read_customers_count")
    return count(partial(_matching, query))


def get_customer(actor: Principal, customer_id: int, columns: Columns) -> Row:
    """Return the user with this ID.

    Raises:
        ShopError: the ID is not positive, no user has it, or the capability is missing (spec 7.2).
    """
    require_positive(customer_id)
    return _readable(actor, _HAS_ID, customer_id, "shop_api_invalid_customer", columns)


def get_customer_by_email(actor: Principal, email: str, columns: Columns) -> Row:
    """Return the user with this e-mail address, in any letter case (spec 4.2).

    Raises:
        ShopError: the address is not valid, no user has it, or the capability is missing.
    """
    if not is_email(email):
        raise ShopError("shop_api_invalid_customer_email")
    key = comparable_email(email)
    return _readable(actor, _HAS_EMAIL, key, "shop_api_invalid_customer_email", columns)


def emails_of(ids: Collection[int]) -> dict[int, str]:
    """Return the e-mail addresses of users by their IDs, for an actor who may list users."""
    of_users = select(USERS.c.id, USERS.c.email).where(USERS.c.id.in_(ids))
    return {row.id: row.email for row in fetch(of_users)} if ids else {}


def require_positive(customer_id: int) -> None:
    """Raise ShopError if an ID is not positive (spec 7.2)."""
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
        select_where((*columns, USERS.c.revision), USERS.c.id, condition), {WANTED: wanted}
    )
    if not rows:
        raise ShopError(missing_code)
    actor.require("shop_api_user_cannot_read_customer")
    return rows[0]


def _matching(query: Mapping[str, Any], fetch: Fetch) -> Matching:
    """Return the users that match a loaded ``CustomerFilter``.

    If the query needs only columns of ``user_roles``, its index by role and registration is read
    alone. Otherwise, the users with a rare role are looked up first, and a frequent role is checked
    while the users are read in the order of the list.
    """
    role, orderby = query["role"], query["orderby"]
    if role == ALL_ROLES:
        counted = RowCountFilter("users", USERS.c.created_at)
        return _of_users(query, Subset(counted=counted, others=()), fetch)
    counted = RowCountFilter("user_roles", USER_ROLES.c.registered_at, (role,))
    is_changed_then = query["updated_at_min"] or query["updated_at_max"]
    searches = query["q"] or query["metadata"] or query["tag"]
    if not searches and not is_changed_then and orderby in {"registered", *SUMS}:
        of_role = Subset(_has_role(role), counted=counted)
        conditions = between({"created_at": USER_ROLES.c.registered_at}, query)
        by = _ranking(query, fetch)
        if by is None:
            key = USER_ROLES.c.registered_at
            return Matching(USER_ROLES.c.user_id, conditions, of_role, key=key)
        few, of_role = _few_sums(of_role, fetch), replace(of_role, by_index=of_role.condition)
        return Matching(USER_ROLES.c.user_id, conditions, of_role, few=few, ranking=by)
    has_role: ColumnElement[bool]
    numbers = {(kind, label): int(number) for kind, label, number in fetch(_NUMBERS)}
    if numbers.get(("user_roles", role), 0) <= plans.FEW_FOUND:
        has_role = USERS.c.id.in_(select(USER_ROLES.c.user_id).where(USER_ROLES.c.role == role))
        return _of_users(query, Subset(has_role, by_index=has_role), fetch, few=plans.FEW_FOUND)
    others = _users_without_role(role, numbers, fetch)
    has_role = (
        exists().where(USER_ROLES.c.user_id == USERS.c.id, USER_ROLES.c.role == role)
        if others is None
        else ~is_one_of(USERS.c.id, literal(others, IdList))
    )
    return _of_users(query, Subset(has_role, counted=counted, others=others), fetch)


@lru_cache(MAX_SELECTS)  # the key of the cached select of a page
def _has_role(role: str) -> ColumnElement[bool]:
    return USER_ROLES.c.role == role


def _of_users(
    query: Mapping[str, Any], part: Subset, fetch: Fetch, few: int | None = None
) -> Matching:
    by_text = matches(USERS.c.search_text, _TEXTS, query["q"] or "", USERS.c.id)
    filters = tag_conditions(query)
    filters += metadata.conditions_of(metadata.CUSTOMER, USERS.c.id, query["metadata"], fetch)
    search, compared = metadata.with_metadata(by_text, filters)
    has_period = query["updated_at_min"] or query["updated_at_max"]
    if has_period and query["orderby"] in {"registered", "id"} and search is None:
        few = _FEW_CHANGED
    conditions = [*between(USERS.c, query), *compared]
    by = _ranking(query, fetch)
    if by is not None and search is None:
        few = max(few or 0, _few_sums(part, fetch))
    return Matching(USERS.c.id, conditions, part, search, few, ranking=by)


def tag_conditions(query: Mapping[str, Any]) -> list[Condition]:
    """Return the condition of a loaded ``CustomerFilter`` on a tag, if it has one."""
    if query["tag"] is None:
        return []
    has_tag = USER_TAGS.c.tag == query["tag"]
    tagged = select(USER_TAGS.c.user_id).where(has_tag)
    is_tagged = exists().where(USER_TAGS.c.user_id == USERS.c.id, has_tag)
    return [Condition(is_tagged, USERS.c.id.in_(tagged), tagged)]


def _few_sums(part: Subset, fetch: Fetch) -> int:
    """Return up to how many matches their sums of orders are computed and sorted.

    In the index of sums, they can be after most others.
    """
    everyone = 0 if part.counted is None else part.counted.total(fetch)
    return max(_FEW_SUMS, min(_MOST_SUMS, everyone // 10))


def _ranking(query: Mapping[str, Any], fetch: Fetch) -> Ranking | None:
    """Return the order of a list that is sorted by a sum of orders, otherwise None."""
    return totals.ranking(query["orderby"], fetch) if query["orderby"] in SUMS else None


def _sort_key(query: Mapping[str, Any]) -> ColumnElement[Any]:
    orderby, meta_key = query["orderby"], query["orderby_meta_key"]
    if orderby not in {"meta_value", "meta_value_num"}:
        return SORT_KEYS[orderby]
    if meta_key is None:
        raise InvalidParams({"filter[orderby_meta_key]": f"is required to sort by {orderby}."})
    column = USERS.c[meta_key]
    return sort_key(column) if orderby == "meta_value" else leading_number(column)


def _without_role() -> CompoundSelect[Any]:
    """Return a select of the users who have roles, but not a given one."""
    role: BindParameter[str] = bindparam(WANTED)
    same = USER_ROLES.alias("same")
    has_role = exists().where(same.c.user_id == USER_ROLES.c.user_id, same.c.role == role)
    # Two ranges of the index of roles, because an inequality or an OR would not use the index.
    return union(
        *(
            select(USER_ROLES.c.user_id).where(other, ~has_role)
            for other in (USER_ROLES.c.role < role, USER_ROLES.c.role > role)
        )
    )


# Built once: building it took a quarter of the time of a list.
_WITHOUT_ROLE = _without_role()


def _users_without_role(
    role: str, numbers: Mapping[tuple[str, str], int], fetch: Fetch
) -> list[int] | None:
    """Return the IDs of all users without a role, or None if there are many.

    The users are found by their other roles. The row counts show whether all users have roles.
    """
    missing = numbers.get(("users", ""), 0) - numbers.get(("user_roles", role), 0)
    others = sum(
        number
        for (kind, label), number in numbers.items()
        if kind == "user_roles" and label != role
    )
    if max(missing, others) > plans.FEW_OTHERS:
        return None
    ids = [row[0] for row in fetch(_WITHOUT_ROLE, {WANTED: role})]
    return ids if len(ids) == missing else None
