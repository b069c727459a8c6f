"""Coupons of an order: conditions and discounts (orders 3, redemptions 6).

The functions read and compute but do not write, so that the order can still be rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from flask import current_app
from sqlalchemy.orm import Session

from app.carts import Cart, CartItem, CouponTerms
from app.catalog import current_catalog
from app.db.session import now
from app.errors import InvalidOrderItems
from app.evaluation import Reason, evaluate, limit_reasons
from app.services.coupon_customers import find_customer
from app.services.coupon_terms import coupons_by_code
from app.services.order_items import Item, OrderItems, items_of
from app.services.order_redemptions import RELEASED, CouponPlan, redemptions_of
from app.services.redemption_slots import NOT_FOUND, fetch_in, not_applicable


def plan_coupons(
    session: Session,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    items: OrderItems,
    *,
    recompute: bool,
    accounts: Mapping[int, Any] = MappingProxyType({}),
) -> CouponPlan | None:
    """Compute coupon amounts and discounts, and return the resulting changes to uses.

    Args:
        before: the stored order; None for a new order.
        after: the order after the change, without its items and sums.
        items: its items after the change, modified in place. A coupon line without a recorded
            amount has ``applied``. A line with ``own_total`` keeps its total.
        recompute: whether lines or coupons have changed.
        accounts: rows of ACCOUNTS that have been read, by ID.

    Returns:
        The plan; None if the order neither has nor had a coupon.

    Raises:
        InvalidOrderItems: a new line has another code of a coupon that the order already uses.
        ShopError: a coupon is not applicable. Contains all reasons of the first such coupon.
    """
    lines = items.lists["coupon_lines"]
    if not lines and not (before and before["coupon_lines"]):
        return None
    order_id = before["id"] if before else 0
    fetch = fetch_in(session)
    customer = find_customer(
        fetch,
        after["customer_id"] or 0,
        after["billing_email"],
        param="order.customer_id",
        accounts=accounts,
    )
    found = coupons_by_code(fetch, [line["code"] for line in lines], customer, order_id)
    redemptions = redemptions_of(session, order_id) if before else {}
    plan = CouponPlan(before, after, items, customer, found, redemptions)
    for code in _codes_of_held_coupons(plan):
        del found[code]
    if recompute:
        reasons = _apply(plan)
        for line in lines:
            if reasons.get(line["code"]):
                raise not_applicable(line["code"], reasons[line["code"]], plan.place(line))
    return plan


def _codes_of_held_coupons(plan: CouponPlan) -> list[str]:
    """Return the codes of lines whose coupon another line uses, because its code has changed.

    An order has at most one use of a coupon (redemptions 6).

    Raises:
        InvalidOrderItems: such a line is new.
    """
    lines = {line["code"]: line for line in plan.items.lists["coupon_lines"]}
    new = {code for code, line in lines.items() if plan.is_new(line)}
    # The coupons of existing lines, which keep them when a code changes.
    coupon_ids = {
        code: redemption["coupon_id"]
        for code, redemption in plan.redemptions.items()
        if code in lines.keys() - new and redemption["coupon_id"] is not None
    }
    held = [
        code
        for code, coupon in plan.found.items()
        if code not in coupon_ids and coupon.id in coupon_ids.values()
    ]
    errors = {
        plan.place(lines[code]): "is the new code of a coupon that the order already uses."
        for code in held
        if code in new
    }
    if errors:
        raise InvalidOrderItems(errors)
    return held


def _apply(plan: CouponPlan) -> dict[str, Sequence[Reason]]:
    """Recompute the applied coupons of an order.

    Returns:
        The reasons why coupons are not applicable, by code. For recorded coupons, only the limits
        are checked.
    """
    listed: dict[str, CouponTerms | None] = {}
    reasons: dict[str, Sequence[Reason]] = {}
    gone: set[str] = set()
    for line in plan.items.lists["coupon_lines"]:
        code, is_new = line["code"], plan.is_new(line)
        coupon = plan.found.get(code)
        if not line["applied"]:
            if coupon and is_new and plan.status_of(line) != RELEASED:
                reasons[code] = tuple(limit_reasons(coupon.terms))
        elif coupon is None and not is_new:
            line["applied"] = False
            gone.add(code)
        elif coupon is None:
            listed[code], reasons[code] = None, [NOT_FOUND]
        elif is_new:
            listed[code] = coupon.terms
        else:  # the order's own use never counts against it
            listed[code] = replace(coupon.terms, usage_limit=None, usage_limit_per_user=None)
    before = items_of(plan.before).lists["coupon_lines"] if plan.before else []
    # The discount of a coupon that no longer exists stays: its line is recorded as it was.
    was_applied = {line["code"] for line in before if line["applied"]}
    removed = {line["code"] for line in before} - {
        line["code"] for line in plan.items.lists["coupon_lines"]
    }
    if not listed and not removed and was_applied <= gone:
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
