"""The OpenAPI document of this dialect, made from its routes and their schemas (wc-v3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import marshmallow as ma
from apispec import APISpec
from flask import current_app

from app.api.openapi import info as openapi_info
from app.api.openapi.fields import FieldPlugin
from app.config import VERSION
from app.plugins.woocommerce.rest.operations import Operation, Route
from app.plugins.woocommerce.rest.schemas import Field, RestApiError, name_of
from app.plugins.woocommerce.rest.site import Object
from app.schemas.base import Base, made_schema

_INTRODUCTION = (
    "Coupons, customers, orders, notes, refunds, webhooks and reports in the dialect of the REST "
    "API of WooCommerce, version 3. Programs for WooCommerce work without changes."
)
_TAGS = {
    "coupons": "Coupons",
    "customers": "Customers and their downloads",
    "orders": "Orders, their notes and their refunds",
    "webhooks": "Webhooks",
    "reports": "Reports",
    "system": "Connection checks",
}
_OF_PATHS = {"refunds": "orders"}
_VERBS = {"GET": "get", "POST": "post", "EDIT": "put", "DELETE": "delete"}
_VARIABLE = re.compile(r"<id:(\w+)>")
_HEADERS = {
    "X-WP-Total": ("Number of records on all pages.", "integer"),
    "X-WP-TotalPages": ("Number of pages.", "integer"),
    "X-WP-Total-Complete": ("`false` if more records can match than were counted.", "string"),
    "Link": ("Addresses of the previous and of the next page.", "string"),
}
_FIELDS = {
    "name": "_fields",
    "in": "query",
    "description": "Only these fields, separated by commas.",
    "schema": {"type": "string"},
}


class _Plugin(FieldPlugin):
    """Names the schemas of this dialect."""

    def _name(self, schema: object) -> str:
        return name_of(schema if isinstance(schema, type) else type(schema))


def document(routes: Sequence[Route]) -> Object:
    """Return the document of routes, without the address of the shop."""
    config, by_path = current_app.config, {route.path: route for route in routes}
    spec = APISpec(
        f"{config['SHOP_NAME']}, wc/v3",
        VERSION,
        config["SHOP_OPENAPI_VERSION"],
        [_Plugin({})],
        info=openapi_info.info(config, _INTRODUCTION),
        security=[{"basicAuth": []}],
    )
    spec.components.security_scheme("basicAuth", {"type": "http", "scheme": "basic"})
    for route in routes:
        operations = {
            _VERBS[name]: _operation(by_path, route, name, operation)
            for name, operation in route.operations.items()
        }
        variables = [
            {"name": each, "in": "path", "required": True, "schema": {"type": "integer"}}
            for each in _VARIABLE.findall(route.path)
        ]
        path = _VARIABLE.sub(r"{\1}", route.path)
        spec.path(path, operations=operations, parameters=variables)
    for name, meaning in _TAGS.items():
        spec.tag({"name": name, "description": meaning})
    found: Object = spec.to_dict()
    return found


def _operation(
    routes: Mapping[str, Route], route: Route, name: str, operation: Operation
) -> Object:
    tag = _OF_PATHS.get(route.resource, route.resource)
    found: Object = {
        "operationId": _identifier(operation),
        "summary": operation.summary,
        "description": f"{operation.summary}.",
        "tags": [tag if tag in _TAGS else "system"],
    }
    if name in {"GET", "DELETE"}:
        own = [{"in": "query", "schema": operation.args}]
        found["parameters"] = [*own, _FIELDS] if name == "GET" else own
    else:
        body = _batch(routes, route) if operation.action == "batch" else _body(operation)
        found["requestBody"] = {"required": True, **_content(body)}
    found["responses"] = _responses(operation)
    return found


def _identifier(operation: Operation) -> str:
    """Return the name of an operation, such as ``listCoupons``."""
    first, *others = (operation.name or operation.call.__name__).split("_")
    return first + "".join(map(str.title, others))


def _content(schema: object) -> Object:
    return {"content": {"application/json": {"schema": schema}}}


def _responses(operation: Operation) -> Object:
    item: Any = operation.result
    if operation.action == "batch":
        name = f"{name_of(item)}Batch"
        meaning = "Record, or its ID and why it failed."
        own = made_schema(f"{name}Item", meaning, {}, _BatchItem, item)
        item = _lists(f"{name}Result", "Results by list, in the order of its items.", [own] * 3)
    elif operation.is_list:
        item = {"type": "array", "items": item}
    success = {"description": "The result.", **_content(item)}
    if "per_page" in operation.args.fields:
        success["headers"] = {
            name: {"description": text, "schema": {"type": kind}}
            for name, (text, kind) in _HEADERS.items()
        }
    failure = {"description": "An error.", **_content(RestApiError)}
    return {str(operation.status): success, "default": failure}


class _BatchItem(Base):
    error = ma.fields.Nested(RestApiError)

    def on_bind_field(self, field_name: str, field_obj: Field) -> None:
        """Require only the ID."""
        field_obj.required = field_name == "id"


def _body(operation: Operation) -> Base:
    """Return the schema of a body, without the ID of a new record, which must be empty."""
    return type(operation.args)(exclude={"id"} & operation.args.fields.keys())


def _batch(routes: Mapping[str, Route], route: Route) -> type[Base]:
    """Return the schema of the body of a batch."""
    parent = route.path.removesuffix("/batch")
    create = _body(routes[parent].operations["POST"])
    update = type(routes[f"{parent}/<id:id>"].operations["EDIT"].args)
    name = update.__name__.replace("Update", "Batch")
    meaning, identifier = "Changes of the record with an ID.", ma.fields.Integer(required=True)
    item = made_schema(f"{name}Update", meaning, {"id": identifier}, update)
    return _lists(name, "Records to create, to change and to delete.", [create, item, int])


def _lists(name: str, meaning: str, items: Sequence[Any]) -> type[Base]:
    """Return the schema of an object with a list for each action of a batch."""
    inner = [ma.fields.Nested(each) if each is not int else ma.fields.Integer() for each in items]
    lists = zip(("create", "update", "delete"), map(ma.fields.List, inner), strict=True)
    return made_schema(name, meaning, dict(lists))
