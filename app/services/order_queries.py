"""The rules for reading orders and downloads (decisions 7 and 8, orders 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, cast

from sqlalchemy import ColumnElement, Table, and_, bindparam, or_, select, type_coerce

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, current_catalog
from app.db.functions import equals_any
from app.db.read_pool import Fetch, fetch
from app.db.ready import MAX_SELECTS
from app.db.records import WANTED, Columns, Row, as_printed, fetch_by_ids, select_where
from app.db.search import contains, unindexed
from app.db.session import now
from app.db.types import Money
from app.errors import InvalidParams, ShopError
from app.models import DownloadPermission, Order
from app.sanitize import INT64_MAX
from app.services.customer_queries import get_customer
from app.services.customer_statistics import COLUMNS as CUSTOMER_COLUMNS
from app.services.filtering import (
    FEW,
    FilteredSet,
    RowCountFilter,
    between,
    count,
    count_in_index,
)
from app.services.pagination import Page, fetch_page, page_size

TABLE = cast("Table", Order.__table__)
DOWNLOADS = cast("Table", DownloadPermission.__table__)
DOWNLOADABLE = ("processing", "completed")

IS_TRASHED = TABLE.c.status == TRASH
_HAS_ID = and_(TABLE.c.id == bindparam(WANTED), TABLE.c.status != TRASH)
_IS_OF_CUSTOMER = and_(TABLE.c.customer_id == bindparam(WANTED), TABLE.c.status != TRASH)
_OLDEST_FIRST = (TABLE.c.created_at, TABLE.c.id)

COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **TABLE.c,
    "total_tax": type_coerce(TABLE.c.cart_tax + TABLE.c.shipping_tax, Money),
}
TRASH_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **COLUMNS,
    # The status that the order had, and that it has again once it is restored.
    "status": TABLE.c.status_before_trash,
}
DOWNLOAD_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **DOWNLOADS.c,
    "order_key": TABLE.c.order_key,
    "file_file": DOWNLOADS.c.file_url,
}
SORT_KEYS: Mapping[str, ColumnElement[Any]] = {
    "date": TABLE.c.created_at,
    "modified": TABLE.c.updated_at,
    "id": TABLE.c.id,
    "total": TABLE.c.total,
}


def list_orders(
    actor: Principal, query: Mapping[str, Any], columns: Columns, default_size: int
) -> Page:
    """Return a page of the orders that match, newest first unless ``query`` says otherwise.

    Args:
        query: a loaded ``OrderListQuery``.
        columns: what to select, of COLUMNS.
        default_size: rows on a page when the query sets no limit.
    """
    size = page_size(query, default_size)
    matching = _matching(query)
    if not actor.can(Capability.READ_PRIVATE_SHOP_ORDERS):
        return Page([], 0, query["page"], size or default_size)
    return fetch_page(
        columns,
        TABLE.c.id,
        matching,
        key=SORT_KEYS[query["orderby"]],
        query=query,
        size=size,
    )


def list_trash(
    actor: Principal, query: Mapping[str, Any], columns: Columns, default_size: int
) -> Page:
    """Return a page of the orders in the trash that match, filtered and sorted like the list.

    Args:
        query: a loaded ``OrderListQuery``; its status is the one before the trash.
        columns: what to select, of TRASH_COLUMNS.
        default_size: rows on a page when the query sets no limit.
    """
    size = page_size(query, default_size)
    conditions = [IS_TRASHED, *_conditions(query)]
    if (statuses := query["status"]) is not None:
        conditions.append(TABLE.c.status_before_trash.in_(statuses))
    matching = FilteredSet(select(TABLE.c.id).where(*conditions))
    if (q := query["q"]) is not None:
        search = contains(TABLE.c.search_text, q, TABLE.c.id)
        matching = FilteredSet(matching.ids.where(search.many))
    if not actor.can(Capability.READ_PRIVATE_SHOP_ORDERS):
        return Page([], 0, query["page"], size or default_size)
    return fetch_page(
        columns,
        TABLE.c.id,
        matching,
        key=SORT_KEYS[query["orderby"]],
        query=query,
        size=size,
    )


def count_orders(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many orders match."""
    matching = _matching(query)
    actor.require("shop_api_user_cannot_read_orders_count", Capability.READ_PRIVATE_SHOP_ORDERS)
    return count(matching)


