"""The rules for writing orders: create, update, trash, restore, delete (orders 1 to 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

from flask import current_app
from sqlalchemy import Table, delete, func, insert, select, text, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import OrderNote, User
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.change_notifications import notify, write_items
from app.services.download_permissions import (
    DOWNLOAD_PERMISSIONS,
    DownloadPermissions,
    permissions_of,
    write_permissions,
)
from app.services.order_coupons import CouponPlan, plan_coupons, release_uses
from app.services.order_item_kinds import KINDS
from app.services.order_items import OrderItems, changed_items, created_items, items_of
from app.services.order_queries import IS_TRASHED, TABLE
from app.services.order_records import (
    BLANK,
    COMPLETED,
    PENDING,
    PROCESSING,
    Record,
    columns_of,
    new_key,
    next_status,
    require_currency,
    require_known_status,
    search_text_of,
    status_note,
    with_total_tax,
)
from app.services.order_sums import cents

USERS = cast("Table", User.__table__)
NOTES = cast("Table", OrderNote.__table__)


def save_orders(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and update orders, in their order, in one transaction (orders 1, spec 4.3).

    Returns:
        For each item the order by its column names, or the error why nothing was written of it.
    """

    def work(session: Session) -> list[WriteResult]:
        def write(some: Sequence[BulkItem]) -> list[WriteResult]:
            return _OrderWrites(session, actor, some).results()

        return write_items(session, "order", items, write)

    return run_in_transaction(work)


