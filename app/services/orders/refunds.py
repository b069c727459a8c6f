"""Refunds of orders: read, create, update and delete them (records 2).

A transaction locks the order before its refunds, so that the limits hold for concurrent requests.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import ColumnElement, bindparam, delete, exists, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch, RowStream
from app.db.records import (
    Columns,
    Record,
    Row,
    as_printed,
    changed_columns,
    row_dicts,
    with_columns,
)
from app.db.session import now, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.errors import ShopError
from app.models import ITEM_METADATA, ORDER_NOTES, ORDER_REFUNDS, ORDERS
from app.models.order import OrderRow
from app.models.order_refund import OrderRefundRow
from app.services.common import metadata as metadata_tables
from app.services.common.bulk import BulkItem, Data, Precondition
from app.services.common.filtering import ListQuery, Matching, between
from app.services.common.metadata import ITEM, METADATA, REFUND
from app.services.common.metadata_changes import (
    MetadataChanges,
    Owner,
    given_to,
    without_metadata,
)
from app.services.common.pagination import Page
from app.services.common.plans import count, fetch_page
from app.services.orders.columns import REFUNDED, note_created, status_note
from app.services.orders.coupons import plan_coupons
from app.services.orders.erased import require_no_personal_refund
from app.services.orders.items import cents, items_of, last_item_id
from app.services.orders.locks import lock_coupons, lock_orders, new_ids
from app.services.orders.queries import fetch_child, list_children
from app.services.orders.refund_rules import refunded_amount, refunded_items
from app.services.redemptions.changes import notify_with_coupons

_CANNOT_READ = "shop_api_user_cannot_read_order_refunds"
FULLY_REFUNDED = "Order fully refunded."
"""Reason of the refund that a change of the status to ``refunded`` records."""

# --- reads ---


def list_refunds(actor: Principal, order_id: int, columns: Columns) -> Sequence[Row] | RowStream:
    """Return the refunds of an order, oldest first.

    Raises:
        ShopError: the order does not exist, or the capability is missing.
    """
    rows = list_children(ORDER_REFUNDS, order_id, columns)
    actor.require(_CANNOT_READ)
    return rows


def get_refund(actor: Principal, order_id: int, refund_id: int, columns: Columns) -> Row:
    """Return one refund of an order: the columns, the revision and the ID.

    Raises:
        ShopError: the order or the refund does not exist, the refund belongs to another order, or
            the capability is missing.
    """
    columns = [*columns, ORDER_REFUNDS.c.revision]
    rows = fetch_child(ORDER_REFUNDS, order_id, columns, refund_id)
    actor.require(_CANNOT_READ)
    if not rows:
        raise ShopError("shop_api_invalid_order_refund_id")
    return rows[0]


@dataclass(frozen=True, kw_only=True)
class RefundQuery(ListQuery):
    """What a list of the refunds of all orders may ask."""

    order_id: int | None = None


def list_all_refunds(actor: Principal, query: RefundQuery, columns: Columns) -> Page:
    """Return a page of the refunds of all orders that match, newest first."""
    return fetch_page(
        columns,
        _matching(query),
        query,
        key=ORDER_REFUNDS.c.created_at,
        may_read=actor.can(Capability.READ_PRIVATE_SHOP_ORDERS),
    )


def count_all_refunds(actor: Principal, query: RefundQuery) -> int:
    """Return the number of refunds that match, or raise ShopError without the capability."""
    code = "shop_api_user_cannot_read_order_refunds_count"
    actor.require(code)
    return count(_matching(query)).number


def refunds_of_orders(
    fetch: Fetch, ids: Sequence[int]
) -> tuple[dict[int, Decimal], dict[int, list[Record]]]:
    """Return the sum of the refunds of orders, and ID, reason and amount of each, by order.

    The refunds of an order in the trash are in no list (records 5).
    """
    sums: dict[int, Decimal] = {}
    listed: dict[int, list[Record]] = {}
    if ids:
        rows = fetch(_OF_ORDERS, {"ids": list(ids)})
        for order_id, refund_id, reason, amount, is_trashed in rows:
            sums[order_id] = sums.get(order_id, Decimal(0)) + Decimal(amount)
            refund = {"id": refund_id, "reason": reason, "total": f"-{amount}"}
            if not is_trashed:
                listed.setdefault(order_id, []).append(refund)
    return sums, listed


# --- writes ---


def create_refund(actor: Principal, order_id: int, data: Data) -> Record:
    """Record a refund of an order; return it by its column names.

    If nothing is left of the total, the order becomes ``refunded``. No payment provider is called.

    Args:
        data: a loaded ``OrderRefundCreate``.

    Raises:
        ShopError: the order does not exist, or the capability is missing.
        InvalidRefund: a rule is violated, with what is left.
    """

    def work(session: Session) -> Record:
        order = _lock_order(session, order_id)
        actor.require("shop_api_user_cannot_create_order_refund")
        require_no_personal_refund(order, data)
        items = items_of(order)
        left = cents(order["total"]) - cents(order["total_refunded"])
        _, ids = new_ids(session, 0, len(data.get("line_items") or ()), last_item_id(order))
        stored, currency = stored_refunds(session, [order_id]), order["currency"]
        refunded = refunded_items(data, items, stored, iter(ids), currency)
        amount = refunded_amount(data, refunded, left, currency)
        timestamp = data.get("created_at") or now()
        refund = _new_refund(order_id, actor.user_id, timestamp, Decimal(amount).scaleb(-2))
        refund |= {"reason": data.get("reason", ""), "line_items": refunded}
        metadata = _metadata_of_new(refund, data)
        changes: list[Change] = [insert_refund(session, refund, order, metadata)]
        changed = {
            "next_item_id": max(order["next_item_id"], *(each + 1 for each in ids), 1),
            "total_refunded": order["total_refunded"] + refund["amount"],
            "updated_at": timestamp,
        }
        after = with_columns(order, changed)
        if amount == left and order["status"] != REFUNDED:
            changes += _become_refunded(session, order, after)
        changes.insert(1, _update_order(session, order, after))
        notify_with_coupons(session, actor, changes)
        return refund

    return run_in_transaction(work)


def update_refund(
    actor: Principal,
    order_id: int,
    refund_id: int,
    data: Mapping[str, object],
    precondition: Precondition | None = None,
) -> Record:
    """Change the reason or the metadata of a refund; return the refund by its column names.

    Args:
        data: a loaded ``OrderRefundUpdate``; without fields, nothing changes.

    Raises:
        ShopError: the order or the refund does not exist, the capability is missing, the
            precondition fails, or the metadata is beyond a limit.
    """

    def work(session: Session) -> Record:
        order = _lock_order(session, order_id)
        refund = _refund_of(session, order_id, refund_id)
        actor.require("shop_api_user_cannot_edit_order_refund")
        if precondition:
            precondition(refund)
        if not data:
            return refund
        require_no_personal_refund(order, data)
        given = given_to(REFUND, [BulkItem(refund_id, data)], {refund_id})
        metadata = MetadataChanges.read(session, given)
        changed = {**without_metadata(data), "updated_at": now()}
        after = refund | changed
        metadata.apply(REFUND, "order_refund", data, refund, after)
        changed["revision"] = after["revision"]
        of_refund = ORDER_REFUNDS.c.id == refund_id
        session.execute(update(ORDER_REFUNDS).where(of_refund).values(changed))
        metadata.write(session)
        updated = _change("order_refund.updated", refund, after, order)
        of_order = with_columns(order, {"updated_at": changed["updated_at"]})
        notify_with_coupons(session, actor, [updated, _update_order(session, order, of_order)])
        return after

    return run_in_transaction(work)


def delete_refund(
    actor: Principal, order_id: int, refund_id: int, precondition: Precondition | None = None
) -> None:
    """Delete a refund permanently. The status of its order does not change.

    Raises:
        ShopError: the order or the refund does not exist, the capability is missing, or the
            precondition fails.
    """

    def work(session: Session) -> None:
        order = _lock_order(session, order_id)
        refund = _refund_of(session, order_id, refund_id)
        actor.require("shop_api_user_cannot_delete_order_refund")
        if precondition:
            precondition(refund)
        session.execute(delete(ORDER_REFUNDS).where(ORDER_REFUNDS.c.id == refund_id))
        # Items that an earlier release wrote have no ID of their own.
        if items := [item.get("item_id", 0) for item in refund["line_items"]]:
            of_items = ITEM_METADATA.c.order_id == order_id, ITEM_METADATA.c.item_id.in_(items)
            session.execute(delete(ITEM_METADATA).where(*of_items))
        left = order["total_refunded"] - refund["amount"]
        after = with_columns(order, {"total_refunded": left, "updated_at": now()})
        deleted = _change("order_refund.deleted", refund, None, order)
        notify_with_coupons(session, actor, [deleted, _update_order(session, order, after)])

    run_in_transaction(work)


def insert_refund(
    session: Session,
    refund: Record,
    order: Mapping[str, object],
    metadata: MetadataChanges | None = None,
) -> Change:
    """Insert a refund, complete it with its ID, and return its change.

    Args:
        refund: the refund by its column names, modified in place.
        order: its order, which the transaction has locked.
    """
    new = insert(ORDER_REFUNDS).values(refund).returning(ORDER_REFUNDS.c.id)
    refund["id"] = session.execute(new).scalar_one()
    if metadata:
        metadata.write(session)
    return _change("order_refund.created", None, refund, order)


def refund_of_the_rest(order: Record, user_id: int | None, timestamp: datetime) -> Record | None:
    """Return the refund that the status ``refunded`` records of an order's new total, or None."""
    rest = order["total"] - order["total_refunded"]
    return _new_refund(order["id"], user_id, timestamp, rest) if rest > 0 else None


