"""The rules for writing orders: create, update, delete (orders 1 to 5)."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import cast

from flask import current_app
from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change, current_catalog
from app.conversions.numbers import INT64_MAX
from app.conversions.text import coupon_code
from app.db.bulk_inserts import insert_records
from app.db.records import Record, changed_columns, with_columns
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import ORDER_NOTES, ORDERS
from app.models.order import OrderRow
from app.models.order_refund import OrderRefundRow
from app.services.campaigns.locks import Held
from app.services.common.bulk import (
    BulkItem,
    Data,
    Precondition,
    WriteResult,
    Writes,
    save_items,
    single_result,
)
from app.services.common.locks import AccountRow, hold_accounts
from app.services.common.metadata import ITEM, METADATA, ORDER
from app.services.common.metadata_changes import (
    Given,
    MetadataChanges,
    Owner,
    given_to,
    items_of_order,
)
from app.services.coupons.refusals import count_refused
from app.services.orders import columns
from app.services.orders.columns import StatusChange
from app.services.orders.coupons import plan_coupons
from app.services.orders.downloads import (
    DownloadPermissions,
    permissions_of,
    write_permissions,
)
from app.services.orders.erased import require_no_personal_data
from app.services.orders.item_changes import can_remove, changed_items
from app.services.orders.items import KINDS, OrderItems, cents, items_of, last_item_id
from app.services.orders.locks import (
    clear_parents,
    held_parents,
    lock_coupons,
    lock_coupons_of_items,
    lock_orders,
    new_ids,
)
from app.services.orders.redemptions import CouponPlan, release_uses, with_held_uses
from app.services.orders.refund_rules import require_refunds_covered
from app.services.orders.refunds import (
    deleted_refunds,
    insert_refund,
    refund_of_the_rest,
    stored_refunds,
)
from app.services.redemptions.changes import notify_with_coupons


@dataclass(frozen=True, slots=True)
class OrderItem(BulkItem):
    """An order to create or update, by a dialect that says more of the change.

    Args:
        codes: the normalized codes of all its coupon lines after an update, in their order. Without
            them, new lines come after the others.
    """

    status_change: StatusChange | None = None
    codes: Sequence[str] = ()


def _status_change(item: BulkItem) -> StatusChange | None:
    return item.status_change if isinstance(item, OrderItem) else None


def _sort_coupons(items: OrderItems, item: BulkItem) -> None:
    """Put the coupon lines in the order of the request, in which coupons discount."""
    if isinstance(item, OrderItem) and (codes := item.codes):
        items.lists["coupon_lines"].sort(key=lambda line: codes.index(coupon_code(line["code"])))


def save_orders(
    actor: Principal, items: Sequence[BulkItem], *, trashed_too: bool = False
) -> list[WriteResult]:
    """Create and update orders, in their order, in one transaction (orders 1, spec 4.3).

    Args:
        trashed_too: whether orders in the trash can be updated, which leaves them there.

    Returns:
        For each item the order by its column names, or the error that prevented the write.
    """
    results = save_items(_OrderWrites, actor, items, partial(_lock, trashed_too=trashed_too))
    count_refused(results)
    return results


def create_order(actor: Principal, data: Mapping[str, object]) -> Record:
    """Create one order; return it by its column names."""
    return single_result(save_orders(actor, [BulkItem(None, data)]))


def update_order(
    actor: Principal,
    order_id: int,
    data: Mapping[str, object],
    precondition: Precondition | None = None,
    *,
    trashed_too: bool = False,
) -> Record:
    """Change the supplied fields of one order; return it by its column names."""
    items = [BulkItem(order_id, data, precondition)]
    return single_result(save_orders(actor, items, trashed_too=trashed_too))


def delete_order(
    actor: Principal,
    order_id: int,
    *,
    force: bool,
    trashed_too: bool = False,
    precondition: Precondition | None = None,
) -> None:
    """Move an order to the trash, or delete it permanently (orders 1 and 4).

    Args:
        trashed_too: whether ``force`` also deletes an order that is in the trash.

    Raises:
        ShopError: the order does not exist, the capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        order = lock_orders(session, [order_id]).get(order_id)
        if order is None or (order["status"] == TRASH and not (force and trashed_too)):
            raise ShopError("shop_api_invalid_order_id")
        actor.require("shop_api_user_cannot_delete_order")
        if precondition:
            precondition(columns.with_total_tax(order))
        after: OrderRow | None = None
        timestamp = now()
        held = lock_coupons(session, [order])
        uses, released = release_uses(session, order_id, timestamp, held)
        refunds: list[Change] = []
        if force:
            refunds = deleted_refunds(session, [order])
            session.execute(delete(ORDERS).where(ORDERS.c.id == order_id))
            clear_parents(session, [order_id])
        else:
            trashed = {
                "status": TRASH,
                "status_before_trash": order["status"],
                "trashed_at": timestamp,
                "updated_at": timestamp,
                "item_details": with_held_uses(order, released),
            }
            session.execute(update(ORDERS).where(ORDERS.c.id == order_id).values(trashed))
            after = with_columns(order, trashed)
        changes = [*refunds, Change("order.deleted", order, after), *uses]
        notify_with_coupons(session, actor, changes)

    run_in_transaction(work)


