"""Schemas of the objects of this dialect, for OPTIONS and the OpenAPI document (wc-v3, OpenAPI).

They describe objects that functions make. Each has its fields in the order of responses.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import marshmallow as ma
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from app.plugins.woocommerce.rest.site import Object
from app.schemas.base import Base

Field = ma.fields.Field[Any]
_DRAFT = "http://json-schema.org/draft-04/schema#"

Text = partial(ma.fields.String, required=True)
Integer = partial(ma.fields.Integer, required=True)
Number = partial(ma.fields.Float, required=True)
Flag = partial(ma.fields.Boolean, required=True)
Anything = partial(ma.fields.Raw, required=True)
OptionalText = partial(Text, allow_none=True)
OptionalInteger = partial(Integer, allow_none=True)
One = partial(ma.fields.Nested, required=True)
Texts = partial(ma.fields.List, ma.fields.String, required=True)
Integers = partial(ma.fields.List, ma.fields.Integer, required=True)


def _many(schema: type[Base], *, required: bool = True) -> Field:
    """Return a list of objects."""
    return ma.fields.List(ma.fields.Nested(schema), required=required)


def _links() -> Field:
    """Return the links of a record by their relation."""
    return ma.fields.Dict(values=ma.fields.List(ma.fields.Nested(Link)), required=True)


class TargetHints(Base):
    """Methods that the caller may use."""

    allow = Texts()


class Link(Base):
    """Link to a record."""

    href = Text()
    targetHints = One(TargetHints, required=False)  # noqa: N815  # the name in responses


class Metadata(Base):
    """Entry of metadata."""

    id = Integer()
    key = Text()
    value = Anything()


class ItemMetadata(Base):
    """Entry of the metadata of an item."""

    id = Integer()
    key = Text()
    value = display_key = display_value = Anything()


class Billing(Base):
    """Billing address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = email = phone = Text()


