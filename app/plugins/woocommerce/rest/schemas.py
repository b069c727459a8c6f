"""Schemas of the objects of this dialect, for OPTIONS and the OpenAPI document (wc-v3, OpenAPI).

Each has its fields in the order of responses. A type is ``s`` (text), ``i`` (integer), ``n``
(number), ``b`` (boolean), ``any``, or the name of another schema. ``?`` means that the field can be
null, ``[…]`` is a list, ``{…}`` a map, and a hyphen before the name a field that can be absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

Json = dict[str, Any]

_DATES = "date_created:s date_created_gmt:s date_modified:s date_modified_gmt:s"
_NAME = "first_name:s last_name:s company:s address_1:s address_2:s city:s"
_LINE = "total:s total_tax:s taxes:[ItemTax]"

OBJECTS: Mapping[str, str] = {
    "Link": "href:s -targetHints:TargetHints",
    "TargetHints": "allow:[s]",
    "Metadata": "id:i key:s value:any",
    "ItemMetadata": "id:i key:s value:any display_key:any display_value:any",
    "Billing": f"{_NAME} state:s postcode:s country:s email:s phone:s",
    "Shipping": f"{_NAME} state:s postcode:s country:s phone:s",
    "Coupon": f"""id:i code:s amount:s status:s {_DATES} discount_type:s description:s
        date_expires:s? date_expires_gmt:s? usage_count:i individual_use:b product_ids:[i]
        excluded_product_ids:[i] usage_limit:i? usage_limit_per_user:i?
        limit_usage_to_x_items:i? free_shipping:b
        product_categories:[i] excluded_product_categories:[i] exclude_sale_items:b
        minimum_amount:s maximum_amount:s email_restrictions:[s] used_by:[s] meta_data:[Metadata]
        _links:{{Links}}""",
    "LastOrder": "id:i date:s",
    "Customer": f"""id:i {_DATES} email:s first_name:s last_name:s role:s username:s billing:Billing
        shipping:Shipping is_paying_customer:b avatar_url:s meta_data:[Metadata] orders_count:i
        total_spent:s last_order:LastOrder? _links:{{Links}}""",
    "OrderCustomer": """id:i -date_created:s -date_created_gmt:s -date_modified:s
        -date_modified_gmt:s email:s first_name:s last_name:s -role:s -username:s billing:Billing
        shipping:Shipping -is_paying_customer:b -avatar_url:s -meta_data:[Metadata] -orders_count:i
        -total_spent:s -last_order:LastOrder?""",
    "ItemTax": "id:i total:s subtotal:s",
    "Image": "id:any src:s",
    "LineItem": """id:i name:s product_id:i variation_id:i quantity:i tax_class:s subtotal:s
        subtotal_tax:s total:s total_tax:s taxes:[ItemTax] meta_data:[ItemMetadata] sku:s?
        global_unique_id:s? price:n image:Image parent_name:s?""",
    "TaxLine": """id:i rate_code:s rate_id:i label:s compound:b tax_total:s shipping_tax_total:s
        rate_percent:n meta_data:[ItemMetadata]""",
    "ShippingLine": f"""id:i method_title:s method_id:s instance_id:s {_LINE} tax_status:s
        meta_data:[ItemMetadata]""",
    "FeeLine": f"""id:i name:s tax_class:s tax_status:s amount:s {_LINE}
        meta_data:[ItemMetadata]""",
    "CouponLine": """id:i code:s discount:s discount_tax:s meta_data:[ItemMetadata]
        discount_type:s nominal_amount:n free_shipping:b""",
    "OrderRefund": "id:i reason:s total:s",
    "Order": """id:i parent_id:i status:s currency:s version:s prices_include_tax:b date_created:s
        date_modified:s discount_total:s discount_tax:s shipping_total:s shipping_tax:s cart_tax:s
        total:s total_tax:s customer_id:i order_key:s billing:Billing shipping:Shipping
        payment_method:s payment_method_title:s transaction_id:s customer_ip_address:s
        customer_user_agent:s created_via:s customer_note:s date_completed:s? date_paid:s?
        cart_hash:s number:s meta_data:[Metadata] line_items:[LineItem] tax_lines:[TaxLine]
        shipping_lines:[ShippingLine] fee_lines:[FeeLine] coupon_lines:[CouponLine]
        refunds:[OrderRefund] payment_url:s is_editable:b needs_payment:b needs_processing:b
        date_created_gmt:s date_modified_gmt:s date_completed_gmt:s? date_paid_gmt:s?
        currency_symbol:s -customer:OrderCustomer _links:{Links}""",
    "OrderStatusName": "slug:s name:s",
    "OrderNote": """id:i author:s date_created:s date_created_gmt:s note:s customer_note:b
        _links:{Links}""",
    "Refund": """id:i -parent_id:i date_created:s date_created_gmt:s amount:s reason:s refunded_by:i
        refunded_payment:b meta_data:[Metadata] line_items:[LineItem]
        shipping_lines:[ShippingLine] tax_lines:[TaxLine] fee_lines:[FeeLine] _links:{Links}""",
    "DownloadFile": "name:s file:s",
    "Download": """download_id:s download_url:s product_id:i product_name:s download_name:s
        order_id:i order_key:s downloads_remaining:s access_expires:s access_expires_gmt:s
        file:DownloadFile _links:{Links}""",
    "Webhook": """id:i name:s status:s topic:s resource:s event:s hooks:[s] delivery_url:s
        date_created:s date_created_gmt:s date_modified:s? date_modified_gmt:s? _links:{Links}""",
    "Report": "slug:s description:s _links:{Links}",
    "ReportTotal": "slug:s name:s total:i",
    "SalesOfInterval": "sales:s orders:i items:i tax:s shipping:s discount:s customers:i",
    "SalesReport": """total_sales:s net_sales:s average_sales:s total_orders:i total_items:i
        total_tax:s total_shipping:s total_refunds:n total_discount:s totals_grouped_by:s
        totals:{SalesOfInterval} total_customers:i _links:{Links}""",
    "TopSeller": "name:s product_id:i quantity:i _links:{Links}",
    "Currency": "code:s name:s symbol:s _links:{Links}",
    "StatusEnvironment": "home_url:s site_url:s version:s wp_version:s",
    "StatusSettings": "currency:s",
    "SystemStatus": "environment:StatusEnvironment settings:StatusSettings",
    "SystemStatusTool": "id:s name:s action:s description:s",
    "AbsentRecord": "id:i",
    "ApiErrorData": "status:i",
    "ApiError": "code:s message:s data:ApiErrorData",
}

_FIELD = re.compile(r"(-?)(\w+):([\[{]?)(\w+)[\]}]?(\??)")
_DRAFT = "http://json-schema.org/draft-04/schema#"
_TYPES = {"s": "string", "i": "integer", "n": "number", "b": "boolean"}


@cache
def names_of(name: str) -> tuple[str, ...]:
    """Return the names of the fields of an object, in the order of responses."""
    return tuple(field for _, field, *_ in _FIELD.findall(OBJECTS[name]))


@cache
def schema_of(name: str) -> Json:
    """Return the schema of an object. Other objects in it are references."""
    properties: Json = {}
    required = []
    for absent, field, many, kind, null in _FIELD.findall(OBJECTS[name]):
        value: Json = {"type": _TYPES[kind]} if kind in _TYPES else _reference(kind)
        if null:
            value = _nullable(value)
        if many == "[":
            value = {"type": "array", "items": value}
        elif many == "{":
            value = {"type": "object", "additionalProperties": value}
        properties[field] = value
        if not absent:
            required.append(field)
    found: Json = {"type": "object", "properties": properties, "required": required}
    if name == "ApiErrorData":
        found["additionalProperties"] = True
    return found


def _reference(kind: str) -> Json:
    if kind == "any":
        return {}
    if kind == "Links":
        return {"type": "array", "items": {"$ref": "#/components/schemas/Link"}}
    return {"$ref": f"#/components/schemas/{kind}"}


def _nullable(value: Json) -> Json:
    if "$ref" in value:
        return {"anyOf": [value, {"type": "null"}]}
    return {"type": [value["type"], "null"]}


def resolved(name: str) -> Json:
    """Return the schema of an object without references, for OPTIONS."""

    def inner(value: Any) -> Any:
        if isinstance(value, list):
            return [inner(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return inner(schema_of(value["$ref"].rpartition("/")[2]))
        return {key: inner(each) for key, each in value.items()}

    found: Json = inner(schema_of(name))
    return {"$schema": _DRAFT, "title": name, **found}


def batch_schema() -> Json:
    """Return the schema of a batch, for OPTIONS. Each kind of record has its own items."""
    lists = {"create": "object", "update": "object", "delete": "integer"}
    properties = {name: {"type": "array", "items": {"type": kind}} for name, kind in lists.items()}
    return {"$schema": _DRAFT, "title": "batch", "type": "object", "properties": properties}
