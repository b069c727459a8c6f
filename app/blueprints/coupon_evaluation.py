"""Evaluation of carts, in the native API only (redemptions 1)."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Body
from app.api.responses import json_response
from app.schemas.coupons.cart import CartRequest, EvaluationResponse
from app.schemas.examples import redemptions as examples
from app.services.coupons import evaluation as coupon_evaluation

blp = Blueprint(
    "coupon_evaluation",
    __name__,
    url_prefix="/coupons",
    description="Compute the discounts of a cart without storing anything.",
    any_permission=True,
    extends_orders=True,
)
init_app = blp.init_app


@blp.route("/evaluate", methods=["POST"])
@blp.errors(
    "shop_api_missing_cart_data",
    "shop_api_user_cannot_read_coupons",
    "shop_api_cart_request_entity_too_large",
)
@blp.errors_as(400, "shop_api_invalid_customer_id")
@blp.arguments(CartRequest, example={"cart": examples.CART})
@blp.response(200, EvaluationResponse, example={"evaluation": examples.EVALUATION})
def evaluate_coupons(body: Body) -> Response:
    """Evaluate coupons against a cart.

    Returns the discount of each coupon and each item, and all reasons why a coupon does not apply.
    Such a coupon is excluded from the sums. Nothing is stored; a key with any permission can be
    used. A `customer_id` requires a key for `customers` or `orders`.
    """
    cart = coupon_evaluation.evaluate_cart(current_principal(), body["cart"])
    return json_response({"evaluation": cart})