class Shipping(Base):
    """Shipping address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = phone = Text()


class Coupon(Base):
    """Coupon."""

    id = Integer()
    code = amount = status = date_created = date_created_gmt = date_modified = Text()
    date_modified_gmt = discount_type = description = Text()
    date_expires = date_expires_gmt = OptionalText()
    usage_count = Integer()
    individual_use = Flag()
    product_ids = excluded_product_ids = Integers()
    usage_limit = usage_limit_per_user = limit_usage_to_x_items = OptionalInteger()
    free_shipping = Flag()
    product_categories = excluded_product_categories = Integers()
    exclude_sale_items = Flag()
    minimum_amount = maximum_amount = Text()
    email_restrictions = used_by = Texts()
    meta_data = _many(Metadata)
    _links = _links()


class LastOrder(Base):
    """Latest order of a customer."""

    id = Integer()
    date = Text()


class Customer(Base):
    """Customer."""

    id = Integer()
    date_created = date_created_gmt = date_modified = date_modified_gmt = email = Text()
    first_name = last_name = role = username = Text()
    billing = One(Billing)
    shipping = One(Shipping)
    is_paying_customer = Flag()
    avatar_url = Text()
    meta_data = _many(Metadata)
    orders_count = Integer()
    total_spent = Text()
    last_order = One(LastOrder, allow_none=True)
    _links = _links()


class OrderCustomer(Base):
    """Customer of an order. Guests have names and addresses only."""

    id = Integer()
    date_created = date_created_gmt = date_modified = date_modified_gmt = Text(required=False)
    email = first_name = last_name = Text()
    role = username = Text(required=False)
    billing = One(Billing)
    shipping = One(Shipping)
    is_paying_customer = Flag(required=False)
    avatar_url = Text(required=False)
    meta_data = _many(Metadata, required=False)
    orders_count = Integer(required=False)
    total_spent = Text(required=False)
    last_order = One(LastOrder, allow_none=True, required=False)


class ItemTax(Base):
    """Tax of an item by its rate."""

    id = Integer()
    total = subtotal = Text()


class Image(Base):
    """Image of a product."""

    id = Anything()
    src = Text()


class LineItem(Base):
    """Product of an order."""

    id = Integer()
    name = Text()
    product_id = variation_id = quantity = Integer()
    tax_class = subtotal = subtotal_tax = total = total_tax = Text()
    taxes = _many(ItemTax)
    meta_data = _many(ItemMetadata)
    sku = global_unique_id = OptionalText()
    price = Number()
    image = One(Image)
    parent_name = OptionalText()


class TaxLine(Base):
    """Tax of an order by its rate."""

    id = Integer()
    rate_code = Text()
    rate_id = Integer()
    label = Text()
    compound = Flag()
    tax_total = shipping_tax_total = Text()
    rate_percent = Number()
    meta_data = _many(ItemMetadata)


class ShippingLine(Base):
    """Shipping of an order."""

    id = Integer()
    method_title = method_id = instance_id = total = total_tax = Text()
    taxes = _many(ItemTax)
    tax_status = Text()
    meta_data = _many(ItemMetadata)


class FeeLine(Base):
    """Fee of an order."""

    id = Integer()
    name = tax_class = tax_status = amount = total = total_tax = Text()
    taxes = _many(ItemTax)
    meta_data = _many(ItemMetadata)


class CouponLine(Base):
    """Coupon of an order."""

    id = Integer()
    code = discount = discount_tax = Text()
    meta_data = _many(ItemMetadata)
    discount_type = Text()
    nominal_amount = Number()
    free_shipping = Flag()


class OrderRefund(Base):
    """Refund in its order."""

    id = Integer()
    reason = total = Text()


class Order(Base):
    """Order."""

    id = parent_id = Integer()
    status = currency = version = Text()
    prices_include_tax = Flag()
    date_created = date_modified = discount_total = discount_tax = shipping_total = Text()
    shipping_tax = cart_tax = total = total_tax = Text()
    customer_id = Integer()
    order_key = Text()
    billing = One(Billing)
    shipping = One(Shipping)
    payment_method = payment_method_title = transaction_id = customer_ip_address = Text()
    customer_user_agent = created_via = customer_note = Text()
    date_completed = date_paid = OptionalText()
    cart_hash = number = Text()
    meta_data = _many(Metadata)
    line_items = _many(LineItem)
    tax_lines = _many(TaxLine)
    shipping_lines = _many(ShippingLine)
    fee_lines = _many(FeeLine)
    coupon_lines = _many(CouponLine)
    refunds = _many(OrderRefund)
    payment_url = Text()
    is_editable = needs_payment = needs_processing = Flag()
    date_created_gmt = date_modified_gmt = Text()
    date_completed_gmt = date_paid_gmt = OptionalText()
    currency_symbol = Text()
    customer = One(OrderCustomer, required=False)
    _links = _links()


class OrderStatusName(Base):
    """Status of orders with its label."""

    slug = name = Text()


class OrderNote(Base):
    """Note of an order."""

    id = Integer()
    author = date_created = date_created_gmt = note = Text()
    customer_note = Flag()
    _links = _links()


class Refund(Base):
    """Refund. In the list of all refunds it names its order."""

    id = Integer()
    parent_id = Integer(required=False)
    date_created = date_created_gmt = amount = reason = Text()
    refunded_by = Integer()
    refunded_payment = Flag()
    meta_data = _many(Metadata)
    line_items = _many(LineItem)
    shipping_lines = _many(ShippingLine)
    tax_lines = _many(TaxLine)
    fee_lines = _many(FeeLine)
    _links = _links()


class DownloadFile(Base):
    """File of a download."""

    name = file = Text()


class Download(Base):
    """Download that a customer may use."""

    download_id = download_url = Text()
    product_id = Integer()
    product_name = download_name = Text()
    order_id = Integer()
    order_key = downloads_remaining = access_expires = access_expires_gmt = Text()
    file = One(DownloadFile)
    _links = _links()


class Webhook(Base):
    """Webhook."""

    id = Integer()
    name = status = topic = resource = event = Text()
    hooks = Texts()
    delivery_url = date_created = date_created_gmt = Text()
    date_modified = date_modified_gmt = OptionalText()
    _links = _links()


class Report(Base):
    """Report that exists."""

    slug = description = Text()
    _links = _links()


class ReportTotal(Base):
    """Number of records of a kind."""

    slug = name = Text()
    total = Integer()


class SalesOfInterval(Base):
    """Sales of a day or a month."""

    sales = Text()
    orders = items = Integer()
    tax = shipping = discount = Text()
    customers = Integer()


class SalesReport(Base):
    """Sales of a period."""

    total_sales = net_sales = average_sales = Text()
    total_orders = total_items = Integer()
    total_tax = total_shipping = Text()
    total_refunds = Number()
    total_discount = totals_grouped_by = Text()
    totals = ma.fields.Dict(values=ma.fields.Nested(SalesOfInterval), required=True)
    total_customers = Integer()
    _links = _links()


class TopSeller(Base):
    """Product of which many units were sold."""

    name = Text()
    product_id = quantity = Integer()
    _links = _links()


class Currency(Base):
    """Currency."""

    code = name = symbol = Text()
    _links = _links()


class StatusEnvironment(Base):
    """Addresses and versions of the shop."""

    home_url = site_url = version = wp_version = Text()


class StatusSettings(Base):
    """Settings of the shop."""

    currency = Text()


class SystemStatusTool(Base):
    """Tool."""

    id = name = action = description = Text()


class AbsentRecord(Base):
    """Record that this service does not have."""

    id = Integer()


class SystemStatus(Base):
    """What programs check before they begin."""

    environment = One(StatusEnvironment)
    settings = One(StatusSettings)


class ApiErrorData(Base):
    """Status of an error, and what else is known about it."""

    class Meta(Base.Meta):
        """Further fields are allowed."""

        unknown = ma.INCLUDE

    status = Integer()


class ApiError(Base):
    """Error."""

    code = message = Text()
    data = One(ApiErrorData)


@cache
def resolved(schema: type[Base]) -> Object:
    """Return the JSON Schema of an object without references, for OPTIONS."""
    plugin: Any = MarshmallowPlugin(schema_name_resolver=lambda _: "")
    APISpec("", "", "3.1.0", plugins=[plugin])
    described = plugin.converter.schema2jsonschema(schema)
    return {"$schema": _DRAFT, "title": schema.__name__, **described}


def batch_schema() -> Object:
    """Return the schema of a batch, for OPTIONS. Each kind of record has its own items."""
    lists = {"create": "object", "update": "object", "delete": "integer"}
    properties = {name: {"type": "array", "items": {"type": kind}} for name, kind in lists.items()}
    return {"$schema": _DRAFT, "title": "batch", "type": "object", "properties": properties}
