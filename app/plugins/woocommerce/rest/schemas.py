"""Schemas of the objects of this dialect, for OPTIONS and the OpenAPI document (wc-v3, OpenAPI).

They describe objects that functions make. Each has its fields in the order of responses. The names
of the classes begin with ``Rest``, those in the document do not.
"""

from __future__ import annotations

from functools import partial
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
    return ma.fields.Dict(values=ma.fields.List(ma.fields.Nested(RestLink)), required=True)


class RestTargetHints(Base):
    """Methods that the caller may use."""

    allow = Texts()


class RestLink(Base):
    """Link to a record."""

    href = Text()
    targetHints = One(RestTargetHints, required=False)  # noqa: N815  # the name in responses


class RestMetadata(Base):
    """Entry of metadata."""

    id = Integer()
    key = Text()
    value = Anything()


class RestItemMetadata(Base):
    """Entry of the metadata of an item."""

    id = Integer()
    key = Text()
    value = display_key = display_value = Anything()


class RestBilling(Base):
    """Billing address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = email = phone = Text()


class RestShipping(Base):
    """Shipping address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = phone = Text()


class RestCoupon(Base):
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
    meta_data = _many(RestMetadata)
    _links = _links()


class RestLastOrder(Base):
    """Latest order of a customer."""

    id = Integer()
    date = Text()


class RestCustomer(Base):
    """Customer."""

    id = Integer()
    date_created = date_created_gmt = date_modified = date_modified_gmt = email = Text()
    first_name = last_name = role = username = Text()
    billing = One(RestBilling)
    shipping = One(RestShipping)
    is_paying_customer = Flag()
    avatar_url = Text()
    meta_data = _many(RestMetadata)
    orders_count = Integer()
    total_spent = Text()
    last_order = One(RestLastOrder, allow_none=True)
    _links = _links()


class RestOrderCustomer(Base):
    """Customer of an order. Guests have names and addresses only."""

    id = Integer()
    date_created = date_created_gmt = date_modified = date_modified_gmt = Text(required=False)
    email = first_name = last_name = Text()
    role = username = Text(required=False)
    billing = One(RestBilling)
    shipping = One(RestShipping)
    is_paying_customer = Flag(required=False)
    avatar_url = Text(required=False)
    meta_data = _many(RestMetadata, required=False)
    orders_count = Integer(required=False)
    total_spent = Text(required=False)
    last_order = One(RestLastOrder, allow_none=True, required=False)


class RestItemTax(Base):
    """Tax of an item by its rate."""

    id = Integer()
    total = subtotal = Text()


class RestImage(Base):
    """Image of a product."""

    id = Anything()
    src = Text()


class RestLineItem(Base):
    """Product of an order."""

    id = Integer()
    name = Text()
    product_id = variation_id = quantity = Integer()
    tax_class = subtotal = subtotal_tax = total = total_tax = Text()
    taxes = _many(RestItemTax)
    meta_data = _many(RestItemMetadata)
    sku = global_unique_id = OptionalText()
    price = Number()
    image = One(RestImage)
    parent_name = OptionalText()


class RestTaxLine(Base):
    """Tax of an order by its rate."""

    id = Integer()
    rate_code = Text()
    rate_id = Integer()
    label = Text()
    compound = Flag()
    tax_total = shipping_tax_total = Text()
    rate_percent = Number()
    meta_data = _many(RestItemMetadata)


class RestShippingLine(Base):
    """Shipping of an order."""

    id = Integer()
    method_title = method_id = instance_id = total = total_tax = Text()
    taxes = _many(RestItemTax)
    tax_status = Text()
    meta_data = _many(RestItemMetadata)


class RestFeeLine(Base):
    """Fee of an order."""

    id = Integer()
    name = tax_class = tax_status = amount = total = total_tax = Text()
    taxes = _many(RestItemTax)
    meta_data = _many(RestItemMetadata)


class RestCouponLine(Base):
    """Coupon of an order."""

    id = Integer()
    code = discount = discount_tax = Text()
    meta_data = _many(RestItemMetadata)
    discount_type = Text()
    nominal_amount = Number()
    free_shipping = Flag()


class RestOrderRefund(Base):
    """Refund in its order."""

    id = Integer()
    reason = total = Text()


class RestOrder(Base):
    """Order."""

    id = parent_id = Integer()
    status = currency = version = Text()
    prices_include_tax = Flag()
    date_created = date_modified = discount_total = discount_tax = shipping_total = Text()
    shipping_tax = cart_tax = total = total_tax = Text()
    customer_id = Integer()
    order_key = Text()
    billing = One(RestBilling)
    shipping = One(RestShipping)
    payment_method = payment_method_title = transaction_id = customer_ip_address = Text()
    customer_user_agent = created_via = customer_note = Text()
    date_completed = date_paid = OptionalText()
    cart_hash = number = Text()
    meta_data = _many(RestMetadata)
    line_items = _many(RestLineItem)
    tax_lines = _many(RestTaxLine)
    shipping_lines = _many(RestShippingLine)
    fee_lines = _many(RestFeeLine)
    coupon_lines = _many(RestCouponLine)
    refunds = _many(RestOrderRefund)
    payment_url = Text()
    is_editable = needs_payment = needs_processing = Flag()
    date_created_gmt = date_modified_gmt = Text()
    date_completed_gmt = date_paid_gmt = OptionalText()
    currency_symbol = Text()
    customer = One(RestOrderCustomer, required=False)
    _links = _links()