@dataclass(slots=True, kw_only=True)
class _OrderWrites(Writes[OrderRow]):
    """The writes of orders in one transaction.

    An order is checked in this sequence: its fields, all downloads and items together, its key, its
    coupons, its sums, its metadata, and last whether the coupons have a use left.

    Attributes:
        stored: the stored orders, by ID. ``records`` has those that are not in the trash.
        accounts: those of the customers of the request, by ID.
        held: the locked campaigns of the coupons of the request.
        parents: the parents of the request that are orders and not in the trash.
        taken_keys: the order keys of the request that orders have.
        permissions: the download permissions of new orders, and of stored ones that the request can
            change.
        notes: the notes to add, each with its order.
        refunds: the refunds of stored orders whose items the request can change.
        new_refunds: the refunds to add, each with its order.
    """

    resource = "order"

    stored: Mapping[int, OrderRow]
    accounts: Mapping[int, AccountRow]
    held: Held
    parents: set[int]
    taken_keys: set[str]
    new_ids: Iterator[int]
    item_ids: Iterator[int]
    permissions: dict[int, DownloadPermissions]
    metadata: MetadataChanges
    refunds: Sequence[OrderRefundRow] = ()
    notes: list[tuple[Record, Record]] = field(default_factory=list)
    new_refunds: list[tuple[Record, Record]] = field(default_factory=list)

    def create(self, item: BulkItem) -> Record:
        """Return a new order (orders 5, order of checks)."""
        session, data, change = self.session, item.data, _status_change(item)
        self.actor.require("shop_api_user_cannot_create_order")
        _require_customer(self, data)
        _require_parent(self, data, None)
        paid = data.get("payment_details", {}).get("paid", False)
        status = data.get("status", columns.PROCESSING if paid else columns.PENDING)
        columns.require_known_status(status)
        _require_refund(self.actor, status)
        currency = data.get("currency", current_app.config["SHOP_CURRENCY"])
        columns.require_currency(currency)
        created = now()
        order = {
            **columns.BLANK,
            **columns.columns_of(data),
            "status": status,
            "currency": currency.upper(),
            "created_at": data.get("created_at") or created,
            "updated_at": data.get("updated_at") or created,
            "completed_at": data.get("completed_at")
            or (created if status == columns.COMPLETED else None),
            "paid_at": data.get("paid_at"),
            "created_via": data.get("created_via", columns.BLANK["created_via"]),
        }
        order["paid_at"] = columns.paid_at(None, order, change)
        permissions, errors = DownloadPermissions().changed(data)
        price_of = partial(current_catalog().price_of, currency=order["currency"])
        items = changed_items(OrderItems(), data, self.item_ids, errors, price_of)
        if data.get("order_key") in self.taken_keys:
            reason = "another order has this order key."
            raise ShopError("shop_api_cannot_create_order", reason=reason)
        plan = _plan(self, None, order, items, KINDS)
        items.own_shipping_tax = "shipping_tax" in data
        order |= items.columns_with_sums(cents(data.get("shipping_tax", Decimal(0))))
        order["id"] = next(self.new_ids)
        order["order_number"] = data.get("order_number") or str(order["id"])
        order |= columns.derived_columns(order)
        key = data.get("order_key")
        order["order_key"] = columns.new_key() if key is None else key
        metadata = self.metadata.changed(_given_in(order["id"], data, items))
        if plan:
            self.changes += plan.write(session, order["id"])
        self.metadata.keep(metadata, None, order, *items_of_order(order["id"], items.ids()))
        self.taken_keys.add(order["order_key"])
        self.permissions[order["id"]] = permissions
        if change and status != columns.PENDING:
            self.notes.append((order, columns.status_note(order, columns.PENDING, change)))
        return order

    def update(self, order: OrderRow | None, item: BulkItem) -> OrderRow:
        """Return an order after an update (orders 3)."""
        data, change = item.data, _status_change(item)
        if order is None:
            raise ShopError("shop_api_invalid_order_id")
        self.actor.require("shop_api_user_cannot_edit_order", *rights_to_change(data))
        if item.precondition:
            item.precondition(columns.with_total_tax(order))
        if order["erased_at"]:
            require_no_personal_data(data)
        _require_customer(self, data)
        _require_parent(self, data, order["id"])
        if "status" in data:
            columns.require_known_status(data["status"])
        if "currency" in data and data["currency"].upper() != order["currency"]:
            columns.require_currency(data["currency"])
        if not data:
            return with_columns(order, {})  # without the metadata of an earlier item
        timestamp = now()
        after: Record = order | columns.columns_of(data) | {"updated_at": timestamp, "version": ""}
        after["currency"] = data.get("currency", order["currency"]).upper()
        after["status"] = columns.next_status(order["status"], data)
        if after["status"] != order["status"]:
            _require_refund(self.actor, after["status"])
        if after["status"] == columns.COMPLETED and order["completed_at"] is None:
            after["completed_at"] = timestamp
        after["paid_at"] = columns.paid_at(order, after, change)
        changed = [name for name in KINDS if data.get(name)]
        permissions = self.permissions.get(order["id"], DownloadPermissions())
        permissions, errors = permissions.changed(data)
        before = items = items_of(order)
        if changed or errors:
            price_of = partial(current_catalog().price_of, currency=after["currency"])
            items = changed_items(before, data, self.item_ids, errors, price_of)
            _sort_coupons(items, item)
        plan = _plan(self, order, after, items, changed)
        if changed or "shipping_tax" in data:
            items.own_shipping_tax |= "shipping_tax" in data
            after |= items.columns_with_sums(cents(data.get("shipping_tax", order["shipping_tax"])))
            _require_refunds_covered(self, order, after, items, data)
        metadata = self.metadata.changed(_given_in(order["id"], data, items))
        if plan:
            self.changes += plan.write(self.session, order["id"])
        owners = items_of_order(order["id"], items.ids(), before.ids() - items.ids())
        self.metadata.keep(metadata, order, after, *owners)
        after |= columns.derived_columns(after)
        if after["status"] != order["status"]:
            _note_status(self, after, order["status"], change)
        self.permissions[order["id"]] = permissions
        return cast("OrderRow", after)

    def write(self, results: Sequence[WriteResult]) -> list[WriteResult]:
        """Write the accepted orders. The number of statements for new orders is constant."""
        session, created = self.session, self.created
        if created:
            insert_records(session, ORDERS, created)
        for order_id, after in self.records.items():
            if changes := changed_columns(self.stored[order_id], after):
                session.execute(update(ORDERS).where(ORDERS.c.id == order_id).values(changes))
        for order, refund in self.new_refunds:
            self.changes.append(insert_refund(session, refund, order))
        self.metadata.write(session)
        if self.notes:
            notes = insert(ORDER_NOTES).returning(ORDER_NOTES.c.id, sort_by_parameter_order=True)
            ids = session.scalars(notes, [note for _, note in self.notes])
            self.changes += [
                columns.note_created(note_id, note, order["customer_id"])
                for note_id, (order, note) in zip(ids, self.notes, strict=True)
            ]
        write_permissions(session, self.permissions)
        notify_with_coupons(session, self.actor, self.changes)
        return [
            result if isinstance(result, ShopError) else columns.with_total_tax(result)
            for result in results
        ]