def stored_refunds(session: Session, ids: Collection[int]) -> list[OrderRefundRow]:
    """Return the refunds of orders that the transaction has locked, oldest first."""
    found = select(ORDER_REFUNDS).where(ORDER_REFUNDS.c.order_id.in_(ids))
    return row_dicts(session.execute(found.order_by(ORDER_REFUNDS.c.id)))


def deleted_refunds(session: Session, orders: Sequence[OrderRow]) -> list[Change]:
    """Return the changes of the refunds that are deleted with their orders."""
    refunded = {order["id"]: order for order in orders if order["total_refunded"]}
    if not refunded:
        return []
    return [
        _change("order_refund.deleted", refund, None, refunded[refund["order_id"]])
        for refund in stored_refunds(session, refunded)
    ]


# --- private ---


def _new_refund(order_id: int, user_id: int | None, timestamp: datetime, amount: Decimal) -> Record:
    """Return a refund of a whole order. ``create_refund`` sets another reason and its items."""
    return {
        "order_id": order_id,
        "created_at": timestamp,
        "updated_at": timestamp,
        "amount": amount,
        "reason": FULLY_REFUNDED,
        "refunded_by": user_id,
        "line_items": [],
        "revision": 0,
    }


def _metadata_of_new(refund: Record, data: Data) -> MetadataChanges:
    """Return the metadata of a new refund and of its items, or raise ShopError beyond a limit."""
    metadata, of_refund = MetadataChanges(), Owner(REFUND, None)
    given = {of_refund: ("order_refund", data[METADATA])} if METADATA in data else {}
    items = {
        item["id"]: Owner(ITEM, refund["order_id"], item["item_id"])
        for item in refund["line_items"]
    }
    for index, fields in enumerate(data.get("line_items") or ()):
        if METADATA in fields:
            place = f"order_refund.line_items[{index}]"
            given[items[fields["id"]]] = place, fields[METADATA]
    metadata.keep(metadata.changed(given), None, refund, items)
    return metadata


