"""The coupon on the wire: the field tables of the specification, section 2.1."""

from __future__ import annotations

import marshmallow as ma

from app.schemas import fields
from app.schemas.envelope import Base, BulkFailure, Wrapped, WrappedItems, edit_of
from app.schemas.fields import either


class CouponSchema(Base):
    """A coupon as it is read."""

    id = fields.Identifier()
    code = fields.Words()
    type = fields.Words()
    created_at = fields.Moment()
    updated_at = fields.Moment()
    amount = fields.Amount()
    individual_use = fields.Flag()
    product_ids = fields.Identifiers()
    exclude_product_ids = fields.Identifiers()
    usage_limit = fields.Limit()
    usage_limit_per_user = fields.Limit()
    limit_usage_to_x_items = fields.Number()
    usage_count = fields.Number()
    expiry_date = fields.Day()
    enable_free_shipping = fields.Flag()
    product_category_ids = fields.Identifiers()
    exclude_product_category_ids = fields.Identifiers()
    exclude_sale_items = fields.Flag()
    minimum_amount = fields.Amount()
    maximum_amount = fields.Amount()
    customer_emails = fields.Texts()
    description = fields.Words()


class CouponCreate(Base):
    """A coupon to create: `code`, and whatever shall differ from the defaults."""

    code = fields.Code(required=True)
    type = fields.Text(load_default="fixed_cart")
    amount = fields.Decimals(load_default=fields.ZERO)
    individual_use = fields.OnlyTrue(load_default=False)
    product_ids = fields.IdArray(load_default=list)
    exclude_product_ids = fields.IdArray(load_default=list)
    usage_limit = fields.Count(load_default=0)
    usage_limit_per_user = fields.Count(load_default=0)
    limit_usage_to_x_items = fields.Count(load_default=0)
    usage_count = fields.Count(load_default=0)
    expiry_date = fields.DateText(load_default=None)
    enable_free_shipping = fields.OnlyTrue(load_default=False)
    product_category_ids = fields.IdArray(load_default=list)
    exclude_product_category_ids = fields.IdArray(load_default=list)
    exclude_sale_items = fields.OnlyTrue(load_default=False)
    minimum_amount = fields.Decimals(load_default=None)
    maximum_amount = fields.Decimals(load_default=None)
    customer_emails = fields.EmailArray(load_default=list)
    description = fields.Text(load_default="")


CouponEdit = edit_of(CouponCreate, "CouponEdit")
CouponItem = edit_of(CouponCreate, "CouponItem", id=fields.RecordId())


class CouponEnvelope(Base):
    """One coupon."""

    coupon = ma.fields.Nested(CouponSchema, required=True)


class CouponList(Base):
    """A page of coupons."""

    coupons = ma.fields.List(ma.fields.Nested(CouponSchema), required=True)


class CouponResults(Base):
    """The results of a bulk request, in the order of its items."""

    coupons = ma.fields.List(either(BulkFailure, CouponSchema), required=True)


class CouponCreateBody(Base):
    """A coupon to create."""

    coupon = Wrapped(CouponCreate, missing_code="shop_api_missing_coupon_data")


class CouponEditBody(Base):
    """Fields of a coupon to change."""

    coupon = Wrapped(CouponEdit, missing_code="shop_api_missing_coupon_data")


class CouponBulkBody(Base):
    """Coupons to create and to change."""

    coupons = WrappedItems(CouponItem, missing_code="shop_api_missing_coupons_data")
