"""The OpenAPI document of this dialect, made from its routes, arguments and schemas (wc-v3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apispec import APISpec
from flask import current_app

from app.api.openapi import info as openapi_info
from app.api.openapi.fields import FieldPlugin, as_version
from app.config import VERSION
from app.plugins.woocommerce.rest.arguments import Arguments, Schema, enum_of
from app.plugins.woocommerce.rest.frame import Operation, Route
from app.plugins.woocommerce.rest.schemas import RestApiError, name_of
from app.plugins.woocommerce.rest.site import Object
from app.schemas.base import Base

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
_OF_PATHS = {
    "refunds": "orders",
    **dict.fromkeys(
        ("system_status", "data", "products", "taxes", "shipping", "payment_gateways"), "system"
    ),
}
_VERBS = {"GET": "get", "POST": "post", "EDIT": "put", "DELETE": "delete"}
_NOUNS = {
    "meta_data": "MetadataCreate",
    "billing": "BillingCreate",
    "shipping": "ShippingCreate",
    "line_items": "LineItemCreate",
    "shipping_lines": "ShippingLineCreate",
    "fee_lines": "FeeLineCreate",
    "coupon_lines": "CouponLineCreate",
    "refund_tax": "RefundTaxCreate",
}
"""Names of the objects in requests, by their field."""
_ACTIONS = ("create", "update", "delete")
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


class _Document:
    """The document of a shop, and the components that its operations need."""

    def __init__(self) -> None:
        config, plugin = current_app.config, _Plugin({})
        self.spec = APISpec(
            f"{config['SHOP_NAME']}, wc/v3",
            VERSION,
            config["SHOP_OPENAPI_VERSION"],
            [plugin],
            info=openapi_info.info(config, _INTRODUCTION),
            security=[{"basicAuth": []}],
        )
        self.spec.components.security_scheme("basicAuth", {"type": "http", "scheme": "basic"})
        self.use: Any = plugin.converter.resolve_nested_schema  # type: ignore[union-attr] # set now
        # The noun of the operation and what it does, for the names of its own schemas.
        self.owner = ("", "")

    def add(self, name: str, schema: Object) -> Object:
        """Return the reference to a schema of a request; a different one gets another name."""
        known, (noun, action) = self.spec.components.schemas, self.owner
        for candidate in (name, f"{noun}{name}", f"{noun}{action}{name}"):
            if known.get(candidate, schema) == schema:
                break
        if candidate not in known:
            self.spec.components.schema(candidate, schema)
        return {"$ref": f"#/components/schemas/{candidate}"}

    # --- requests ---

    def body(self, name: str, arguments: Arguments) -> Object:
        """Return the reference to the body of a request."""
        self.owner = (re.sub("(Create|Update)$", "", name), name[-6:])
        required = [field for field, each in arguments.items() if each.get("required")]
        schema: Object = {"type": "object", "properties": dict(self._properties(arguments))}
        return self.add(name, schema | ({"required": required} if required else {}))

    def _properties(self, arguments: Arguments) -> Iterator[tuple[str, Object]]:
        for field, each in arguments.items():
            if each != {} or field != "id":  # of a create, where it must be empty
                yield field, self.input(field, each)

    def input(self, field: str, schema: Schema) -> Object:
        """Return the schema of an input. Amounts are described as text."""
        kinds = schema.get("type", ())
        kind = kinds if isinstance(kinds, str) else next((k for k in kinds if k != "null"), "")
        if schema.get("format") in {"money", "report-date"} or "string" in kinds:
            kind = "string"
        if not kind:
            return {}
        if kind == "array":
            return {"type": "array", "items": self.input(field, schema.get("items", {}))}
        if kind == "object" and "properties" in schema:
            inner = dict(self._properties(schema["properties"]))
            return self.add(_NOUNS[field], {"type": "object", "properties": inner})
        known = ("minimum", "maximum", "maxLength", "default")
        is_nullable = "null" in kinds or schema.get("is_nullable")
        found: Object = {"type": [kind, "null"] if is_nullable else kind}
        found |= {key: schema[key] for key in known if key in schema}
        if schema.get("format") == "email":
            found["format"] = "email"
        found = as_version(found, str(self.spec.openapi_version))
        if not schema.get("enum"):
            return found
        found["enum"] = [str(value) for value in enum_of(schema)]
        if field == "order":
            return self.add("SortDirection", found)
        noun = "".join(self.owner) if self.owner[1] == "List" else self.owner[0]
        return self.add(f"{noun}{field.title().replace('_', '')}", found)

    def parameters(self, noun: str, arguments: Arguments) -> list[Object]:
        """Return the query parameters of an operation."""
        found, self.owner = [], (noun, "List")
        for name, each in arguments.items():
            if name == "context":
                continue
            parameter: Object = {"name": name, "in": "query", "schema": self.input(name, each)}
            if each.get("type") == "array":
                parameter |= {"style": "form", "explode": False}
                parameter["schema"].pop("default", None)
            found.append(parameter)
        return found

    def batch(self, noun: str, create: Operation, update: Operation) -> Object:
        """Return the reference to the body of a batch."""
        created = self.body(f"{noun}Create", create.args)
        changed = self.body(f"{noun}Update", update.args)["$ref"].rpartition("/")[2]
        fields = self.spec.components.schemas[changed]["properties"]
        own = {"type": "object", "properties": {"id": {"type": "integer"}, **fields}}
        item = self.add(f"{noun}BatchUpdate", {**own, "required": ["id"]})
        lists = dict(zip(_ACTIONS, (created, item, {"type": "integer"}), strict=True))
        return self.add(f"{noun}Batch", _lists(lists))

    # --- responses ---

    def responses(self, operation: Operation) -> Object:
        """Return the responses of an operation."""
        item: Any = operation.result
        if operation.action == "batch":
            item = self._batch_result(item)
        elif operation.is_list:
            item = {"type": "array", "items": item}
        success = _response("The result.", item)
        if "per_page" in operation.args:
            success["headers"] = {
                name: {"description": text, "schema": {"type": kind}}
                for name, (text, kind) in _HEADERS.items()
            }
        return {str(operation.status): success, "default": _response("An error.", RestApiError)}

    def _batch_result(self, record: type[Base]) -> Object:
        noun = self.use(record)["$ref"].rpartition("/")[2]
        fields = self.spec.components.schemas[noun]["properties"] | {
            "error": self.use(RestApiError)
        }
        item = self.add(
            f"{noun}BatchItem", {"type": "object", "properties": fields, "required": ["id"]}
        )
        return self.add(f"{noun}BatchResult", _lists(dict.fromkeys(_ACTIONS, item)))


def _response(meaning: str, schema: object) -> Object:
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def _lists(items: Mapping[str, Object]) -> Object:
    lists = {name: {"type": "array", "items": each} for name, each in items.items()}
    return {"type": "object", "properties": lists}


def document(routes: Sequence[Route]) -> Object:
    """Return the document of routes, without the address of the shop."""
    made, by_path = _Document(), {route.path: route for route in routes}
    tags = set()
    for route in routes:
        operations = {
            _VERBS[name]: _operation(made, by_path, route, name, operation)
            for name, operation in route.operations.items()
        }
        tags |= {each["tags"][0] for each in operations.values()}
        variables = [
            {"name": each, "in": "path", "required": True, "schema": {"type": "integer"}}
            for each in _VARIABLE.findall(route.path)
        ]
        path = _VARIABLE.sub(r"{\1}", route.path)
        made.spec.path(path, operations=operations, parameters=variables)
    for name, meaning in _TAGS.items():
        if name in tags:
            made.spec.tag({"name": name, "description": meaning})
    found: Object = made.spec.to_dict()
    return found


def _operation(
    made: _Document, routes: Mapping[str, Route], route: Route, name: str, operation: Operation
) -> Object:
    segment, result = route.resource, name_of(operation.result or Base)
    found: Object = {
        "operationId": _identifier(operation),
        "summary": operation.summary,
        "description": f"{operation.summary}.",
        "tags": [_OF_PATHS.get(segment, segment)],
    }
    if name in {"GET", "DELETE"}:
        own = made.parameters(result, operation.args)
        found["parameters"] = [*own, _FIELDS] if name == "GET" else own
    else:
        if operation.action == "batch":
            parent = route.path.removesuffix("/batch")
            create = routes[parent].operations["POST"]
            update = routes[f"{parent}/<id:id>"].operations["EDIT"]
            body = made.batch(result, create, update)
        else:
            kind = "Create" if name == "POST" else "Update"
            body = made.body(f"{result}{kind}", operation.args)
        content = {"application/json": {"schema": body}}
        found["requestBody"] = {"required": True, "content": content}
    found["responses"] = made.responses(operation)
    return found


def _identifier(operation: Operation) -> str:
    """Return the name of an operation, such as ``listCoupons``."""
    first, *others = (operation.name or operation.call.__name__).split("_")
    return first + "".join(map(str.title, others))
