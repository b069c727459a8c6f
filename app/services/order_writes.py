"""Creates and updates of orders in one transaction, for one order and for a hundred (orders 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from flask import current_app
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import TRASH, Change
from app.db.inserts import insert_rows
from app.db.session import now
from app.errors import ShopError
from app.models.tables import ORDER_NOTES, ORDERS
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, WriteResult
from app.services.download_permissions import (
    DOWNLOAD_PERMISSIONS,
    DownloadPermissions,
    permissions_of,
    write_permissions,
)
from app.services.order_coupons import plan_coupons
from app.services.order_item_changes import changed_items, created_items
from app.services.order_item_kinds import KINDS
from app.services.order_items import OrderItems, items_of
from app.services.order_records import (
    BLANK,
    COMPLETED,
    PENDING,
    PROCESSING,
    Record,
    columns_of,
    new_key,
    next_status,
    note_created,
    require_currency,
    require_known_status,
    search_text_of,
    status_note,
    with_total_tax,
)
from app.services.order_redemptions import CouponPlan
from app.services.order_rows import hold_accounts, lock_coupons_of_items, lock_orders, new_ids
from app.services.order_sums import cents
from app.services.redemption_changes import notify_with_coupons


class OrderWrites:
    """The creates and updates of one request, in one transaction.

    All items are checked in their order, and an item sees the changes of the items before it. Then
    all accepted changes are written. The number of statements for new orders is constant.
    """

    def __init__(self, session: Session, actor: Principal, items: Sequence[BulkItem]) -> None:
        self._session = session
        self._actor = actor
        self._items = items
        ids = [item.id for item in items if item.id is not None and 0 < item.id <= INT64_MAX]
        self._before = lock_orders(session, ids) if ids else {}
        self._orders = {
            order_id: order for order_id, order in self._before.items() if order["status"] != TRASH
        }
        self._accounts = hold_accounts(
            session, [item.data.get("customer_id") or 0 for item in items]
        )
        lock_coupons_of_items(session, items, self._orders)
        self._taken_keys = self._known_keys()
        self._ids = iter(self._ids_for_redemptions())
        self._created: list[Record] = []
        self._notes: list[tuple[Record, Record]] = []  # each with its order
        self._new_permissions: list[tuple[Record, DownloadPermissions]] = []
        self._permissions = permissions_of(
            session,
            [item.id for item in items if item.id in self._orders and _permission_items(item.data)],
        )
        self._changes: list[Change] = []

    def results(self) -> list[WriteResult]:
        """Check and write the items, and return the result of each."""
        results: list[WriteResult] = []
        for item in self._items:
            try:
                is_new = item.id is None
                results.append(self._create(item.data) if is_new else self._update(item))
            except ShopError as error:
                results.append(error)
        self._write()
        notify_with_coupons(self._session, self._actor, self._changes)
        return [
            result if isinstance(result, ShopError) else with_total_tax(result)
            for result in results
        ]

    def _create(self, data: Mapping[str, Any]) -> Record:
        """Return a new order, which ``_write`` stores (orders 5, order of checks)."""
        self._actor.require("shop_api_user_cannot_create_order", Capability.PUBLISH_SHOP_ORDERS)
        self._require_customer(data)
        paid = data.get("payment_details", {}).get("paid", False)
        status = data.get("status", PROCESSING if paid else PENDING)
        require_known_status(status)
        currency = data.get("currency", current_app.config["SHOP_CURRENCY"])
        require_currency(currency)
        created = now()
        order = {
            **BLANK,
            **columns_of(data),
            "status": status,
            "currency": currency.upper(),
            "created_at": data.get("created_at") or created,
            "updated_at": created,
            "completed_at": data.get("completed_at") or (created if status == COMPLETED else None),
        }
        permissions, errors = DownloadPermissions().changed(_permission_items(data))
        items = created_items(data, errors)
        if data.get("order_key") in self._taken_keys:
            raise ShopError(
                "shop_api_cannot_create_order", reason="another order has this order key."
            )
        plan = plan_coupons(
            self._session, None, order, items, recompute=True, accounts=self._accounts
        )
        order |= items.columns_with_sums(cents(data.get("shipping_tax", Decimal(0))))
        # ``_write`` sets a missing ID and the values derived from it.
        order |= {"order_number": data.get("order_number"), "order_key": data.get("order_key")}
        if order["order_key"] is None:
            order["order_key"] = new_key()
        order["id"] = next(self._ids, None)
        uses = plan.write(self._session, order["id"]) if plan else []
        self._taken_keys.add(order["order_key"])
        self._created.append(order)
        self._new_permissions.append((order, permissions))
        self._changes += [Change("order.created", None, order), *uses]
        return order

    def _update(self, item: BulkItem) -> Record:
        """Return an order after an update, which ``_write`` stores (orders 3)."""
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
            self._changes.append(Change("order.updated", order, order))
            return order
        timestamp = now()
        after = {**order, **columns_of(data), "updated_at": timestamp}
        after["currency"] = data.get("currency", order["currency"]).upper()
        after["status"] = next_status(order["status"], data)
        if after["status"] == COMPLETED and order["completed_at"] is None:
            after["completed_at"] = timestamp
        changed = [name for name in KINDS if data.get(name)]
        permissions = self._permissions.get(order["id"], DownloadPermissions())
        permissions, errors = permissions.changed(_permission_items(data))
        items = items_of(order)
        if changed or errors:
            items = changed_items(items, data, errors)
        plan = self._plan_update(order, after, items, changed)
        if changed or "shipping_tax" in data:
            after |= items.columns_with_sums(cents(data.get("shipping_tax", order["shipping_tax"])))
        uses = plan.write(self._session, order["id"]) if plan else []
        after["search_text"] = search_text_of(after)
        if after["status"] != order["status"]:
            self._notes.append((after, status_note(after, order["status"])))
        self._orders[order["id"]] = after
        self._permissions[order["id"]] = permissions
        self._changes += [Change("order.updated", order, after), *uses]
        return after

    def _plan_update(
        self, order: Record, after: Record, items: OrderItems, changed: Sequence[str]
    ) -> CouponPlan | None:
        """Return the changes to coupons, or None if the update does not affect them."""
        recompute = not {"line_items", "coupon_lines"}.isdisjoint(changed)
        concerned = ("status", "customer_id", "billing_email")
        if recompute or any(order[name] != after[name] for name in concerned):
            return plan_coupons(
                self._session, order, after, items, recompute=recompute, accounts=self._accounts
            )
        return None

    def _ids_for_redemptions(self) -> Sequence[int]:
        """Return IDs for all new orders if one has coupons: redemptions contain the order ID."""
        created = [item for item in self._items if item.id is None]
        if not any(item.data.get("coupon_lines") for item in created):
            return ()
        return new_ids(self._session, len(created))

    def _known_keys(self) -> set[str]:
        """Return the order keys of the request that other orders have."""
        keys = [item.data["order_key"] for item in self._items if item.data.get("order_key")]
        if not keys:
            return set()
        return set(
            self._session.scalars(select(ORDERS.c.order_key).where(ORDERS.c.order_key.in_(keys)))
        )

    def _require_customer(self, data: Mapping[str, Any]) -> None:
        customer_id = data.get("customer_id", 0)
        if customer_id and customer_id not in self._accounts:
            error = ShopError("shop_api_invalid_customer_id", param="order.customer_id")
            raise error.with_status(400)

    def _write(self) -> None:
        if self._created:
            if self._created[0]["id"] is None:
                self._ids = iter(new_ids(self._session, len(self._created)))
            for order in self._created:
                order["id"] = order["id"] or next(self._ids)
                order["order_number"] = order["order_number"] or str(order["id"])
                order["search_text"] = search_text_of(order)
            insert_rows(self._session, ORDERS, self._created)
        for order_id, after in self._orders.items():
            before = self._before[order_id]
            changes = {key: value for key, value in after.items() if value != before[key]}
            if changes:
                this = update(ORDERS).where(ORDERS.c.id == order_id)
                self._session.execute(this.values(changes))
        if self._notes:
            notes = insert(ORDER_NOTES).returning(ORDER_NOTES.c.id, sort_by_parameter_order=True)
            ids = self._session.scalars(notes, [note for _, note in self._notes])
            self._changes += [
                note_created(note_id, note, order["customer_id"])
                for note_id, (order, note) in zip(ids, self._notes, strict=True)
            ]
        new = ((order["id"], permissions) for order, permissions in self._new_permissions)
        write_permissions(self._session, [*new, *self._permissions.items()])


def _permission_items(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return data.get(DOWNLOAD_PERMISSIONS) or ()
