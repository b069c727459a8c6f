"""Evaluation of the coupons of a cart (redemptions 1). Nothing is stored."""

from collections.abc import Mapping
from decimal import Decimal

from flask import current_app

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.config.current import expiry_zone
from app.conversions.currencies import smallest_amount
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.session import now
from app.pricing.carts import CartItem, line_value
from app.pricing.evaluation import Evaluation, evaluate
from app.services.common.bulk import Data
from app.services.coupons.customers import cart_of, require_customer_access
from app.services.coupons.refusals import CartSummary, current_refusals
from app.services.coupons.terms import find_coupons


def evaluate_cart(actor: Principal, data: Data) -> Record:
    """Return the evaluation of a cart, as the API returns it, and count the refused codes.

    Args:
        data: a loaded ``CartSchema``.

    Raises:
        ShopError: the capability is missing, the key may not name customers, or the customer does
            not exist.
    """
    actor.require("shop_api_user_cannot_read_coupons")
    require_customer_access(actor, data["customer_id"])
    codes = list(dict.fromkeys(data["coupons"]))  # a code listed twice counts once
    customer, found = find_coupons(
        fetch, codes, data["customer_id"], data["email"], param="cart.customer_id"
    )
    items = [
        CartItem(
            line_value(item["price"], item["quantity"]),
            item["quantity"],
            item["product_id"],
            item["product_category_ids"],
            item["on_sale"],
        )
        for item in data["items"]
    ]
    terms = {code: found[code].terms if code in found else None for code in codes}
    evaluation = evaluate(
        cart_of(fetch, customer, terms.values(), items),
        terms,
        sequential=current_app.config["SHOP_SEQUENTIAL_DISCOUNTS"],
        now=now(),
        coupon_types=current_catalog().coupon_types,
        smallest=smallest_amount(current_app.config["SHOP_CURRENCY"]),
        expiry_zone=expiry_zone(),
    )
    total = Decimal(evaluation.subtotal).scaleb(-2) if items else None
    cart = CartSummary(data["customer_id"], data["email"], total)
    refused = [
        (each.code, each.reasons[0].code, cart) for each in evaluation.coupons if each.reasons
    ]
    if refused and actor.session_id is None:  # a customer's cart, not one of *Try it* (reports 4)
        current_refusals().count(refused)
    return _shown(evaluation, {code: coupon.id for code, coupon in found.items()})


def _shown(evaluation: Evaluation, ids: Mapping[str, int]) -> Record:
    return {
        "subtotal": _amount(evaluation.subtotal),
        "discount": _amount(evaluation.discount),
        "total": _amount(evaluation.total),
        "free_shipping": evaluation.free_shipping,
        "coupons": [
            {
                "code": coupon.code,
                "id": ids.get(coupon.code),
                "applicable": coupon.applicable,
                "discount": _amount(coupon.discount),
                "reasons": [
                    {"code": reason.code, "message": reason.text} for reason in coupon.reasons
                ],
            }
            for coupon in evaluation.coupons
        ],
        "items": [
            {
                "index": index,
                "subtotal": _amount(item.subtotal),
                "discount": _amount(item.discount),
                "total": _amount(item.total),
            }
            for index, item in enumerate(evaluation.items)
        ],
    }


def _amount(cents: int) -> str:
    """Return cents, which are never negative here, as an amount."""
    units, rest = divmod(cents, 100)
    return f"{units}.{rest:02}"
