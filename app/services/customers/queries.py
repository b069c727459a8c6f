"""The rules for reading customers (spec 4.2, 5, 7.2; decisions 5)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Select,
    and_,
    bindparam,
    exists,
    false,
    func,
    literal,
    select,
    true,
    union,
)

from app.auth.principals import Capability, Principal
from app.conversions.emails import comparable_email, is_email
from app.db.read_pool import Fetch, fetch
from app.db.records import WANTED, Columns, NamedColumns, Row, select_where
from app.db.search import MOST_COUNTED, Search, matches, narrowed
from app.db.sql.functions import is_one_of, leading_number
from app.db.sql.types import IdList
from app.errors import InvalidParams, Sentence, ShopError
from app.models import ROW_COUNTS, USER_ROLES, USER_TAGS, USERS
from app.models.user import sort_key
from app.services.common import metadata, plans
from app.services.common.filtering import Find, ListQuery, Matching, OtherIndex, between, within
from app.services.common.pagination import Page, Total
from app.services.common.plans import FEW, count, fetch_page
from app.services.common.row_counts import RowCountFilter
from app.services.customers import totals
from app.services.customers.statistics import SUMS, TOTALS

ALL_ROLES, DEFAULT_ROLE = "all", "customer"

_HAS_ID = USERS.c.id == bindparam(WANTED)
_HAS_EMAIL = USERS.c.email_normalized == bindparam(WANTED)

SORT_KEYS: NamedColumns = {
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
# Another name, because a statement for users reads their first role, too.
_REGISTERED = USER_ROLES.alias("registered")
_COUNTS = ROW_COUNTS.c
# The number of users, and the number of users with each role.
_NUMBERS = (
    select(_COUNTS.table_name, _COUNTS.partition, func.sum(_COUNTS.count))
    .where(_COUNTS.table_name.in_(["users", "user_roles"]))
    .group_by(_COUNTS.table_name, _COUNTS.partition)
)
MOST_SORTED = {"meta_value": 300_000, "meta_value_num": 100_000}
"""Most customers that are sorted by a text or by the number in it, which no index has."""

_FEW_OTHERS = 5000
"""Up to this number, the users without a role are named by their IDs."""


@dataclass(frozen=True, kw_only=True)
class CustomerQuery(ListQuery):
    """What a list of customers may ask (spec 4.2, decisions 5)."""

    order: str = "asc"
    orderby: str = "registered"
    orderby_meta_key: str | None = None
    role: str = DEFAULT_ROLE
    q: str | None = None
    tag: str | None = None
    total_spent_min: Decimal | None = None
    total_spent_max: Decimal | None = None


_FILTERS = CustomerQuery.__dataclass_fields__.keys() - {
    *("page", "limit", "offset", "order", "orderby", "orderby_meta_key"),
    *("role", "created_at_min", "created_at_max"),
}
"""What a list of a role by registration must not ask, because another index answers it."""


def list_customers(actor: Principal, query: CustomerQuery, columns: Columns) -> Page:
    """Return a page of the users that match, by default in the order of their registration.

    The page is empty without the capability to list users (spec 4.2).

    Args:
        query: a ``CustomerQuery``.

    Raises:
        InvalidParams: ``orderby`` requires a field to sort by, or too many customers match.
    """
    may_read = actor.can(Capability.LIST_USERS)
    find: Find = _by_registration(query) if _has_only_role(query) else partial(_matching, query)
    if query.orderby in MOST_SORTED and may_read:
        _require_sortable(query.orderby, find)
    return fetch_page(columns, find, query, key=_sort_key(query), may_read=may_read)


def first_customers(
    actor: Principal, query: CustomerQuery, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the first users that a search finds, the one with this e-mail address first.

    Args:
        query: a ``CustomerQuery`` with ``q``, and all roles.
    """
    if not actor.can(Capability.LIST_USERS):
        return []
    is_exact = USERS.c.email_normalized == comparable_email(query.q or "")
    key = SORT_KEYS["registered"]
    return plans.first_matches(columns, _matching(query, fetch), limit, key=key, exact=is_exact)


