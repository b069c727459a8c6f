"""The coupon on the wire: the field tables of the specification, section 2.1."""

from __future__ import annotations

import marshmallow as ma

from app.schemas import fields, inputs
from app.schemas.envelope import Base, BulkFailure, Wrapped, WrappedItems, update_schema
from app.schemas.fields import either
from app.schemas.inputs import ZERO

_TYPE = "The type of the discount."
_ALONE = "Whether it cannot be combined with other coupons."
_PRODUCTS = "Ids of the products that it applies to; empty for all."
_NOT_PRODUCTS = "Ids of products that it does not apply to."
_CATEGORIES = "Ids of the product categories that it applies to; empty for all."
_NOT_CATEGORIES = "Ids of product categories that it does not apply to."
_SHIPPING = "Whether it makes shipping free."
_NOT_SALE = "Whether it leaves out items that are on sale."
_DATE = (
    "The day on which it expires: a date, a date-time (taken to UTC), an RFC 2822 date, "
    "`31 December 2030`, `12/31/2030` (month first), `tomorrow`, `+1 month`, or Unix seconds. "
    "Empty is none."
)
_AMOUNT = "Kept to the cent, half up; at most 16 digits before the point."
_COUNT = "The absolute value of the integer that it begins with."


class CouponSchema(Base):
    """A coupon as it is read."""

    id = fields.Identifier("Coupon id.")
    code = fields.String("Coupon code, in lower case.")
    type = fields.String(_TYPE)
    created_at = fields.Timestamp("When it was created, UTC.")
    updated_at = fields.Timestamp("When it was last changed, UTC.")
    amount = fields.Amount("The discount: money, or per cent.")
    individual_use = fields.Boolean(_ALONE)
    product_ids = fields.Identifiers(_PRODUCTS)
    exclude_product_ids = fields.Identifiers(_NOT_PRODUCTS)
    usage_limit = fields.Limit("How often it can be used; null for any number.")
    usage_limit_per_user = fields.Limit("How often one customer can use it; null for any number.")
    limit_usage_to_x_items = fields.Number("How many items it applies to; 0 for all.")
    usage_count = fields.Number("How often it was used.")
    expiry_date = fields.Date("Midnight UTC of the day on which it expires, or null.")
    enable_free_shipping = fields.Boolean(_SHIPPING)
    product_category_ids = fields.Identifiers(_CATEGORIES)
    exclude_product_category_ids = fields.Identifiers(_NOT_CATEGORIES)
    exclude_sale_items = fields.Boolean(_NOT_SALE)
    minimum_amount = fields.Amount("The least that an order must come to.")
    maximum_amount = fields.Amount("The most that an order may come to.")
    customer_emails = fields.StringList("Only for these e-mail addresses; empty for all.")
    description = fields.String("What it is for.")


class CouponCreate(Base):
    """A coupon to create: `code`, and whatever shall differ from the defaults."""

    code = inputs.Code(
        "Coupon code. Markup is removed, white space collapsed, letters become lower case; then it "
        "must have 1 to 500 characters and be no other published coupon's.",
        required=True,
    )
    type = inputs.CouponType(_TYPE, load_default="fixed_cart")
    amount = inputs.Amount(f"The discount: money, or per cent. {_AMOUNT}", load_default=ZERO)
    individual_use = inputs.StrictTrue(_ALONE, load_default=False)
    product_ids = inputs.IdArray(_PRODUCTS, load_default=list)
    exclude_product_ids = inputs.IdArray(_NOT_PRODUCTS, load_default=list)
    usage_limit = inputs.Count(
        f"How often it can be used; 0 for any number. {_COUNT}", load_default=0
    )
    usage_limit_per_user = inputs.Count(
        f"How often one customer can use it; 0 for any number. {_COUNT}", load_default=0
    )
    limit_usage_to_x_items = inputs.Count(
        f"How many items it applies to; 0 for all. {_COUNT}", load_default=0
    )
    usage_count = inputs.Count(f"How often it was used. {_COUNT}", load_default=0)
    expiry_date = inputs.DateText(_DATE, load_default=None)
    enable_free_shipping = inputs.StrictTrue(_SHIPPING, load_default=False)
    product_category_ids = inputs.IdArray(_CATEGORIES, load_default=list)
    exclude_product_category_ids = inputs.IdArray(_NOT_CATEGORIES, load_default=list)
    exclude_sale_items = inputs.StrictTrue(_NOT_SALE, load_default=False)
    minimum_amount = inputs.DecimalInput(
        f"The least that an order must come to; empty is 0. {_AMOUNT}", load_default=None
    )
    maximum_amount = inputs.DecimalInput(
        f"The most that an order may come to; empty is 0. {_AMOUNT}", load_default=None
    )
    customer_emails = inputs.EmailArray(
        "Only for these e-mail addresses; `*@example.com` is a domain. What is no address is "
        "dropped.",
        load_default=list,
    )
    description = inputs.Text("What it is for.", load_default="")


CouponUpdate = update_schema(CouponCreate, "CouponUpdate")
CouponBulkItem = update_schema(
    CouponCreate, "CouponBulkItem", id=inputs.RecordId("Which coupon to edit; absent or 0 creates.")
)


class CouponResponse(Base):
    """One coupon."""

    coupon = ma.fields.Nested(CouponSchema, required=True)


class CouponList(Base):
    """A page of coupons."""

    coupons = ma.fields.List(ma.fields.Nested(CouponSchema), required=True)


class CouponBulkResponse(Base):
    """The results of a bulk request, in the order of its items."""

    coupons = ma.fields.List(either(BulkFailure, CouponSchema), required=True)


class CouponCreateRequest(Base):
    """A coupon to create."""

    coupon = Wrapped(CouponCreate, missing_code="shop_api_missing_coupon_data")


class CouponUpdateRequest(Base):
    """Fields of a coupon to change."""

    coupon = Wrapped(CouponUpdate, missing_code="shop_api_missing_coupon_data")


class CouponBulkRequest(Base):
    """Coupons to create and to change."""

    coupons = WrappedItems(CouponBulkItem, missing_code="shop_api_missing_coupons_data")