def get_order(actor: Principal, order_id: int, columns: Columns) -> Row:
    """Return the order with this id."""
    rows: Sequence[Row] = fetch(
        select_where(tuple(columns), TABLE.c.id, _HAS_ID), {WANTED: order_id}
    )
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    actor.require("shop_api_user_cannot_read_order", Capability.READ_PRIVATE_SHOP_ORDERS)
    return rows[0]


def orders_of_customer(actor: Principal, customer_id: int, columns: Columns) -> Sequence[Row]:
    """Return all orders of a customer, oldest first (spec 4.2, decisions 7)."""
    get_customer(actor, customer_id, [])
    theirs = select_where(tuple(columns), TABLE.c.id, _IS_OF_CUSTOMER, *_OLDEST_FIRST)
    return fetch(theirs, {WANTED: customer_id})


def downloads_of_customer(actor: Principal, customer_id: int, columns: Columns) -> dict[str, Row]:
    """Return what a customer may download now, by the id of the permission (decisions 8)."""
    get_customer(actor, customer_id, [])
    rows = fetch(
        select(*map(as_printed, columns), DOWNLOADS.c.id)
        .join(TABLE, TABLE.c.id == DOWNLOADS.c.order_id)
        .where(
            TABLE.c.customer_id == customer_id,
            TABLE.c.status.in_(DOWNLOADABLE),
            or_(DOWNLOADS.c.downloads_remaining.is_(None), DOWNLOADS.c.downloads_remaining > 0),
            or_(DOWNLOADS.c.access_expires.is_(None), DOWNLOADS.c.access_expires > now()),
        )
        .order_by(DOWNLOADS.c.id)
    )
    return {str(row[-1]): row for row in rows}


def customers_by_id(ids: Sequence[int], columns: Columns) -> dict[int, Row]:
    """Return the values of some customers for the orders that name them, in one statement.

    Complete whatever the caller may list: whoever may read an order may read who ordered
    (decisions 5).

    Args:
        ids: customer ids; those that nobody has are left out.
        columns: what to select, of the columns of a customer.
    """
    rows = fetch_by_ids(fetch, columns, CUSTOMER_COLUMNS["id"], ids)
    return {row[-1]: row for row in rows}


def _matching(query: Mapping[str, Any]) -> FilteredSet:
    """Return the orders that match a loaded ``OrderFilter``; none of them is in the trash."""
    conditions = _conditions(query)
    statuses = query["status"]
    # In one order and once each: the select is kept.
    every = _every(None if statuses is None else tuple(sorted(set(statuses))))
    if (q := query["q"]) is None:
        return every.where(conditions)
    text, ids = TABLE.c.search_text, TABLE.c.id
    # Of all orders, only those in the trash are not in the list.
    whole = q if statuses is None else None
    anywhere = partial(count_in_index, text, ids, whole, _in_the_trash)
    return every.searched(contains(text, q, ids), conditions, anywhere)


def _conditions(query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of a loaded ``OrderFilter``, but its status and its search.

    Raises:
        InvalidParams: a status is unknown.
    """
    known = current_catalog().order_statuses
    for status in query["status"] or ():
        if status not in known:
            reason = f"has no status {status!r}; known are {', '.join(known)}."
            raise InvalidParams({"filter[status]": reason})
    conditions = between(TABLE, query)
    if query["customer_id"] is not None:
        # 0 is the customer id of a guest's order (spec 2.3).
        conditions.append(
            TABLE.c.customer_id == min(query["customer_id"], INT64_MAX)  # beyond it is nobody
            if query["customer_id"]
            else TABLE.c.customer_id.is_(None)
        )
    return conditions


def _in_the_trash(fetch: Fetch) -> list[int] | None:
    """Return the ids of all orders in the trash; None where they are many."""
    if RowCountFilter("orders", TABLE.c.created_at, (TRASH,)).total(fetch) > FEW:
        return None
    return [row[0] for row in fetch(select(TABLE.c.id).where(IS_TRASHED))]


@lru_cache(MAX_SELECTS)
def _every(statuses: tuple[str, ...] | None) -> FilteredSet:
    """Return all orders that are not in the trash, or all in some statuses."""
    ids = select(TABLE.c.id)
    if statuses is None:
        ids = found = ids.where(TABLE.c.status != TRASH)
    else:
        found = ids.where(unindexed(TABLE.c.status).in_(statuses))
        ids = ids.where(equals_any(TABLE.c.status, statuses))
    without = TRASH if statuses is None else None
    tallied = RowCountFilter("orders", TABLE.c.created_at, statuses, without)
    return FilteredSet(ids, tallied=tallied, found=found)