class RestOrderStatusName(Base):
    """Status of orders with its label."""

    slug = name = Text()


class RestOrderNote(Base):
    """Note of an order."""

    id = Integer()
    author = date_created = date_created_gmt = note = Text()
    customer_note = Flag()
    _links = _links()


class RestRefund(Base):
    """Refund. In the list of all refunds it names its order."""

    id = Integer()
    parent_id = Integer(required=False)
    date_created = date_created_gmt = amount = reason = Text()
    refunded_by = Integer()
    refunded_payment = Flag()
    meta_data = _many(RestMetadata)
    line_items = _many(RestLineItem)
    shipping_lines = _many(RestShippingLine)
    tax_lines = _many(RestTaxLine)
    fee_lines = _many(RestFeeLine)
    _links = _links()


class RestDownloadFile(Base):
    """File of a download."""

    name = file = Text()


class RestDownload(Base):
    """Download that a customer may use."""

    download_id = download_url = Text()
    product_id = Integer()
    product_name = download_name = Text()
    order_id = Integer()
    order_key = downloads_remaining = access_expires = access_expires_gmt = Text()
    file = One(RestDownloadFile)
    _links = _links()


class RestWebhook(Base):
    """Webhook."""

    id = Integer()
    name = status = topic = resource = event = Text()
    hooks = Texts()
    delivery_url = date_created = date_created_gmt = Text()
    date_modified = date_modified_gmt = OptionalText()
    _links = _links()


class RestReport(Base):
    """Report that exists."""

    slug = description = Text()
    _links = _links()


class RestReportTotal(Base):
    """Number of records of a kind."""

    slug = name = Text()
    total = Integer()


class RestSalesOfInterval(Base):
    """Sales of a day or a month."""

    sales = Text()
    orders = items = Integer()
    tax = shipping = discount = Text()
    customers = Integer()


class RestSalesReport(Base):
    """Sales of a period."""

    total_sales = net_sales = average_sales = Text()
    total_orders = total_items = Integer()
    total_tax = total_shipping = Text()
    total_refunds = Number()
    total_discount = totals_grouped_by = Text()
    totals = ma.fields.Dict(values=ma.fields.Nested(RestSalesOfInterval), required=True)
    total_customers = Integer()
    _links = _links()


class RestTopSeller(Base):
    """Product of which many units were sold."""

    name = Text()
    product_id = quantity = Integer()
    _links = _links()


class RestCurrency(Base):
    """Currency."""

    code = name = symbol = Text()
    _links = _links()


class RestStatusEnvironment(Base):
    """Addresses and versions of the shop."""

    home_url = site_url = version = wp_version = Text()


class RestStatusSettings(Base):
    """Settings of the shop."""

    currency = Text()


class RestSystemStatusTool(Base):
    """Tool."""

    id = name = action = description = Text()


class RestAbsentRecord(Base):
    """Record that this service does not have."""

    id = Integer()


class RestSystemStatus(Base):
    """What programs check before they begin."""

    environment = One(RestStatusEnvironment)
    settings = One(RestStatusSettings)


class RestApiErrorData(Base):
    """Status of an error, and what else is known about it."""

    class Meta(Base.Meta):
        """Further fields are allowed."""

        unknown = ma.INCLUDE

    status = Integer()


class RestApiError(Base):
    """Error."""

    code = message = Text()
    data = One(RestApiErrorData)


def name_of(schema: type[Base]) -> str:
    """Return the name of a schema in the document."""
    return schema.__name__.removeprefix("Rest")


def resolved(schema: type[Base]) -> Object:
    """Return the JSON Schema of an object without references, for OPTIONS."""
    plugin: Any = MarshmallowPlugin(schema_name_resolver=lambda _: "")
    APISpec("", "", "3.1.0", plugins=[plugin])
    described = plugin.converter.schema2jsonschema(schema)
    return {"$schema": _DRAFT, "title": name_of(schema), **described}


def batch_schema() -> Object:
    """Return the schema of a batch, for OPTIONS. Each kind of record has its own items."""
    lists = {"create": "object", "update": "object", "delete": "integer"}
    properties = {name: {"type": "array", "items": {"type": kind}} for name, kind in lists.items()}
    return {"$schema": _DRAFT, "title": "batch", "type": "object", "properties": properties}