def rights_to_change(names: Iterable[str]) -> tuple[Capability, ...]:
    """Return the capabilities that a change of these fields requires beside that of an update.

    ``process_shop_orders`` is enough for the status and the note.
    """
    return () if _PROCESSED.issuperset(names) else (Capability.EDIT_SHOP_ORDERS,)


_PROCESSED = {"status", "note"}


def _lock(
    session: Session, actor: Principal, items: Sequence[BulkItem], *, trashed_too: bool
) -> _OrderWrites:
    """Lock the orders, accounts and coupons that the items name, in this order."""
    ids = [item.id for item in items if item.id is not None and 0 < item.id <= INT64_MAX]
    stored = lock_orders(session, ids) if ids else {}
    orders = {
        order_id: order
        for order_id, order in stored.items()
        if trashed_too or order["status"] != TRASH
    }
    accounts = hold_accounts(session, [item.data.get("customer_id") or 0 for item in items])
    held = lock_coupons_of_items(session, items, orders)
    keys = [item.data["order_key"] for item in items if item.data.get("order_key")]
    taken_keys: set[str] = set()
    if keys:
        used = select(ORDERS.c.order_key).where(ORDERS.c.order_key.in_(keys))
        taken_keys = set(session.scalars(used))
    order_ids, item_ids = _new_ids(session, items, orders)
    return _OrderWrites(
        session=session,
        actor=actor,
        records=orders,
        stored=stored,
        accounts=accounts,
        held=held,
        parents=held_parents(session, [item.data.get("parent_id") or 0 for item in items]),
        taken_keys=taken_keys,
        refunds=_refunds(session, items, orders) if orders else (),
        new_ids=iter(order_ids),
        item_ids=iter(item_ids),
        permissions=permissions_of(session, items, orders) if orders else {},
        metadata=MetadataChanges.read(
            session, [*given_to(ORDER, items, orders), *_given_to_items(items, orders)]
        ),
    )