def ids_after(
    actor: Principal, query: CustomerQuery, after: int, limit: int, *, trashed: bool = False
) -> list[int]:
    """Return the IDs of the users that match a ``CustomerQuery`` and follow an ID.

    Customers have no trash, so ``trashed`` is false.

    Raises:
        ShopError: the capability is missing.
    """
    actor.require("shop_api_user_cannot_read_customers_count")
    return [] if trashed else plans.ids_after(_matching(query, fetch), after, limit)


def count_customers(actor: Principal, query: CustomerQuery) -> Total:
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


def _matching(query: CustomerQuery, fetch: Fetch) -> Matching:
    """Return the users that match a ``CustomerQuery``."""
    if _has_only_role(query):
        return _by_registration(query)
    search, spent = search_of(query), _spent(query, fetch)
    conditions = conditions_of(query)
    compared = [spent.in_order] if spent is not None and search is not None else []
    matching = of_role(query.role, [*conditions, *compared], search or spent, fetch)
    if query.orderby in SUMS and matching.counted is not None:  # the few of a rare role are sorted
        without = replace(matching, conditions=conditions, search=search)
        return replace(matching, index=_by_sum(query, without, fetch))
    return matching


def conditions_of(query: CustomerQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``CustomerQuery`` without its role, sums and search."""
    return between(USERS.c, query)


def search_of(query: CustomerQuery) -> Search | None:
    """Return the search of a ``CustomerQuery`` by text, tag and metadata."""
    by_text = matches(USERS.c.search_text, query.q or "", USERS.c.id)
    found = metadata.search_of(metadata.CUSTOMER, USERS.c.id, query.metadata, *_tagged(query))
    return narrowed(by_text, found)


def _has_only_role(query: CustomerQuery) -> bool:
    """Return whether a query lists a role by registration, with no filter but their periods."""
    is_by_role = query.orderby == "registered" and query.role != ALL_ROLES
    return is_by_role and all(getattr(query, name) in (None, "", [], ()) for name in _FILTERS)


def _spent(query: CustomerQuery, fetch: Fetch) -> Search | None:
    """Return the search for the bounds of ``total_spent``, if the query has any.

    It finds the users in the index of totals. To compare each of a million takes seconds.
    """
    least, most = query.total_spent_min, query.total_spent_max
    if least is None and most is None:
        return None
    ranks = totals.ranks("total_spent", fetch)
    customer_id, value, _spent = ranks.selected_columns
    ids = ranks.with_only_columns(customer_id).where(*within(value, least, most))
    in_order = and_(*within(TOTALS["total_spent"], least, most))
    by_index = USERS.c.id.in_(ids)
    return Search(in_order, by_index, ids, MOST_COUNTED, counts_all=True)


def _tagged(query: CustomerQuery) -> list[Select[int]]:
    """Return a select of the IDs of the users with the tag of a ``CustomerQuery``, if any."""
    if query.tag is None:
        return []
    return [select(USER_TAGS.c.user_id).where(USER_TAGS.c.tag == query.tag)]


def of_role(
    role: str, conditions: Sequence[ColumnElement[bool]], search: Search | None, fetch: Fetch
) -> Matching:
    """Return the users with a role who meet some conditions."""
    if role == ALL_ROLES:
        counted = RowCountFilter("users", USERS.c.created_at, changed=USERS.c.updated_at)
        return Matching(USERS.c.id, conditions, true(), counted, search, false())
    has_role, others, is_rare = _has_role(role, USERS.c.id, fetch)
    if is_rare:  # each of the few is compared
        compared = () if search is None else (search.in_order,)
        return Matching(USERS.c.id, [has_role, *conditions, *compared])
    counted = _counted(role, has_role)
    return Matching(USERS.c.id, conditions, has_role, counted, search, others)


def _counted(role: str, part: ColumnElement[bool]) -> RowCountFilter:
    return RowCountFilter(
        "user_roles", USERS.c.created_at, part, (role,), changed=USERS.c.updated_at
    )


def _is_in(role: str, record_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a user has a role."""
    return record_id.in_(select(USER_ROLES.c.user_id).where(USER_ROLES.c.role == role))


def _by_registration(query: CustomerQuery) -> Matching:
    """Return the users of a role, in the order of their registration in the index of roles.

    With several roles, a page in the middle of a million users takes two seconds without it.
    """
    if (query.role, query.created_at_min, query.created_at_max) == (DEFAULT_ROLE, None, None):
        return _CUSTOMERS
    return _registered(query)


def _registered(query: CustomerQuery) -> Matching:
    role, periods = query.role, between({"created_at": USERS.c.created_at}, query)
    of_roles = between({"created_at": _REGISTERED.c.registered_at}, query)
    ids = select(_REGISTERED.c.user_id).where(_REGISTERED.c.role == role, *of_roles)
    index = OtherIndex(ids, _REGISTERED.c.user_id, _REGISTERED.c.registered_at, finds_few=True)
    with_role = and_(_REGISTERED.c.user_id == USERS.c.id, _REGISTERED.c.role == role)
    counted = _counted(role, with_role)
    return Matching(USERS.c.id, periods, _is_in(role, USERS.c.id), counted, index=index)


def _by_sum(query: CustomerQuery, matching: Matching, fetch: Fetch) -> OtherIndex:
    """Return the index of users by a sum of their orders.

    A million sums are computed in three seconds without it.

    Args:
        matching: the users that match without the bounds of ``total_spent``, which it also has.
    """
    every = totals.ranks(query.orderby, fetch)
    record_id, value, spent = every.selected_columns
    spent = value if query.orderby == "total_spent" else spent  # only a range of the index
    bounds = within(spent, query.total_spent_min, query.total_spent_max)
    ranks: Select[Any] = every.with_only_columns(record_id, value).where(*bounds)
    if not matching.is_whole:
        of_users: Any = matching.compared().whereclause
        ranks = ranks.where(record_id == USERS.c.id, of_users)
    elif query.role != ALL_ROLES:
        ranks = ranks.where(_has_role(query.role, record_id, fetch)[0])
    return OtherIndex(ranks, record_id, value)


def _has_role(
    role: str, record_id: ColumnElement[int], fetch: Fetch
) -> tuple[ColumnElement[bool], ColumnElement[bool] | None, bool]:
    """Return the same condition for any list, that of the others, and whether few have the role.

    The others are None if these are many. Few others are found by their other roles. To look up the
    role of each user takes two seconds in the middle of a million.
    """
    numbers = {(kind, label): int(number) for kind, label, number in fetch(_NUMBERS)}
    number = numbers.get(("user_roles", role), 0)
    missing = numbers.get(("users", ""), 0) - number
    roles = sum(each for (kind, _), each in numbers.items() if kind == "user_roles")
    if max(missing, roles - number) <= _FEW_OTHERS:
        ids = [row[0] for row in fetch(_WITHOUT_ROLE, {WANTED: role})]
        if len(ids) == missing:  # otherwise, some users have no role at all
            others = is_one_of(record_id, literal(ids, IdList))
            return ~others, others, False
    return _is_in(role, record_id), None, number <= FEW


def _require_sortable(orderby: str, find: Find) -> None:
    """Raise InvalidParams if too many customers match to sort them by a key without an index."""
    most = MOST_SORTED[orderby]
    number, is_complete = count(find, most)
    if number > most or not is_complete:
        matched = f"{number:,}" if is_complete else f"more than {number:,}"
        reason = Sentence(
            "{0} sorts at most {1:,} customers, and {2} match. "
            "Use a filter, or another sort key, such as name, email or registered.",
            orderby,
            most,
            matched,
        )
        raise InvalidParams({"filter[orderby]": reason})


def _sort_key(query: CustomerQuery) -> ColumnElement[Any]:
    orderby, meta_key = query.orderby, query.orderby_meta_key
    if orderby not in {"meta_value", "meta_value_num"}:
        return SORT_KEYS[orderby]
    if meta_key is None:
        reason = Sentence("is required to sort by {0}.", orderby)
        raise InvalidParams({"filter[orderby_meta_key]": reason})
    column = USERS.c[meta_key]
    return sort_key(column) if orderby == "meta_value" else leading_number(column)


def _without_role() -> CompoundSelect[object]:
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


# Built once: building them took a quarter, and a tenth, of the time of a list.
_WITHOUT_ROLE = _without_role()
_CUSTOMERS = _registered(CustomerQuery())
