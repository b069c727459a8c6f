"""Cart and evaluation schemas (redemptions 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.schemas import fields, inputs, json_schema, list_inputs, number_inputs
from app.schemas.envelope import Base, OptionalFields, ReasonSchema, Wrapped


class CartItemInput(OptionalFields):
    """Item of a cart."""

    product_id = number_inputs.Integer("Product ID, 0 for none.", load_default=0)
    product_category_ids = list_inputs.IdArray(
        "IDs of the product categories of the product.", load_default=list
    )
    quantity = number_inputs.Quantity("Number of units.", load_default=1)
    price = number_inputs.Price("Price of one unit, with up to 6 decimals.")
    on_sale = inputs.StrictTrue("Whether the product is on sale.", load_default=False)


class CartItems(ma.fields.List[Any]):
    """The items of a cart; null is an empty cart."""

    null_is_absent = True

    def __init__(self) -> None:
        super().__init__(
            ma.fields.Nested(CartItemInput),
            load_default=list,
            allow_none=True,
            metadata={
                "description": "Items of the cart. The maximum number is a setting.",
                json_schema.LIMIT: "SHOP_CART_ITEM_LIMIT",
            },
        )

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **_: Any
    ) -> Any:
        """Return the converted items."""
        if value is None or value is ma.missing:
            return []
        if not isinstance(value, list):
            raise ma.ValidationError("must be an array.")
        return list_inputs.load_items(value, self.inner.deserialize)


class CartInput(OptionalFields):
    """Cart to evaluate."""

    customer_id = number_inputs.AccountId(
        "ID of the customer account, 0 for a guest.", load_default=0
    )
    email = inputs.Email("E-mail address of the customer.", load_default="")
    coupons = list_inputs.CodeArray(
        "Coupon codes in the order in which they apply. A code listed twice counts once. The "
        "maximum number is a setting.",
        openapi={**json_schema.CODES_IN, json_schema.LIMIT: "SHOP_CART_CODE_LIMIT"},
        load_default=list,
    )
    items = CartItems()


class EvaluationRequest(Base):
    """Request that evaluates a cart."""

    cart = Wrapped(CartInput, missing_code="shop_api_missing_cart_data")


class CouponResultSchema(Base):
    """Result of one coupon."""

    code = fields.String("Coupon code, normalised.")
    id = fields.OptionalIdentifier("Coupon ID, or null if no published coupon has the code.")
    applicable = fields.Boolean("Whether the coupon applies.")
    discount = fields.Amount("Discount of this coupon; 0.00 if it does not apply.")
    reasons = ma.fields.List(
        ma.fields.Nested(ReasonSchema),
        required=True,
        metadata={"description": "All reasons why the coupon does not apply."},
    )


class ItemResultSchema(Base):
    """Sums of one item."""

    index = fields.Number("Position of the item in the request, from 0.")
    subtotal = fields.Amount("Price times quantity, before discounts.")
    discount = fields.Amount("Discount of all coupons.")
    total = fields.Amount("Subtotal less discount.")


class EvaluationSchema(Base):
    """Discounts of a cart."""

    subtotal = fields.Amount("Sum of the items before discounts.")
    discount = fields.Amount("Sum of all discounts.")
    total = fields.Amount("Sum of the items after discounts.")
    free_shipping = fields.Boolean("Whether a coupon that applies grants free shipping.")
    coupons = ma.fields.List(ma.fields.Nested(CouponResultSchema), required=True)
    items = ma.fields.List(ma.fields.Nested(ItemResultSchema), required=True)


class EvaluationResponse(Base):
    """Evaluation of a cart."""

    evaluation = ma.fields.Nested(EvaluationSchema, required=True)