_IDS = bindparam("ids", type_=IdList)
_IS_OF_TRASHED = exists(
    select(1).where(ORDERS.c.id == ORDER_REFUNDS.c.order_id, ORDERS.c.status == TRASH)
)
_OF_ORDERS = (
    select(
        ORDER_REFUNDS.c.order_id,
        ORDER_REFUNDS.c.id,
        ORDER_REFUNDS.c.reason,
        as_printed(ORDER_REFUNDS.c.amount),
        _IS_OF_TRASHED,
    )
    .where(is_one_of(ORDER_REFUNDS.c.order_id, _IDS))
    .order_by(ORDER_REFUNDS.c.order_id, ORDER_REFUNDS.c.id)
)


def _matching(query: RefundQuery) -> Matching:
    """Return the refunds that match a ``RefundQuery``, without those of trashed orders."""
    return Matching(ORDER_REFUNDS.c.id, conditions_of(query), ~_IS_OF_TRASHED)


def conditions_of(query: RefundQuery) -> list[ColumnElement[bool]]:
    """Return the conditions of a ``RefundQuery``, for refunds of any order."""
    table, record_id = metadata_tables.REFUND, ORDER_REFUNDS.c.id
    conditions = metadata_tables.conditions_of(table, record_id, query.metadata)
    conditions += between(ORDER_REFUNDS.c, query)
    if query.order_id is not None:
        # Larger IDs identify no order.
        conditions.append(ORDER_REFUNDS.c.order_id == min(query.order_id, INT64_MAX))
    return conditions


