"""Cart and evaluation schemas (redemptions 1)."""

from functools import partial
from typing import Any

from app.config.current import current_limit
from app.errors import Sentence, ShopError
from app.schemas.base import Base, ReasonSchema, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import list_input as list_inputs
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.given import defaults_of, load_given

MAX_CODE_ENTRIES = 1000
"""Maximum number of coupon codes of a cart with repetitions, if the setting is not higher."""

_CODE_LIMIT = "SHOP_CART_CODE_LIMIT"
_TOO_LARGE = partial(ShopError, "shop_api_cart_request_entity_too_large")


class CartItemSchema(Base):
    """Item of a cart."""

    product_id = inputs.Integer("Product ID, 0 for none.", load_default=0)
    product_category_ids = list_inputs.IdArray(
        "IDs of the product categories of the product.", load_default=list
    )
    quantity = inputs.Quantity("Number of units.", load_default=1)
    price = inputs.Price("Price of one unit, with up to 6 decimals.")
    on_sale = inputs.StrictTrue("Whether the product is on sale.", load_default=False)


class CartItems(list_inputs.ItemArray):
    """The items of a cart; null is an empty cart."""

    def __init__(self) -> None:
        super().__init__(
            CartItemSchema,
            "Items of the cart. The maximum number is a setting.",
            limit="SHOP_CART_ITEM_LIMIT",
            too_large=partial(_TOO_LARGE, what=Sentence("items")),
            load_default=list,
        )
        self._defaults = defaults_of(CartItemSchema())

    def load_item(self, item: dict[str, object]) -> dict[str, object]:
        """Convert an item, whose price is required."""
        return load_given(self.inner.schema, {"price": None, **item}, self._defaults)


class CartCodes(list_inputs.CodeArray):
    """The coupon codes of a cart. A code listed twice counts once."""

    openapi: json_schema.Schema = {**json_schema.CODES_IN, json_schema.LIMIT: _CODE_LIMIT}

    def convert(self, value: object) -> list[Any]:
        limit = current_limit(_CODE_LIMIT)
        # Repetitions have to be converted to be recognized.
        most = max(limit, MAX_CODE_ENTRIES)
        if isinstance(value, list) and len(value) > most:
            raise _TOO_LARGE(limit=most, what=Sentence("entries in coupons"))
        codes = super().convert(value)
        if len(set(codes)) > limit:
            raise _TOO_LARGE(limit=limit, what=Sentence("coupon codes"))
        return codes


class CartSchema(Base):
    """Cart to evaluate."""

    customer_id = inputs.ExactInteger("ID of the customer account, 0 for a guest.", load_default=0)
    email = inputs.Email("E-mail address of the customer, or empty.", load_default="")
    coupons = CartCodes(
        "Coupon codes in the order in which they apply. A code listed twice counts once. The "
        "maximum number is a setting.",
        load_default=list,
    )
    items = CartItems()


set_form(
    CartItemSchema,
    {
        "Cart": {
            "product_id": FormField("Product ID", help=""),
            "price": FormField(help=""),
            "quantity": FormField(help=""),
            "product_category_ids": FormField("Categories", help=""),
            "on_sale": FormField("On sale", help=""),
        }
    },
)
set_form(
    CartSchema,
    {
        "Customer and other codes": {
            "email": FormField("E-mail address", help=""),
            "customer_id": FormField("Customer ID", help=""),
            "coupons": FormField("Other codes", help=""),
        }
    },
    hidden=("items",),
)

CartRequest = request(CartSchema, "cart")


class EvaluatedCouponSchema(Base):
    """Result of one coupon."""

    code = fields.String("Coupon code, normalized.")
    id = fields.OptionalIdentifier("Coupon ID, or null if no published coupon has the code.")
    applicable = fields.Boolean("Whether the coupon applies.")
    discount = fields.Amount("Discount of this coupon; 0.00 if it does not apply.")
    reasons = fields.objects(ReasonSchema, "All reasons why the coupon does not apply.")


class EvaluatedItemSchema(Base):
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
    coupons = fields.objects(EvaluatedCouponSchema, "Coupons, in the order of the cart.")
    items = fields.objects(EvaluatedItemSchema, "Items, in the order of the cart.")


EvaluationResponse = response(EvaluationSchema, "evaluation")
