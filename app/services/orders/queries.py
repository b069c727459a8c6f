"""The rules for reading orders, notes, refunds and downloads (decisions 7 and 8, orders 4)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
    type_coerce,
)

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, current_catalog
from app.conversions.numbers import INT64_MAX, whole_number
from app.db.read_pool import RowStream, every_row, fetch
from app.db.records import (
    WANTED,
    Columns,
    NamedColumns,
    Row,
    as_printed,
    fetch_by_ids,
    select_where,
)
from app.db.search import Search, contains_or_of_owner, narrowed
from app.db.session import now
from app.db.sql.types import Money
from app.errors import ShopError
from app.models import DOWNLOADS, EVENTS, ORDER_NOTES, ORDERS, USERS
from app.services.common import metadata, plans
from app.services.common.erased import ORDER_COLUMNS, belongs_to
from app.services.common.filtering import ListQuery, Matching, between, require_known_status, within
from app.services.common.pagination import Page, Total
from app.services.common.plans import count, fetch_page
from app.services.common.row_counts import RowCountFilter
from app.services.customers.queries import get_customer
from app.services.customers.statistics import COLUMNS as CUSTOMER_COLUMNS

DOWNLOADABLE = ("processing", "completed")

IS_TRASHED, _IS_LISTED = ORDERS.c.status == TRASH, ORDERS.c.status != TRASH
_COUNTED = RowCountFilter(
    "orders", ORDERS.c.created_at, _IS_LISTED, without=TRASH, changed=ORDERS.c.updated_at
)
_HAS_ID = and_(ORDERS.c.id == bindparam(WANTED), _IS_LISTED)
_IS_OF_CUSTOMER = and_(ORDERS.c.customer_id == bindparam(WANTED), _IS_LISTED)
_OLDEST_FIRST = (ORDERS.c.created_at, ORDERS.c.id)

COLUMNS: NamedColumns = {
    **ORDER_COLUMNS,
    "total_tax": type_coerce(ORDERS.c.cart_tax + ORDERS.c.shipping_tax, Money),
}
TRASH_COLUMNS: NamedColumns = {
    **COLUMNS,
    # The status before the trash, which a restored order gets again.
    "status": ORDERS.c.status_before_trash,
}
DOWNLOAD_COLUMNS: NamedColumns = {
    **DOWNLOADS.c,
    "order_key": ORDERS.c.order_key,
    "file_file": DOWNLOADS.c.file_url,
}
SORT_KEYS: NamedColumns = {
    "date": ORDERS.c.created_at,
    "modified": ORDERS.c.updated_at,
    "id": ORDERS.c.id,
    "total": ORDERS.c.total,
}


@dataclass(frozen=True, kw_only=True)
class OrderQuery(ListQuery):
    """What a list of orders may ask (decisions 7)."""

    status: Sequence[str] | None = None
    customer_id: int | None = None
    q: str | None = None
    total_min: Decimal | None = None
    total_max: Decimal | None = None


def list_orders(
    actor: Principal, query: OrderQuery, columns: Columns, *, trashed: bool = False
) -> Page:
    """Return a page of the orders that match, newest first by default.

    Args:
        query: an ``OrderQuery``; its status is that before the trash in the trash.
        columns: what to select, of COLUMNS or TRASH_COLUMNS.
        trashed: whether to list the orders in the trash instead.

    Raises:
        InvalidParams: a status in the filter is unknown.
    """
    may_read = actor.can(Capability.READ_PRIVATE_SHOP_ORDERS)
    matching = _in_trash(query) if trashed else _matching(query)
    return _fetch_orders(matching, query, columns, may_read=may_read)


def first_orders(
    actor: Principal, query: OrderQuery, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return the first orders that a search finds, the one with this number first.

    Args:
        query: an ``OrderQuery`` with ``q``.
    """
    if not actor.can(Capability.READ_PRIVATE_SHOP_ORDERS):
        return []
    is_exact, key = ORDERS.c.order_number == query.q, SORT_KEYS["date"]
    # Usually, the number of an order is its ID, which has an index.
    exact = is_exact & (ORDERS.c.id == (whole_number(query.q or "") or 0))
    return plans.first_matches(
        columns, _matching(query), limit, key=key, exact=exact, is_exact=is_exact
    )


def count_orders(actor: Principal, query: OrderQuery) -> Total:
    """Return the number of orders that match.

    Raises:
        InvalidParams: a status in the filter is unknown.
        ShopError: the capability is missing.
    """
    require_known_status(query.status, current_catalog().order_statuses)
    actor.require("shop_api_user_cannot_read_orders_count")
    return count(_matching(query))


