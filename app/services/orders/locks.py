"""Locks and IDs in a write transaction of orders. ``common.locks`` has their order."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import bindparam, or_, select, text, union, update
from sqlalchemy.orm import Session

from app.catalog import TRASH
from app.conversions.numbers import INT64_MAX
from app.db.locks import has_one_writer
from app.db.records import WANTED, row_dicts
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import CAMPAIGNS, COUPONS, ORDERS, REDEMPTIONS
from app.models.campaign import IS_LIMITED
from app.models.order import OrderRow
from app.services.campaigns.locks import Held, hold_campaigns, hold_known
from app.services.common.bulk import BulkItem
from app.services.common.erased import ORDER_COLUMNS
from app.services.coupons.queries import HAS_ONE_OF_CODES, PUBLISHED
from app.services.orders.items import COUPON_ID

_USES = {
    "status",
    "currency",
    "payment_details",
    "customer_id",
    "billing_address",
    "line_items",
    "coupon_lines",
}
"""Fields of an order that can change the uses of its coupons."""


_LOCKED_ORDERS = (
    select(*(column.label(name) for name, column in ORDER_COLUMNS.items()))
    .where(is_one_of(ORDERS.c.id, bindparam(WANTED, type_=IdList)))
    .order_by(ORDERS.c.id)  # the same order in all transactions
    .with_for_update()
)
_CAMPAIGNS_OF_CODES = (
    select(CAMPAIGNS.c.id, IS_LIMITED)
    .where(CAMPAIGNS.c.id.in_(select(COUPONS.c.campaign_id).where(HAS_ONE_OF_CODES)))
    .order_by(CAMPAIGNS.c.id)
)


def lock_orders(session: Session, ids: Iterable[int]) -> dict[int, OrderRow]:
    """Lock orders until the commit and return them by ID. Includes orders in the trash."""
    rows = session.connection().execute(_LOCKED_ORDERS, {WANTED: list(ids)})
    return {row["id"]: row for row in row_dicts(rows)}


def held_parents(session: Session, ids: Iterable[int]) -> set[int]:
    """Return the given orders that exist and are not in the trash, which stay until the commit."""
    wanted = {order_id for order_id in ids if 0 < order_id <= INT64_MAX}
    if not wanted:
        return set()
    found = select(ORDERS.c.id).where(ORDERS.c.id.in_(wanted), ORDERS.c.status != TRASH)
    held = found.order_by(ORDERS.c.id).with_for_update(read=True, key_share=True)
    return set(session.scalars(held))


def clear_parents(session: Session, deleted: Collection[int]) -> None:
    """Remove the references of other orders to orders that were deleted permanently."""
    if deleted:
        is_child = is_one_of(ORDERS.c.parent_id, bindparam("parents", type_=IdList))
        statement = update(ORDERS).where(is_child).values(parent_id=None)
        session.execute(statement, {"parents": list(deleted)})


def lock_coupons(
    session: Session, orders: Collection[OrderRow], codes: Collection[str] = ()
) -> Held:
    """Lock the campaigns of coupon lines until the commit, and the coupons of several lines.

    Limited coupons are locked exclusively.

    Without this, the lines would lock their coupons in their own order, and requests with the same
    coupons in different orders would deadlock.

    Args:
        orders: stored orders whose uses can change.
        codes: codes of other coupons that can be used.

    Returns:
        The campaigns of the coupons and of their uses.
    """
    used = [line["code"] for order in orders for line in order["coupon_lines"]]
    # Lines with the same code can have different coupons, since a coupon was renamed.
    if not used and not codes:
        return {}
    if not orders and len(codes) == 1:  # a new order, with a statement that is built once
        rows = session.connection().execute(_CAMPAIGNS_OF_CODES, {"codes": list(codes)})
        return hold_known(session, {row[0]: bool(row[1]) for row in rows})
    details = [details for order in orders for details in (order["item_details"] or {}).values()]
    kept = {detail[COUPON_ID] for detail in details if detail.get(COUPON_ID) is not None}
    references = [f"order-{order['id']}" for order in orders]
    of_orders = select(REDEMPTIONS.c.coupon_id).where(REDEMPTIONS.c.reference.in_(references))
    of_codes = select(COUPONS.c.id).where(COUPONS.c.code.in_({*used, *codes}), PUBLISHED)
    of_lines = select(COUPONS.c.id).where(COUPONS.c.id.in_(kept))
    # One list of IDs, because PostgreSQL reads all coupons for an OR with a select.
    is_theirs = COUPONS.c.id.in_(union(of_orders, of_codes, of_lines))
    of_uses = select(REDEMPTIONS.c.campaign_id).where(REDEMPTIONS.c.reference.in_(references))
    of_coupons = select(COUPONS.c.campaign_id).where(is_theirs)
    held = hold_campaigns(session, union(of_uses, of_coupons))
    if len(used) + len(codes) < 2 or has_one_writer(session):
        return held
    coupons = select(COUPONS.c.id).where(is_theirs).order_by(COUPONS.c.id)
    is_limited = or_(COUPONS.c.usage_limit > 0, COUPONS.c.usage_limit_per_user > 0)
    # First against changes of their terms, which bulk updates of coupons make in the same order.
    session.execute(coupons.with_for_update(read=True, key_share=True))
    session.execute(coupons.where(is_limited).with_for_update(key_share=True))
    return held


def lock_coupons_of_items(
    session: Session, items: Sequence[BulkItem], orders: Mapping[int, OrderRow]
) -> Held:
    """Lock the campaigns and coupons of coupon lines in creates and updates of orders."""
    changing = [item for item in items if not _USES.isdisjoint(item.data)]
    lines = (line for item in changing for line in item.data.get("coupon_lines") or ())
    return lock_coupons(
        session,
        [orders[item.id] for item in changing if item.id is not None and item.id in orders],
        {line["code"] for line in lines if line.get("code")},
    )


def new_ids(
    session: Session, orders: int, items: int, after: int = 0
) -> tuple[Sequence[int], Sequence[int]]:
    """Return IDs for new orders, and for new items of orders and of refunds, ascending.

    The order number and the references of redemptions contain the ID before the order is written.
    IDs of items are unique in the shop (records 5).

    Args:
        after: the last ID of an item of an order that gets new items. It can be above the last ID
            of all items if a previous release has assigned it.
    """
    if not orders and not items:
        return (), ()
    if has_one_writer(session):
        statement = _ADD_ITEMS if items else _LAST_ORDER
        counts = {"items": items, "after": after}
        last, last_item = session.connection().execute(statement, counts).one()
        first = (last or 0) + 1
        return range(first, first + orders), range(last_item - items + 1, last_item + 1)
    ids = session.connection().execute(_NEXT_IDS, {"orders": orders, "items": items}).all()
    of_orders, of_items = (
        sorted(each for is_of_item, each in ids if is_of_item is kind) for kind in (False, True)
    )
    if of_items and of_items[0] <= after:
        _, skipped = new_ids(session, 0, after - of_items[0] + items)
        of_items = list(skipped[-items:])
    return of_orders, of_items


_LAST_ORDER = text("SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'orders'), 0")
_ADD_ITEMS = text(
    "REPLACE INTO item_ids (id, single) "
    "SELECT max(coalesce(max(seq), 0), :after) + :items, 1 "
    "FROM sqlite_sequence WHERE name = 'item_ids' "
    "RETURNING (SELECT seq FROM sqlite_sequence WHERE name = 'orders'), id"
)
_NEXT_IDS = text(
    "SELECT false, nextval(pg_get_serial_sequence('orders', 'id')) "
    "FROM generate_series(1, :orders) UNION ALL "
    "SELECT true, nextval(pg_get_serial_sequence('item_ids', 'id')) FROM generate_series(1, :items)"
)