def _lock_order(session: Session, order_id: int) -> OrderRow:
    order = lock_orders(session, [order_id]).get(order_id)
    if order is None or order["status"] == TRASH:
        raise ShopError("shop_api_invalid_order_id")
    return order


def _refund_of(session: Session, order_id: int, refund_id: int) -> Record:
    found = select(ORDER_REFUNDS).where(
        ORDER_REFUNDS.c.id == refund_id, ORDER_REFUNDS.c.order_id == order_id
    )
    rows: list[Record] = row_dicts(session.execute(found))
    if not rows:
        raise ShopError("shop_api_invalid_order_refund_id")
    return rows[0]


def _become_refunded(session: Session, order: OrderRow, after: OrderRow) -> list[Change]:
    """Give a fully refunded order its status, with its note; return the further changes."""
    after["status"] = REFUNDED
    held = lock_coupons(session, [order])
    plan = plan_coupons(session, order, after, items_of(order), recompute=False, held=held)
    uses = plan.write(session, order["id"]) if plan else []
    note = status_note(after, order["status"], None)
    added = insert(ORDER_NOTES).values(note).returning(ORDER_NOTES.c.id)
    note_id = session.execute(added).scalar_one()
    return [*uses, note_created(note_id, note, order["customer_id"])]


def _update_order(session: Session, order: OrderRow, after: OrderRow) -> Change:
    """Write an order whose refunds have changed, and return its change.

    The entity tag of the order changes, too, even within one second (records 5).
    """
    after["revision"] = order["revision"] + 1
    if changed := changed_columns(order, after):
        session.execute(update(ORDERS).where(ORDERS.c.id == order["id"]).values(changed))
    return Change("order.updated", order, after)


def _change(
    event: str,
    before: Mapping[str, object] | None,
    after: Mapping[str, object] | None,
    order: Mapping[str, object],
) -> Change:
    """Return the change of a refund, with the customer whom its reason can mention."""
    of_customer = {"customer_id": order["customer_id"]}
    return Change(
        event,
        None if before is None else {**before, **of_customer},
        None if after is None else {**after, **of_customer},
    )