def get_order(actor: Principal, order_id: int, columns: Columns) -> Row:
    """Return the order with this ID.

    Raises:
        ShopError: the order does not exist or is in the trash, or the capability is missing.
    """
    rows: Sequence[Row] = fetch(
        select_where((*columns, ORDERS.c.revision), ORDERS.c.id, _HAS_ID), {WANTED: order_id}
    )
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    actor.require("shop_api_user_cannot_read_order")
    return rows[0]


def orders_of_customer(
    actor: Principal,
    customer_id: int,
    columns: Columns,
    query: OrderQuery | None = None,
    *,
    with_total: bool = False,
) -> Page:
    """Return all orders of a customer, oldest first (spec 4.2, decisions 7), or a page of them.

    Args:
        query: what to list, if the dialect filters and pages these orders, and the client asked
            for it (decisions 14).
        with_total: whether the list of all orders has totals.
    """
    get_customer(actor, customer_id, [])
    if query is not None:
        query = replace(query, customer_id=customer_id)
        return _fetch_orders(_matching(query), query, columns, may_read=True)
    theirs = select_where(tuple(columns), ORDERS.c.id, _IS_OF_CUSTOMER, *_OLDEST_FIRST)
    rows = every_row(theirs, {WANTED: customer_id})
    if not with_total:
        return Page(rows, total=None)
    return Page(rows, _number_of(customer_id, rows) if isinstance(rows, RowStream) else len(rows))


def _number_of(customer_id: int, rows: RowStream) -> int:
    """Return the number of orders of a customer in the state of the database of a stream."""
    counted = select(func.count()).select_from(ORDERS).where(_IS_OF_CUSTOMER)
    with rows.reading():
        return int(fetch(counted, {WANTED: customer_id})[0][0])


def downloads_of_customer(
    actor: Principal, customer_id: int, columns: Columns
) -> Sequence[Row] | RowStream:
    """Return the available downloads of a customer, with their permission (decisions 8)."""
    get_customer(actor, customer_id, [])
    return every_row(_downloads(customer_id, columns).order_by(DOWNLOADS.c.id))


def latest_downloads(
    actor: Principal, customer_id: int, columns: Columns, limit: int
) -> Sequence[Row]:
    """Return a number of the same, those of the latest orders first."""
    get_customer(actor, customer_id, [])
    newest_first = (key.desc() for key in (*_OLDEST_FIRST, DOWNLOADS.c.id))
    return fetch(_downloads(customer_id, columns).order_by(*newest_first).limit(limit))


def _downloads(customer_id: int, columns: Columns) -> Select[Any]:
    return (
        select(*map(as_printed, columns), DOWNLOADS.c.id)
        .join(ORDERS, ORDERS.c.id == DOWNLOADS.c.order_id)
        .where(
            ORDERS.c.customer_id == customer_id,
            ORDERS.c.status.in_(DOWNLOADABLE),
            or_(DOWNLOADS.c.downloads_remaining.is_(None), DOWNLOADS.c.downloads_remaining > 0),
            or_(DOWNLOADS.c.access_expires.is_(None), DOWNLOADS.c.access_expires > now()),
        )
    )


def customers_by_id(ids: Sequence[int], columns: Columns) -> dict[int, Row]:
    """Return the selected values of customers by their IDs, in one statement.

    Does not check capabilities: an order response contains the complete customer, regardless of
    what the caller may list (decisions 5).

    Args:
        ids: customer IDs. Unknown IDs are omitted.
    """
    rows = fetch_by_ids(fetch, columns, CUSTOMER_COLUMNS["id"], ids)
    return {row[-1]: row for row in rows}


def _fetch_orders(
    matching: Matching, query: OrderQuery, columns: Columns, *, may_read: bool
) -> Page:
    """Return a page of the matching orders in the sort order of ``query``."""
    require_known_status(query.status, current_catalog().order_statuses)
    return fetch_page(columns, matching, query, key=SORT_KEYS[query.orderby], may_read=may_read)


