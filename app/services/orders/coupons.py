"""Coupons of an order: conditions and discounts (orders 3, redemptions 6).

The functions read and compute but do not write, so that the order can still be rejected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from flask import current_app
from sqlalchemy.orm import Session

from app.catalog import current_catalog
from app.config.current import expiry_zone
from app.conversions.currencies import in_smallest_amounts, smallest_amount
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch
from app.db.session import now
from app.errors import InvalidOrderItems
from app.models.order import Item, OrderRow
from app.models.redemption import RedemptionRow, is_live
from app.pricing.carts import CampaignTerms, CartItem, CouponTerms
from app.pricing.evaluation import Reason, evaluate, limit_reasons
from app.services.campaigns.locks import Held
from app.services.common.locks import AccountRow
from app.services.coupons.customers import cart_of, find_customer
from app.services.coupons.refusals import CouponRefused, refused_for
from app.services.coupons.terms import FoundCoupon, find_coupons
from app.services.orders.items import COUPON_ID, OrderItems, items_of
from app.services.orders.redemptions import (
    RELEASED,
    CouponPlan,
    coupons_of_lines,
    redemptions_of,
    redemptions_of_lines,
)
from app.services.redemptions.campaign_numbers import counted_amount
from app.services.redemptions.slots import fetch_in

_CUSTOMER = "order.customer_id"


def plan_coupons(
    session: Session,
    before: OrderRow | None,
    after: Mapping[str, Any],
    items: OrderItems,
    *,
    recompute: bool,
    held: Held,
    accounts: Mapping[int, AccountRow] = MappingProxyType({}),
    others: Iterable[Mapping[str, object]] = (),
) -> CouponPlan | None:
    """Compute coupon amounts and discounts, and return the resulting changes to uses.

    Args:
        before, after: the order, None if it is new, and after the change without items and sums.
        items: its items after the change, modified in place, except a total with ``own_total``.
        recompute: whether lines or coupons have changed.
        held: their locked campaigns.
        accounts: accounts that have been read, by ID.
        others: orders that the transaction has changed and not written yet.

    Returns:
        The plan; None if the order neither has nor had a coupon.

    Raises:
        InvalidOrderItems: a new line has another code of a coupon that the order already uses.
        ShopError: a coupon is not applicable, with all reasons of the first such coupon.
    """
    lines = items.lists["coupon_lines"]
    if not lines and not (before and before["coupon_lines"]):
        return None
    fetch, of_lines, removed = fetch_in(session), dict[int, RedemptionRow](), list[RedemptionRow]()
    customer_id, email = after["customer_id"] or 0, after["billing_email"]
    if before:
        customer = find_customer(fetch, customer_id, email, param=_CUSTOMER, accounts=accounts)
        of_lines, removed = _recorded_uses(session, before, lines)
        coupons = coupons_of_lines(fetch, lines, of_lines, customer, before["id"])
    else:
        codes = [line["code"] for line in lines]
        customer, found = find_coupons(
            fetch, codes, customer_id, email, param=_CUSTOMER, accounts=accounts
        )
        coupons = {line["id"]: found[line["code"]] for line in lines if line["code"] in found}
    plan = CouponPlan(before, after, items, customer, coupons, of_lines, removed, held)
    _name_coupons(plan)
    if recompute:
        _apply(plan, fetch, others)
    return plan


def _name_coupons(plan: CouponPlan) -> None:
    """Store the coupon of each line, except of those whose coupon another line of the order has."""
    for line_id in _lines_of_held_coupons(plan) if plan.before else ():
        del plan.coupons[line_id]
    for line in plan.items.lists["coupon_lines"]:
        if coupon := plan.coupons.get(line["id"]):
            line[COUPON_ID] = coupon.id


def _recorded_uses(
    session: Session, before: OrderRow, lines: Sequence[Item]
) -> tuple[dict[int, RedemptionRow], list[RedemptionRow]]:
    """Return the redemptions of coupon lines by the ID of the line, and live ones of no line."""
    known = {line["id"] for line in before["coupon_lines"]}
    redemptions = redemptions_of(session, before["id"])
    new = [line for line in lines if line["id"] not in known]
    of_lines = redemptions_of_lines(lines, new, redemptions)
    kept = {redemption["id"] for redemption in of_lines.values()}
    return of_lines, [each for each in redemptions if each["id"] not in kept and is_live(each)]


def _lines_of_held_coupons(plan: CouponPlan) -> list[int]:
    """Return the IDs of lines whose code is the new code of a coupon that another line uses.

    An order has at most one use of a coupon (redemptions 6).
    """
    lines = plan.items.lists["coupon_lines"]
    coupon_ids = {redemption["coupon_id"] for redemption in plan.redemptions.values()}
    coupon_ids |= {line[COUPON_ID] for line in lines}
    held = [
        line
        for line in lines
        if line["id"] not in plan.redemptions
        and line[COUPON_ID] is None
        and (coupon := plan.coupons.get(line["id"]))
        and coupon.id in coupon_ids
    ]
    errors = {
        plan.place(line): "is the new code of a coupon that the order already uses."
        for line in held
        if plan.is_new(line)
    }
    if errors:
        raise InvalidOrderItems(errors)
    return [line["id"] for line in held]


def _apply(plan: CouponPlan, fetch: Fetch, others: Iterable[Mapping[str, object]]) -> None:
    """Recompute the applied coupons of an order."""
    listed, reasons, gone = _applied_terms(plan)
    lines = plan.items.lists["coupon_lines"]
    before = items_of(plan.before).lists["coupon_lines"] if plan.before else []
    # The discount of a coupon that no longer exists stays: its line is recorded as it was.
    was_applied = {line["id"] for line in before if line["applied"]}
    removed = {line["id"] for line in before} - {line["id"] for line in lines}
    if listed or removed or not was_applied <= gone:
        items = plan.items.lists["line_items"]
        evaluation = evaluate(
            cart_of(
                fetch,
                plan.customer,
                listed.values(),
                [*map(_cart_item, items)],
                plan.before or {**plan.after, "id": INT64_MAX},
                changed=others,
            ),
            listed,
            sequential=current_app.config["SHOP_SEQUENTIAL_DISCOUNTS"],
            now=now(),
            coupon_types=current_catalog().coupon_types,
            smallest=smallest_amount(plan.after["currency"]),
            in_budget=plan.in_budget,
            expiry_zone=expiry_zone(),
        )
        results = {result.code: result for result in evaluation.coupons}
        reasons |= {code: result.reasons for code, result in results.items()}
        for line in lines:
            if line["code"] in results:
                line["amount"] = results[line["code"]].discount
        for item, result in zip(items, evaluation.items, strict=True):
            if not item["own_total"]:
                item["total"] = result.total
    for line in lines:
        line["amount"] = in_smallest_amounts(line["amount"], plan.after["currency"])
        if reasons.get(line["code"]):
            with refused_for(plan.cart):
                raise CouponRefused(line["code"], reasons[line["code"]], plan.place(line))


def _applied_terms(
    plan: CouponPlan,
) -> tuple[dict[str, CouponTerms | None], dict[str, Sequence[Reason]], set[int]]:
    """Return the terms by code, why recorded coupons do not apply, and lines without a coupon."""
    listed: dict[str, CouponTerms | None] = {}
    reasons: dict[str, Sequence[Reason]] = {}
    gone: set[int] = set()
    for line in plan.items.lists["coupon_lines"]:
        code, is_new = line["code"], plan.is_new(line)
        coupon = plan.coupons.get(line["id"])
        if not line["applied"]:
            if coupon and is_new:
                reasons[code] = tuple(limit_reasons(_terms_for_new_line(plan, line, coupon)))
        elif is_new:
            listed[code] = _terms_for_new_line(plan, line, coupon) if coupon else None
        elif coupon is None or not coupon.is_published:
            if line[COUPON_ID] is not None or line["id"] in plan.redemptions:
                line["applied"] = False
            # Otherwise only ``applied`` shows that the line had a coupon: an earlier release
            # wrote it.
            gone.add(line["id"])
        else:  # the order's own use never counts against it
            listed[code] = replace(
                coupon.terms,
                usage_limit=None,
                usage_limit_per_user=None,
                campaign=_without_limits(coupon.terms.campaign),
            )
    return listed, reasons, gone


def _terms_for_new_line(plan: CouponPlan, line: Item, coupon: FoundCoupon) -> CouponTerms:
    """Return the terms of a coupon, without the use that a removed line of the order releases.

    If the line takes a use, the budget is checked then: other lines can give back a part before.
    """
    if plan.before is None:
        return coupon.terms
    released = any(redemption["coupon_id"] == coupon.id for redemption in plan.removed)
    campaign = coupon.terms.campaign
    is_later = plan.status_of(line) != RELEASED
    if campaign:
        freed = [each for each in plan.removed if each["campaign_id"] == campaign.id]
        amounts = sum((counted_amount(each["amount"]) for each in freed), Decimal(0))
        by_customer = campaign.uses_by_customer
        campaign = replace(
            campaign,
            uses=campaign.uses - len(freed),
            uses_by_customer=None if by_customer is None else by_customer - len(freed),
            discount=campaign.discount - int(amounts.scaleb(2)),
            budget=None if is_later else campaign.budget,
        )
    return replace(coupon.terms, uses=coupon.terms.uses - released, campaign=campaign)


def _without_limits(campaign: CampaignTerms | None) -> CampaignTerms | None:
    """Return the terms of a campaign for a line that holds its place.

    They have another ID, because the use is already among those that count for other lines.
    """
    if campaign is None:
        return None
    return replace(campaign, id=-campaign.id, usage_limit=0, usage_limit_per_user=0, budget=None)


def _cart_item(item: Item) -> CartItem:
    return CartItem(
        item["subtotal"],
        item["quantity"] or 1,
        item["product_id"],
        item["product_category_ids"] or (),
        item["on_sale"],
    )
