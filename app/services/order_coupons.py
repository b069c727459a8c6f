"""The coupons of an order: discounts, and the uses that its status takes (orders 3, redemptions 4).

``plan_coupons`` looks and computes; nothing is written, so that the order can still be refused.
``CouponPlan.write`` then takes, confirms and releases uses in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from flask import current_app
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.carts import Cart, CartItem, CouponTerms
from app.catalog import TRASH, RedemptionEffect, current_catalog
from app.db.search import comparable
from app.db.session import now
from app.evaluation import Reason, evaluate, limit_reasons
from app.models.redemption import RedemptionStatus
from app.services.coupon_terms import REDEMPTIONS as TABLE
from app.services.coupon_terms import (
    Customer,
    FoundCoupon,
    coupon_by_id,
    coupons_by_code,
    find_customer,
)
from app.services.order_items import Item, OrderItems, items_of
from app.services.redemption_slots import (
    NOT_FOUND,
    change_counts,
    fetch_in,
    not_applicable,
    require_use_left,
    take_slot,
)
from app.services.redemptions import Record, give_back

CONFIRMED, RESERVED, RELEASED = (
    RedemptionStatus.CONFIRMED,
    RedemptionStatus.RESERVED,
    RedemptionStatus.RELEASED,
)


@dataclass(frozen=True, slots=True)
class CouponPlan:
    """What a create or an update of an order does to uses of coupons.

    Attributes:
        before: the order as it is stored; None for a new one.
        after: the order as it becomes.
        items: its items as they become.
        customer: whose uses they are.
        found: the published coupons of the coupon lines, by code.
        redemptions: the latest redemption of the order for each code.
    """

    before: Mapping[str, Any] | None
    after: Mapping[str, Any]
    items: OrderItems
    customer: Customer
    found: Mapping[str, FoundCoupon]
    redemptions: Mapping[str, Record]

    def write(self, session: Session, order_id: int) -> None:
        """Take, move and release the uses.

        Raises:
            ShopError: a limit is reached; with the reasons. Nothing is written then.
        """
        lines = self.items.lists["coupon_lines"]
        # A refused coupon undoes what was written for the ones before it.
        several = len(lines) > 1 or bool(self.redemptions)
        with session.begin_nested() if several else nullcontext():
            codes = {line["code"] for line in lines}
            for code, redemption in self.redemptions.items():
                if code not in codes and _is_live(redemption):
                    _release(session, redemption)
            for line in lines:
                self._write_line(session, order_id, line)

    def _write_line(self, session: Session, order_id: int, line: Item) -> None:
        redemption = self.redemptions.get(line["code"])
        live = redemption if redemption and _is_live(redemption) else None
        status = self._status_of(line, redemption)
        if status == RELEASED:
            if live:
                _release(session, live)
        elif live:
            self._keep(session, order_id, line, live, status or live["status"])
        elif status:
            is_new = self._is_new(line) or redemption is None
            self._take(session, order_id, line, None if is_new else redemption, status)

    def _status_of(self, line: Item, redemption: Record | None) -> str | None:
        """Return the status that the use of a line gets; None leaves it as it is."""
        is_new = self._is_new(line)
        if self.before and self.before["status"] == self.after["status"] and not is_new:
            return None
        effects = current_catalog().redemption_effects
        effect = effects.get(self.after["status"], RedemptionEffect.UNCHANGED)
        if effect == RedemptionEffect.UNCHANGED:
            # A use that is recorded in such an order is confirmed (redemptions 6), and one that
            # the trash released is taken again.
            return CONFIRMED if is_new or self._trash_released(redemption) else None
        return {
            RedemptionEffect.RESERVE: RESERVED,
            RedemptionEffect.CONFIRM: CONFIRMED,
            RedemptionEffect.RELEASE: RELEASED,
        }[effect]

    def _is_new(self, line: Item) -> bool:
        return self.before is None or all(
            line["code"] != earlier["code"] for earlier in self.before["coupon_lines"]
        )

    def _trash_released(self, redemption: Record | None) -> bool:
        return bool(
            redemption
            and self.before
            and self.before["status"] == TRASH
            and redemption["updated_at"] >= self.before["trashed_at"]
        )

    def _keep(
        self, session: Session, order_id: int, line: Item, redemption: Record, status: str
    ) -> None:
        """Move a live use to a status, and keep its customer and amount current."""
        columns = self._columns(line)
        identity = ("customer_id", "email_normalized")
        if any(columns[name] != redemption[name] for name in identity):
            require_use_left(
                session, redemption["coupon_id"], self.customer, order_id, self._place(line)
            )
        if status != redemption["status"]:
            confirmed = status == CONFIRMED
            change_counts(
                session,
                redemption["coupon_id"],
                usage=1 if confirmed else -1,
                reserved=-int(redemption["holds_slot"]) if confirmed else 1,
            )
            columns |= {"status": status, "holds_slot": not confirmed, "updated_at": now()}
        if changes := {key: value for key, value in columns.items() if value != redemption[key]}:
            session.execute(update(TABLE).where(TABLE.c.id == redemption["id"]).values(changes))

    def _take(
        self, session: Session, order_id: int, line: Item, earlier: Record | None, status: str
    ) -> None:
        """Take a use; a code that matches no coupon is kept without one (redemptions 6)."""
        coupon = self.found.get(line["code"])
        if (
            earlier
            and earlier["coupon_id"]
            and (coupon is None or coupon.id != earlier["coupon_id"])
        ):
            coupon = coupon_by_id(fetch_in(session), earlier["coupon_id"], self.customer, order_id)
        if coupon is None:
            return
        holds_slot = take_slot(
            session,
            coupon,
            self.customer,
            confirmed=status == CONFIRMED,
            published=line["applied"] and self._is_new(line),
            own_order_id=order_id,
            param=self._place(line),
        )
        moment = now()
        columns = {
            **self._columns(line),
            "coupon_id": coupon.id,
            "status": status,
            "holds_slot": holds_slot,
            "updated_at": moment,
        }
        if earlier:
            session.execute(update(TABLE).where(TABLE.c.id == earlier["id"]).values(columns))
            return
        columns |= {
            "code": line["code"],
            "reference": f"order-{order_id}",
            "order_id": order_id,
            "created_at": moment,
            "expires_at": None,
        }
        session.execute(insert(TABLE).values(columns))

    def _columns(self, line: Item) -> Record:
        return {
            "customer_id": self.customer.customer_id,
            "email": self.customer.email,
            "email_normalized": comparable(self.customer.email),
            "amount": Decimal(line["amount"]).scaleb(-2),
        }

    def _place(self, line: Item) -> str:
        """Return where the request has the code of a line."""
        place = self.items.places.get(line["id"])
        return f"{place}.code" if place else "order.coupon_lines"


def plan_coupons(
    session: Session,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    items: OrderItems,
    *,
    recompute: bool,
) -> CouponPlan | None:
    """Give coupon lines their amounts, subtract discounts, and return what follows for uses.

    Args:
        before: the order as it is stored; None for a new one.
        after: the order as it becomes, without its items and sums.
        items: its items as they become, which are changed in place. A coupon line without a
            recorded amount has ``applied``; a line with ``own_total`` keeps its total.
        recompute: whether lines or coupons have changed.

    Returns:
        The plan; None when the order neither has nor had a coupon.

    Raises:
        ShopError: a coupon is not applicable: the first one, with all its reasons.
    """
    lines = items.lists["coupon_lines"]
    if not lines and not (before and before["coupon_lines"]):
        return None
    order_id = before["id"] if before else 0
    fetch = fetch_in(session)
    customer = find_customer(
        fetch, after["customer_id"] or 0, after["billing_email"], param="order.customer_id"
    )
    found = coupons_by_code(fetch, [line["code"] for line in lines], customer, order_id)
    redemptions = _redemptions_of(session, order_id) if before else {}
    plan = CouponPlan(before, after, items, customer, found, redemptions)
    if recompute:
        reasons = _apply(plan)
        for line in lines:
            if reasons.get(line["code"]):
                raise not_applicable(line["code"], reasons[line["code"]], plan._place(line))
    return plan


def release_uses(session: Session, order_id: int, moment: datetime) -> None:
    """Release the uses of an order that is trashed or removed."""
    for redemption in _redemptions_of(session, order_id).values():
        if _is_live(redemption):
            _release(session, redemption, moment)


def _apply(plan: CouponPlan) -> dict[str, Sequence[Reason]]:
    """Compute the applied coupons of an order anew.

    Returns:
        Why coupons cannot be used: for applied ones all reasons, for recorded ones the limits.
    """
    listed: dict[str, CouponTerms | None] = {}
    reasons: dict[str, Sequence[Reason]] = {}
    for line in plan.items.lists["coupon_lines"]:
        code, is_new = line["code"], plan._is_new(line)
        coupon = plan.found.get(code)
        if not line["applied"]:
            if coupon and is_new and plan._status_of(line, None) != RELEASED:
                reasons[code] = tuple(limit_reasons(coupon.terms))
        elif coupon is None and not is_new:
            line["applied"] = False  # the coupon is gone: the line stays as recorded
        elif coupon is None:
            listed[code], reasons[code] = None, [NOT_FOUND]
        elif is_new:
            listed[code] = coupon.terms
        else:  # the use that the order itself holds never counts against it
            listed[code] = replace(coupon.terms, usage_limit=None, usage_limit_per_user=None)
    before = items_of(plan.before).lists["coupon_lines"] if plan.before else []
    if not listed and not any(line["applied"] for line in before):
        return reasons
    items = plan.items.lists["line_items"]
    evaluation = evaluate(
        Cart([_cart_item(item) for item in items], plan.customer.emails),
        listed,
        sequential=current_app.config["SHOP_SEQUENTIAL_DISCOUNTS"],
        now=now(),
        coupon_types=current_catalog().coupon_types,
    )
    results = {result.code: result for result in evaluation.coupons}
    reasons |= {code: result.reasons for code, result in results.items()}
    for line in plan.items.lists["coupon_lines"]:
        if line["code"] in results:
            line["amount"] = results[line["code"]].discount
    for item, result in zip(items, evaluation.items, strict=True):
        if not item["own_total"]:
            item["total"] = result.total
    return reasons


def _cart_item(item: Item) -> CartItem:
    return CartItem(
        item["subtotal"],
        item["quantity"] or 1,
        item["product_id"],
        item["product_category_ids"] or (),
        item["on_sale"],
    )


def _redemptions_of(session: Session, order_id: int) -> dict[str, Record]:
    """Return the latest redemption of each code of an order."""
    rows = session.execute(select(TABLE).where(TABLE.c.order_id == order_id).order_by(TABLE.c.id))
    return {row["code"]: dict(row) for row in rows.mappings()}


def _is_live(redemption: Mapping[str, Any]) -> bool:
    """Return whether an order holds a use; its reservations do not expire."""
    return bool(redemption["status"] != RELEASED)


def _release(
    session: Session, redemption: Mapping[str, Any], moment: datetime | None = None
) -> None:
    give_back(session, redemption)
    released = {"status": RELEASED, "holds_slot": False, "updated_at": moment or now()}
    session.execute(update(TABLE).where(TABLE.c.id == redemption["id"]).values(released))
