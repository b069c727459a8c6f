"""Complete orders, notes and refunds, also of the trash, as other dialects show them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, bindparam, exists, func, literal, or_, select

from app.catalog import TRASH
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch, RowStream, every_row, fetch
from app.db.records import Row, as_printed
from app.db.search import Search, narrowed
from app.db.sql.functions import MAX_INDEXED, is_indexed, is_one_of
from app.db.sql.types import IdList
from app.models import COUPONS, ORDER_NOTES, ORDER_PRODUCTS, ORDER_REFUNDS, ORDERS
from app.models.address import ADDRESS_COLUMNS, BILLING_PARTS, SHIPPING_PARTS, SHIPPING_PHONE
from app.plugins.woocommerce.rest import lists
from app.plugins.woocommerce.rest.site import Object, Record
from app.plugins.woocommerce.rest.stored_customers import records_without_metadata as accounts_by_id
from app.services.common.erased import ORDER_COLUMNS, belongs_to
from app.services.common.filtering import Matching
from app.services.common.metadata import CUSTOMER, ITEM, ORDER, REFUND, fetch_entries
from app.services.orders import queries
from app.services.orders.items import COUPON_ID
from app.services.orders.queries import of_statuses

_UNUSED = {
    "search_text",
    "billing_email_normalized",
    "next_item_id",
    "subtotal",
    "trashed_at",
    "status_before_trash",
    "items",
    "fees",
    "revision",
    *ADDRESS_COLUMNS,
    SHIPPING_PHONE,
}
COLUMNS = (
    *(column.label(name) for name, column in ORDER_COLUMNS.items() if name not in _UNUSED),
    lists.address(ORDERS.c, "billing", BILLING_PARTS),
    lists.address(ORDERS.c, "shipping", (*SHIPPING_PARTS, "phone")),
    queries.COLUMNS["total_tax"].label("total_tax"),
)
_REFUND = tuple(ORDER_REFUNDS.c)
_IDS = bindparam("ids", type_=IdList)
_OF_ORDERS: object = (
    select(*map(as_printed, _REFUND))
    .where(is_one_of(ORDER_REFUNDS.c.order_id, _IDS))
    .order_by(ORDER_REFUNDS.c.id.desc())
)
_COUPONS: object = select(
    COUPONS.c.id, COUPONS.c.type, as_printed(COUPONS.c.amount), COUPONS.c.enable_free_shipping
).where(is_one_of(COUPONS.c.id, _IDS))
_NONE: Mapping[int, object] = {0: ()}
_DESCRIBED = (ORDERS.c.id, ORDERS.c.tax_lines, ORDERS.c.shipping_lines)

KEYS: Mapping[str, ColumnElement[object]] = {
    "date": ORDERS.c.created_at,
    "modified": ORDERS.c.updated_at,
    "id": ORDERS.c.id,
    "title": ORDERS.c.id,
    "slug": ORDERS.c.id,
}
REFUND_KEYS: Mapping[str, ColumnElement[object]] = {
    "date": ORDER_REFUNDS.c.created_at,
    "modified": ORDER_REFUNDS.c.updated_at,
    **dict.fromkeys(("id", "title", "slug"), ORDER_REFUNDS.c.id),
}


def matching(query: lists.RecordListQuery, args: Record) -> Matching:
    """Return the orders of a list.

    Args:
        args: the parameters, by which statuses, customers, parents and products are compared.
            Without a status, the list shows all orders but those in the trash.
    """
    phrase = lists.phrase_of(query.search, ORDERS.c.search_text, ORDERS.c.id)
    with_product, created_via = _with_product(args.get("product")), _created_via(args)
    search = narrowed(narrowed(phrase, with_product), created_via)
    conditions = [*lists.conditions_of(query, ORDERS.c), *_own_conditions(args)]
    statuses = [status.removeprefix("wc-") for status in args.get("status") or ["any"]]
    found = of_statuses(None if "any" in statuses else statuses, conditions, search)
    not_parents = args.get("parent_exclude")
    return _without_parents(found, not_parents) if not_parents else found


def _own_conditions(args: Record) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if (customer := args.get("customer")) is not None:
        of_customer = belongs_to(ORDERS.c.customer_id, min(customer, INT64_MAX))
        found.append(of_customer if customer else ORDERS.c.customer_id.is_(None))
    if parents := [each for each in args.get("parent") or () if each]:
        found.append(ORDERS.c.parent_id.in_(parents))
    return found


def _without_parents(matching: Matching, excluded: Sequence[int]) -> Matching:
    """Return the matching orders without those of some parents, where 0 is no parent."""
    parent_id, number = ORDERS.c.parent_id, None
    has_another = parent_id.not_in(excluded)  # not if it is null, so an index helps
    if 0 in excluded:
        return replace(matching, conditions=[*matching.conditions, has_another])
    if matching.is_whole and matching.counted is not None:  # few orders have a parent
        theirs = select(func.count()).where(matching.part, parent_id.in_(excluded))
        number = matching.counted.of_weeks(None, None) - theirs.scalar_subquery()
    is_other = or_(parent_id.is_(None), has_another)
    return replace(matching, conditions=[*matching.conditions, is_other], number=number)


def _with_product(product_id: int | None) -> Search | None:
    """Return the search for the orders with a line of a product."""
    if not product_id:
        return None
    is_wanted = ORDER_PRODUCTS.c.product_id == min(product_id, INT64_MAX)
    has_line = exists().where(ORDER_PRODUCTS.c.order_id == ORDERS.c.id, is_wanted)
    ids = select(ORDER_PRODUCTS.c.order_id).where(is_wanted)
    return Search(has_line, ORDERS.c.id.in_(ids), ids, most=None)


def _created_via(args: Record) -> Search | None:
    """Return the search for the orders that one of some programs created."""
    if not (programs := args.get("created_via")):
        return None
    is_wanted: ColumnElement[bool] = ORDERS.c.created_via.in_(programs)
    if all(len(each.encode()) <= MAX_INDEXED for each in programs):
        is_wanted &= is_indexed(ORDERS.c.created_via)
    return Search(is_wanted, is_wanted, select(ORDERS.c.id).where(is_wanted), most=None)


def completed(records: list[Object], *, with_customers: bool) -> list[Object]:
    """Return records with what is stored in other tables.

    ``metadata`` has entries, ``items_metadata`` entries by item, ``refunds`` the refunds, newest
    first, ``coupons`` the coupons of coupon lines by ID, and ``customer`` the account or None.
    """
    ids = [each["id"] for each in records]
    wanted = {each["customer_id"] for each in records if each["customer_id"]}
    owners = sorted(wanted) if with_customers else []
    metadata = fetch_entries(fetch, {ORDER: ids, ITEM: ids, CUSTOMER: owners})
    refunds = _refunds_of(
        fetch, [each["id"] for each in records if each["total_refunded"] != "0.00"]
    )
    accounts = {each["id"]: each for each in accounts_by_id(owners)}
    for account_id, account in accounts.items():
        account["metadata"] = metadata[CUSTOMER].get(account_id, _NONE)[0]
    coupons = _coupons_of(fetch, records)
    for each in records:
        each["metadata"] = metadata[ORDER].get(each["id"], _NONE)[0]
        each["items_metadata"] = metadata[ITEM].get(each["id"], {})
        each["refunds"] = refunds.get(each["id"], [])
        each["coupons"] = coupons
        each["customer"] = accounts.get(each["customer_id"])
    return records


def _refunds_of(fetch: Fetch, ids: Sequence[int]) -> dict[int, list[Object]]:
    found: dict[int, list[Object]] = {}
    if ids:
        for each in lists.as_records(_REFUND, fetch(_OF_ORDERS, {"ids": ids})):
            found.setdefault(each["order_id"], []).append(each)
    return found


def _coupons_of(fetch: Fetch, records: Sequence[Object]) -> dict[int, Object]:
    """Return type, amount and free shipping of the coupons of coupon lines."""
    ids = {
        detail.get(COUPON_ID)
        for each in records
        if each["coupon_lines"]
        for detail in (each["item_details"] or {}).values()
    } - {None}
    rows = fetch(_COUPONS, {"ids": sorted(ids)}) if ids else ()
    return {
        row[0]: {"type": row[1], "amount": row[2], "free_shipping": bool(row[3])} for row in rows
    }


def product_names(order_ids: Sequence[int]) -> dict[tuple[int, int], str]:
    """Return the names of products in the lines of orders, by order and product."""
    found = select(ORDERS.c.id, ORDERS.c.line_items).where(is_one_of(ORDERS.c.id, _IDS))
    rows = fetch(found, {"ids": list(order_ids)})
    return {(row[0], line["product_id"]): line["name"] for row in rows for line in row[1]}


# --- notes and refunds ---


def list_notes(order_id: int, *, for_customer: bool | None) -> Sequence[Row] | RowStream:
    """Return the notes of an order, newest first.

    Args:
        for_customer: only notes that the customer sees, or only others; None for all.
    """
    found = select(*map(as_printed, ORDER_NOTES.c)).where(ORDER_NOTES.c.order_id == order_id)
    if for_customer is not None:
        found = found.where(ORDER_NOTES.c.customer_note.is_(for_customer))
    return every_row(found.order_by(ORDER_NOTES.c.created_at.desc(), ORDER_NOTES.c.id.desc()))


def matching_refunds(query: lists.RecordListQuery, order_id: int | None) -> Matching:
    """Return the refunds of a list, of one order or of all. A search is that of their orders."""
    is_trashed = exists(
        select(literal(1)).where(ORDERS.c.id == ORDER_REFUNDS.c.order_id, ORDERS.c.status == TRASH)
    )
    conditions = [*lists.conditions_of(query, ORDER_REFUNDS.c), ~is_trashed]
    if order_id is not None:
        conditions.append(ORDER_REFUNDS.c.order_id == min(order_id, INT64_MAX))
    if search := lists.phrase_of(query.search, ORDERS.c.search_text, ORDER_REFUNDS.c.order_id):
        conditions.append(search.by_index)
    return Matching(ORDER_REFUNDS.c.id, conditions)


def completed_refunds(refunds: list[Object]) -> list[Object]:
    """Add the entries of refunds, and the entries, taxes and shipping lines of their orders."""
    orders = sorted({each["order_id"] for each in refunds})
    metadata = fetch_entries(fetch, {REFUND: [each["id"] for each in refunds], ITEM: orders})
    described = {
        each["order_id"]
        for each in refunds
        if any(i["total_tax"] != "0.00" or i["list"] != "line_items" for i in each["line_items"])
    }
    found = lists.records_with_ids(_DESCRIBED, ORDERS.c.id, sorted(described)) if described else []
    by_id = {each["id"]: each for each in found}
    for each in refunds:
        each["metadata"] = metadata[REFUND].get(each["id"], _NONE)[0]
        each["items_metadata"] = metadata[ITEM].get(each["order_id"], {})
        order = by_id.get(each["order_id"], {})
        each |= {name: order.get(name, []) for name in ("tax_lines", "shipping_lines")}
    return refunds
