"""The rules for orders and downloads, which this service reads only (decisions 7 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Table, bindparam, or_, select, type_coerce

from app.auth.principals import Capability, Principal
from app.catalog import current_catalog
from app.db.read_pool import fetch
from app.db.records import WANTED, Columns, Row, as_printed, fetch_by_ids, select_where
from app.db.search import contains, frequent, number_found
from app.db.session import now
from app.db.types import Money
from app.errors import InvalidParams, ShopError
from app.models import DownloadPermission, Order
from app.numbers import INT64_MAX
from app.services.customer_queries import get_customer
from app.services.customer_statistics import COLUMNS as CUSTOMER_COLUMNS
from app.services.filtering import FilteredSet, RowCountFilter, between, count
from app.services.pagination import Page, fetch_page, page_size

TABLE = cast("Table", Order.__table__)
DOWNLOADS = cast("Table", DownloadPermission.__table__)
DOWNLOADABLE = ("processing", "completed")

_HAS_ID = TABLE.c.id == bindparam(WANTED)
_IS_OF_CUSTOMER = TABLE.c.customer_id == bindparam(WANTED)
_OLDEST_FIRST = (TABLE.c.created_at, TABLE.c.id)

COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **TABLE.c,
    "total_tax": type_coerce(TABLE.c.cart_tax + TABLE.c.shipping_tax, Money),
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
    _require_known_filter(query)
    size = page_size(query, default_size)
    if not actor.can(Capability.READ_PRIVATE_SHOP_ORDERS):
        return Page([], 0, query["page"], size or default_size)
    return _page(query, columns, size)


def count_orders(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many orders match."""
    _require_known_filter(query)
    actor.require("shop_api_user_cannot_read_orders_count", Capability.READ_PRIVATE_SHOP_ORDERS)
    return count(lambda _: _matching(query))


def get_order(actor: Principal, order_id: int, columns: Columns) -> Row:
    """Return the order with this id."""
    rows: Sequence[Row] = fetch(
        select_where(tuple(columns), TABLE.c.id, _HAS_ID), {WANTED: order_id}
    )
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    actor.require("shop_api_user_cannot_read_order", Capability.READ_PRIVATE_SHOP_ORDERS)
    return rows[0]


def orders_of_customer(
    actor: Principal,
    customer_id: int,
    query: Mapping[str, Any],
    columns: Columns,
    default_size: int,
) -> Page:
    """Return all orders of a customer, oldest first (spec 4.2, decisions 7), or a page of them.

    Args:
        customer_id: the customer.
        query: a loaded ``CustomerOrdersQuery``. If the API version filters and pages these orders,
            and the client asked for it, a loaded ``OrderListQuery`` (decisions 14).
        columns: what to select, of COLUMNS.
        default_size: rows on a page when the query sets no limit.
    """
    get_customer(actor, customer_id, [])
    if "page" in query:
        query = {**query, "customer_id": customer_id}
        return _page(query, columns, page_size(query, default_size))
    theirs = select_where(tuple(columns), TABLE.c.id, _IS_OF_CUSTOMER, *_OLDEST_FIRST)
    return Page(fetch(theirs, {WANTED: customer_id}), total=None)


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


def _page(query: Mapping[str, Any], columns: Columns, size: int | None) -> Page:
    return fetch_page(
        columns,
        TABLE.c.id,
        lambda _: _matching(query),
        key=SORT_KEYS[query["orderby"]],
        query=query,
        size=size,
    )


def _require_known_filter(query: Mapping[str, Any]) -> None:
    """Refuse a status that does not exist."""
    known = current_catalog().order_statuses
    for status in query["status"] or ():
        if status not in known:
            reason = f"has no status {status!r}; known are {', '.join(known)}."
            raise InvalidParams({"filter[status]": reason})


def _matching(query: Mapping[str, Any]) -> FilteredSet:
    """Return the orders that match a loaded ``OrderFilter``."""
    ids = select(TABLE.c.id)
    statuses, by_date = query["status"], query["orderby"] == "date"
    conditions = between(TABLE.c, query)
    if query["customer_id"]:
        # Beyond 64 bits is nobody.
        conditions.append(TABLE.c.customer_id == min(query["customer_id"], INT64_MAX))
    elif query["customer_id"] is not None:
        # 0 is the customer id of a guest's order (spec 2.3). Sorted by total or id they are read
        # from the index of customers; otherwise in their order.
        of_guests = TABLE.c.customer_id.is_(None)
        in_index = query["orderby"] in {"total", "id"}
        conditions.append(of_guests if in_index else frequent(of_guests))
    tallied = None if conditions else RowCountFilter("orders", TABLE.c.created_at, statuses)
    found = in_order = ids.where(*conditions)
    if statuses is not None:
        has_status = TABLE.c.status.in_(statuses)
        found = found.where(has_status)
        # One status by date is an index; otherwise the status is checked in the index of the order.
        in_order = in_order.where(
            TABLE.c.status == statuses[0]
            if by_date and len(statuses) == 1
            else frequent(has_status)
        )
    if (q := query["q"]) is None:
        return FilteredSet(in_order, tallied=tallied, found=None if statuses is None else found)
    search = contains(TABLE.c.search_text, q, TABLE.c.id)
    alone = not conditions and statuses is None
    checked = () if statuses is None else (frequent(TABLE.c.status.in_(statuses)),)
    return FilteredSet(
        in_order.where(search.many),
        found=ids.where(*conditions, *checked, search.few),
        finds_quickly=True,
        number=number_found(TABLE.c.search_text, q) if alone else None,
    )