def conditions_of(query: OrderQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of an ``OrderQuery`` without its status and its search."""
    conditions = between(ORDERS.c, query)
    conditions += within(ORDERS.c.total, query.total_min, query.total_max)
    if query.customer_id:
        # An ID beyond 64 bits identifies no account.
        conditions.append(belongs_to(ORDERS.c.customer_id, min(query.customer_id, INT64_MAX)))
    elif query.customer_id is not None:
        # 0 is the customer ID of guest orders (spec 2.3).
        conditions.append(ORDERS.c.customer_id.is_(None))
    return conditions


def search_for(text: str) -> Search:
    """Return the condition that an order or its account contains a text (orders 4)."""
    order, account = ORDERS.c, USERS.c
    return contains_or_of_owner(
        order.search_text, text, order.id, account.search_text, order.customer_id
    )


def search_of(query: OrderQuery) -> Search | None:
    """Return the search of an ``OrderQuery`` by text and metadata."""
    search = None if query.q is None else search_for(query.q)
    return narrowed(search, metadata.search_of(metadata.ORDER, ORDERS.c.id, query.metadata))


def _matching(query: OrderQuery) -> Matching:
    """Return the orders that match an ``OrderQuery``, without those in the trash."""
    return of_statuses(query.status, conditions_of(query), search_of(query))


def of_statuses(
    statuses: Sequence[str] | None, conditions: Sequence[ColumnElement[bool]], search: Search | None
) -> Matching:
    """Return the orders with one of some statuses; with None, all but those in the trash."""
    if statuses is None:
        return Matching(ORDERS.c.id, conditions, _IS_LISTED, _COUNTED, search, IS_TRASHED)
    names = tuple(sorted(set(statuses)))
    has_status = ORDERS.c.status.in_(names)
    counted = RowCountFilter(
        "orders", ORDERS.c.created_at, has_status, names, changed=ORDERS.c.updated_at
    )
    return Matching(ORDERS.c.id, conditions, has_status, counted, search)


def _in_trash(query: OrderQuery) -> Matching:
    """Return the orders in the trash that match an ``OrderQuery``."""
    conditions = [IS_TRASHED, *conditions_of(query)]
    if query.status is not None:
        conditions.append(ORDERS.c.status_before_trash.in_(query.status))
    return Matching(ORDERS.c.id, conditions, search=search_of(query))


def ids_after(
    actor: Principal, query: OrderQuery, after: int, limit: int, *, trashed: bool = False
) -> list[int]:
    """Return the IDs of the orders that match an ``OrderQuery`` and follow an ID.

    Raises:
        InvalidParams: a status in the filter is unknown.
        ShopError: the capability is missing.
    """
    require_known_status(query.status, current_catalog().order_statuses)
    actor.require("shop_api_user_cannot_read_orders_count")
    return plans.ids_after(_in_trash(query) if trashed else _matching(query), after, limit)


# --- notes and refunds of an order ---


def list_children(table: Table, order_id: int, columns: Columns) -> Sequence[Row] | RowStream:
    """Return the selected columns and the ID of each note or refund of an order, oldest first.

    Args:
        table: the table of the notes or refunds.

    Raises:
        ShopError: the order does not exist or is in the trash.
    """
    rows = every_row(_of_order(table, order_id, columns, true()))
    return rows if isinstance(rows, RowStream) else _existing(rows)


def fetch_child(table: Table, order_id: int, columns: Columns, child_id: int) -> Sequence[Row]:
    """Return the same of the note or refund with an ID, which the order may not have.

    Raises:
        ShopError: the order does not exist or is in the trash.
    """
    return _existing(fetch(_of_order(table, order_id, columns, table.c.id == child_id)))


def events_of_children(order_id: int, requests: Collection[str], columns: Columns) -> Sequence[Row]:
    """Return the selected columns and the ID of events of the notes and refunds of an order.

    They are oldest first. Those of refunds are found by the requests that also changed the order.
    """
    notes = select(ORDER_NOTES.c.id).where(ORDER_NOTES.c.order_id == order_id)
    event = EVENTS.c
    of_notes = and_(event.resource == "order_note", event.resource_id.in_(notes))
    of_refunds = and_(event.resource == "order_refund", event.request_id.in_(requests))
    rows: Sequence[Row] = fetch(
        select(*map(as_printed, columns), event.id).where(
            event.id.is_not(None), or_(of_notes, of_refunds)
        )
    )
    return sorted(rows, key=itemgetter(-1))


def _of_order(
    table: Table, order_id: int, columns: Columns, is_wanted: ColumnElement[bool]
) -> Select[Any]:
    """Return a select with a row of nulls for an order without any, so that one is enough."""
    return (
        select(*map(as_printed, columns), table.c.id)
        .select_from(ORDERS.outerjoin(table, and_(table.c.order_id == ORDERS.c.id, is_wanted)))
        .where(ORDERS.c.id == order_id, ORDERS.c.status != TRASH)
        .order_by(table.c.id)
    )


def _existing(rows: Sequence[Row]) -> Sequence[Row]:
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    return [row for row in rows if row[-1] is not None]