def _given_to_items(
    items: Sequence[BulkItem], orders: Mapping[int, OrderRow]
) -> list[tuple[Owner, Given | None]]:
    """Return what the items of a request say of the metadata of items of stored orders."""
    return [
        (Owner(ITEM, item.id), None if can_remove(each) else each[METADATA])
        for item in items
        if item.id in orders
        for name in KINDS
        for each in item.data.get(name) or ()
        if METADATA in each or can_remove(each)
    ]


def _given_in(order_id: int, data: Data, items: OrderItems) -> dict[Owner, tuple[str, Given]]:
    """Return what a request says of the metadata of an order and of its items."""
    given: dict[Owner, tuple[str, Given]] = {
        Owner(ITEM, order_id, item_id): (items.places[item_id], each)
        for item_id, each in items.metadata.items()
    }
    if METADATA in data:  # last, as its error
        given[Owner(ORDER, order_id)] = "order", data[METADATA]
    return given


def _new_ids(
    session: Session, items: Sequence[BulkItem], orders: Mapping[int, OrderRow]
) -> tuple[Sequence[int], Sequence[int]]:
    """Return IDs for the orders and for the items of orders that the request can create."""
    given = (each for item in items for name in KINDS for each in item.data.get(name) or ())
    number = sum(each.get("id") is None for each in given)
    last = max(map(last_item_id, orders.values()), default=0) if number else 0
    return new_ids(session, sum(item.id is None for item in items), number, last)