def create_order(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create one order; return it by its column names."""
    return single_result(save_orders(actor, [BulkItem(None, data)]))


def update_order(
    actor: Principal,
    order_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Change the supplied fields of one order; return it by its column names."""
    return single_result(save_orders(actor, [BulkItem(order_id, data, precondition)]))


def delete_order(
    actor: Principal,
    order_id: int,
    *,
    force: bool,
    trashed_too: bool = False,
    precondition: Precondition | None = None,
) -> None:
    """Move an order to the trash, or remove it permanently (orders 1 and 4).

    Args:
        force: whether to remove it.
        trashed_too: whether ``force`` also removes an order that is in the trash.
    """

    def work(session: Session) -> None:
        order = _locked(session, [order_id]).get(order_id)
        if order is None or (order["status"] == TRASH and not (force and trashed_too)):
            raise ShopError("shop_api_invalid_order_id")
        actor.require("shop_api_user_cannot_delete_order", Capability.DELETE_SHOP_ORDERS)
        if precondition:
            precondition(with_total_tax(order))
        after: Record | None = None
        moment = now()
        release_uses(session, order_id, moment)
        if force:
            session.execute(delete(TABLE).where(TABLE.c.id == order_id))
        else:
            trashed = {
                "status": TRASH,
                "status_before_trash": order["status"],
                "trashed_at": moment,
                "updated_at": moment,
            }
            session.execute(update(TABLE).where(TABLE.c.id == order_id).values(trashed))
            after = order | trashed
        notify(session, [Change("order.deleted", order, after, actor.user_id)])

    run_in_transaction(work)


def restore_order(actor: Principal, order_id: int) -> Record:
    """Take an order out of the trash, into the status that it had; return it by its columns."""

    def work(session: Session) -> Record:
        order = _locked(session, [order_id]).get(order_id)
        if order is None or order["status"] != TRASH:
            raise ShopError("shop_api_invalid_order_id")
        actor.require("shop_api_user_cannot_edit_order", Capability.EDIT_SHOP_ORDERS)
        restored = {
            "status": order["status_before_trash"],
            "status_before_trash": None,
            "trashed_at": None,
            "updated_at": now(),
        }
        after = {**order, **restored}
        if plan := plan_coupons(session, order, after, items_of(order), recompute=False):
            plan.write(session, order_id)
        session.execute(update(TABLE).where(TABLE.c.id == order_id).values(restored))
        notify(session, [Change("order.restored", order, after, actor.user_id)])
        return with_total_tax(after)

    return run_in_transaction(work)


def empty_trash(actor: Principal, older_than_days: int) -> int:
    """Permanently remove the orders that have been in the trash for some days; return how many."""
    actor.require("shop_api_user_cannot_delete_order", Capability.DELETE_SHOP_ORDERS)

    def work(session: Session) -> int:
        # A thousand years ago is before every order.
        until = now() - timedelta(days=min(older_than_days, 365_000))
        old = delete(TABLE).where(IS_TRASHED, TABLE.c.trashed_at <= until)
        return len(session.scalars(old.returning(TABLE.c.id)).all())

    return run_in_transaction(work)


class _OrderWrites:
    """The creates and updates of one request, in one transaction.

    Every item is decided about in its order, and sees what the items before it change. Then all
    that was accepted is written: the statements are the same for one order and for a hundred.
    """

    def __init__(self, session: Session, actor: Principal, items: Sequence[BulkItem]) -> None:
        self._session = session
        self._actor = actor
        self._items = items
        ids = [item.id for item in items if item.id and 0 < item.id <= INT64_MAX]
        self._before = _locked(session, ids) if ids else {}
        self._orders = {
            order_id: order for order_id, order in self._before.items() if order["status"] != TRASH
        }
        self._customer_ids = self._known_customers()
        self._taken_keys = self._known_keys()
        self._ids = iter(self._ids_for_redemptions())
        self._created: list[Record] = []
        self._notes: list[Record] = []
        self._new_permissions: list[tuple[Record, DownloadPermissions]] = []
        self._permissions = permissions_of(
            session,
            [item.id for item in items if item.id in self._orders and _permission_items(item.data)],
        )
        self._changes: list[Change] = []

    def results(self) -> list[WriteResult]:
        """Decide, write, and return what became of each item."""
        results: list[WriteResult] = []
        for item in self._items:
            try:
                results.append(self._update(item) if item.id else self._create(item.data))
            except ShopError as error:
                results.append(error)
        self._write()
        notify(self._session, self._changes)
        return [
            result if isinstance(result, ShopError) else with_total_tax(result)
            for result in results
        ]

    def _create(self, data: Mapping[str, Any]) -> Record:
        """Return the order that shall be created (orders 5, order of checks)."""
        self._actor.require("shop_api_user_cannot_create_order", Capability.PUBLISH_SHOP_ORDERS)
        self._require_customer(data)
        paid = data.get("payment_details", {}).get("paid", False)
        status = data.get("status", PROCESSING if paid else PENDING)
        require_known_status(status)
        currency = data.get("currency", current_app.config["SHOP_CURRENCY"])
        require_currency(currency)
        moment = now()
        order = {
            **BLANK,
            **columns_of(data),
            "status": status,
            "currency": currency.upper(),
            "created_at": data.get("created_at") or moment,
            "updated_at": moment,
            "completed_at": data.get("completed_at") or (moment if status == COMPLETED else None),
        }
        permissions, errors = DownloadPermissions().changed(_permission_items(data))
        items = created_items(data, errors)
        if data.get("order_key") in self._taken_keys:
            raise ShopError(
                "shop_api_cannot_create_order", reason="another order has this order key."
            )
        plan = plan_coupons(self._session, None, order, items, recompute=True)
        order |= items.columns_with_sums(cents(data.get("shipping_tax", Decimal(0))))
        # The ID, and what is made of it, follows when the order is written.
        order |= {"order_number": data.get("order_number"), "order_key": data.get("order_key")}
        if order["order_key"] is None:
            order["order_key"] = new_key()
        order["id"] = next(self._ids, None)
        if plan:
            plan.write(self._session, order["id"])
        self._taken_keys.add(order["order_key"])
        self._created.append(order)
        self._new_permissions.append((order, permissions))
        self._changes.append(Change("order.created", None, order, self._actor.user_id))
        return order

    def _update(self, item: BulkItem) -> Record:
        """Return the order as it shall become (orders 3)."""
        order, data = self._orders.get(item.id or 0), item.data
        if order is None:
            raise ShopError("shop_api_invalid_order_id")
        self._actor.require("shop_api_user_cannot_edit_order", Capability.EDIT_SHOP_ORDERS)
        if item.precondition:
            item.precondition(with_total_tax(order))
        self._require_customer(data)
        if "status" in data:
            require_known_status(data["status"])
        if "currency" in data:
            require_currency(data["currency"])
        if not data:
            self._changes.append(Change("order.updated", order, order, self._actor.user_id))
            return order
        moment = now()
        after = {**order, **columns_of(data), "updated_at": moment}
        after["currency"] = data.get("currency", order["currency"]).upper()
        after["status"] = next_status(order["status"], data)
        if after["status"] == COMPLETED and order["completed_at"] is None:
            after["completed_at"] = moment
        changed = [name for name in KINDS if data.get(name)]
        permissions = self._permissions.get(order["id"], DownloadPermissions())
        permissions, errors = permissions.changed(_permission_items(data))
        items = items_of(order)
        if changed or errors:
            items = changed_items(items, data, errors)
        plan = self._plan_update(order, after, items, changed)
        if changed or "shipping_tax" in data:
            after |= items.columns_with_sums(cents(data.get("shipping_tax", order["shipping_tax"])))
        if plan:
            plan.write(self._session, order["id"])
        after["search_text"] = search_text_of(after)
        if after["status"] != order["status"]:
            self._notes.append(status_note(after, order["status"]))
        self._orders[order["id"]] = after
        self._permissions[order["id"]] = permissions
        self._changes.append(Change("order.updated", order, after, self._actor.user_id))
        return after

    def _plan_update(
        self, order: Record, after: Record, items: OrderItems, changed: Sequence[str]
    ) -> CouponPlan | None:
        """Return what an update does to coupons; None when it cannot concern them."""
        recompute = not {"line_items", "coupon_lines"}.isdisjoint(changed)
        concerned = ("status", "customer_id", "billing_email")
        if recompute or any(order[name] != after[name] for name in concerned):
            return plan_coupons(self._session, order, after, items, recompute=recompute)
        return None

    def _ids_for_redemptions(self) -> Sequence[int]:
        """Return IDs for all new orders if one of them has coupons, whose uses name the order."""
        created = [item for item in self._items if not item.id]
        if not any(item.data.get("coupon_lines") for item in created):
            return ()
        return _new_ids(self._session, len(created))

    def _known_customers(self) -> set[int]:
        """Return which of the given accounts exist; none of them is deleted before the commit."""
        given = {item.data.get("customer_id") or 0 for item in self._items}
        ids = [customer_id for customer_id in given if 0 < customer_id <= INT64_MAX]
        if not ids:
            return set()
        accounts = select(USERS.c.id).where(USERS.c.id.in_(ids)).order_by(USERS.c.id)
        held = accounts.with_for_update(read=True, key_share=True)
        return set(self._session.scalars(held))

    def _known_keys(self) -> set[str]:
        """Return which of the given order keys are taken."""
        keys = [item.data["order_key"] for item in self._items if item.data.get("order_key")]
        if not keys:
            return set()
        return set(
            self._session.scalars(select(TABLE.c.order_key).where(TABLE.c.order_key.in_(keys)))
        )

    def _require_customer(self, data: Mapping[str, Any]) -> None:
        customer_id = data.get("customer_id", 0)
        if customer_id and customer_id not in self._customer_ids:
            error = ShopError("shop_api_invalid_customer_id", param="order.customer_id")
            raise error.with_status(400)

    def _write(self) -> None:
        if self._created:
            if self._created[0]["id"] is None:
                self._ids = iter(_new_ids(self._session, len(self._created)))
            for order in self._created:
                order["id"] = order["id"] or next(self._ids)
                order["order_number"] = order["order_number"] or str(order["id"])
                order["search_text"] = search_text_of(order)
            # RETURNING makes it one statement for all rows.
            self._session.execute(insert(TABLE).returning(TABLE.c.id), self._created)
        for order_id, after in self._orders.items():
            before = self._before[order_id]
            changes = {key: value for key, value in after.items() if value != before[key]}
            if changes:
                this = update(TABLE).where(TABLE.c.id == order_id)
                self._session.execute(this.values(changes))
        if self._notes:
            self._session.execute(insert(NOTES), self._notes)
        new = ((order["id"], permissions) for order, permissions in self._new_permissions)
        write_permissions(self._session, [*new, *self._permissions.items()])


def _permission_items(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return data.get(DOWNLOAD_PERMISSIONS) or ()


def _locked(session: Session, ids: Iterable[int]) -> dict[int, Record]:
    """Return orders by their IDs, also from the trash, held until the commit."""
    statement = (
        select(TABLE)
        .where(TABLE.c.id.in_(list(ids)))
        .order_by(TABLE.c.id)  # everyone locks in one order
        .with_for_update()
    )
    return {row["id"]: dict(row) for row in session.execute(statement).mappings()}


def _new_ids(session: Session, number: int) -> Sequence[int]:
    """Return IDs for new orders, ascending: an order number is made of one before it is written."""
    if session.get_bind().dialect.name == "sqlite":  # one transaction writes at a time
        last = session.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = 'orders'")) or 0
        return range(last + 1, last + 1 + number)
    sequence = func.nextval(func.pg_get_serial_sequence("orders", "id"))
    return sorted(session.scalars(select(sequence).select_from(func.generate_series(1, number))))