def _refunds(
    session: Session, items: Sequence[BulkItem], orders: Mapping[int, OrderRow]
) -> Sequence[OrderRefundRow]:
    """Return the refunds of the orders whose items or sums the request can change."""
    changed = {
        item.id
        for item in items
        if item.id is not None
        and item.id in orders
        and orders[item.id]["total_refunded"]
        and not _SUMS.isdisjoint(item.data)
    }
    return stored_refunds(session, changed) if changed else ()


_SUMS = {"shipping_tax", *KINDS}
"""Fields of an order that change its sums."""


def _require_refund(actor: Principal, status: str) -> None:
    """Raise ShopError if a new status means a refund, and the actor may not refund."""
    if status == columns.REFUNDED:
        actor.require("shop_api_user_cannot_create_order_refund")


def _note_status(
    writes: _OrderWrites, order: Record, before: str, change: StatusChange | None
) -> None:
    """Add the note of a new status, and the refund that a change to ``refunded`` means."""
    note = columns.status_note(order, before, change)
    writes.notes.append((order, note))
    rest = refund_of_the_rest(order, writes.actor.user_id, order["updated_at"])
    if order["status"] == columns.REFUNDED and rest:
        order["total_refunded"] += rest["amount"]
        writes.new_refunds.append((order, rest))


_CONCERNING_USES = {"status", "customer_id", "billing_email", "currency"}
"""Columns of an order whose change can concern the uses of its coupons."""


def _plan(
    writes: _OrderWrites,
    before: OrderRow | None,
    after: Record,
    items: OrderItems,
    changed: Container[str],
) -> CouponPlan | None:
    """Return the changes to coupons, or None if an update does not affect them.

    Args:
        before: the stored order; None for a new one.
        changed: the lists of items that the request changes.
    """
    recompute = "line_items" in changed or "coupon_lines" in changed
    if before and not recompute and _CONCERNING_USES.isdisjoint(changed_columns(before, after)):
        return None
    return plan_coupons(
        writes.session,
        before,
        after,
        items,
        recompute=recompute,
        held=writes.held,
        accounts=writes.accounts,
        others=chain(writes.created, writes.records.values()),
    )


def _require_refunds_covered(
    writes: _OrderWrites,
    order: OrderRow,
    after: Record,
    items: OrderItems,
    data: Mapping[str, object],
) -> None:
    """Raise InvalidRefund if an update leaves less of an order than was refunded (records 2)."""
    refunds = [each for each in writes.refunds if each["order_id"] == order["id"]]
    if refunds:
        before = cents(order["total"]), items_of(order)
        require_refunds_covered(before, (cents(after["total"]), items), refunds, data)


def _require_customer(writes: _OrderWrites, data: Mapping[str, object]) -> None:
    customer_id = data.get("customer_id", 0)
    if customer_id and customer_id not in writes.accounts:
        error = ShopError("shop_api_invalid_customer_id", param="order.customer_id")
        raise error.with_status(400)


def _require_parent(writes: _OrderWrites, data: Mapping[str, object], own_id: int | None) -> None:
    """Raise ShopError unless the parent is another order that is not in the trash (records 3)."""
    parent_id = data.get("parent_id", 0)
    if parent_id and (parent_id == own_id or parent_id not in writes.parents):
        error = ShopError("shop_api_invalid_order_id", param="order.parent_id")
        raise error.with_status(400)
