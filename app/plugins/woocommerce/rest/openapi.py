"""The OpenAPI document of this dialect, made from its routes, arguments and schemas (wc-v3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask import current_app

from app.api.openapi import info as openapi_info
from app.config import VERSION
from app.plugins.woocommerce.rest.arguments import Arguments, Schema, enum_of
from app.plugins.woocommerce.rest.frame import Operation, Route
from app.plugins.woocommerce.rest.schemas import OBJECTS, Json, schema_of
from app.plugins.woocommerce.rest.site import Site

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
_VARIABLE = re.compile(r"<id:(\w+)>")
_HEADERS = {
    "X-WP-Total": ("Number of records on all pages.", "integer"),
    "X-WP-TotalPages": ("Number of pages.", "integer"),
    "Link": ("Addresses of the previous and of the next page.", "string"),
}
_FIELDS = {
    "name": "_fields",
    "in": "query",
    "description": "Only these fields, separated by commas.",
    "schema": {"type": "string"},
}


class _Document:
    """The components that the operations of a document need."""

    def __init__(self) -> None:
        self.schemas: Json = {}  # by name
        # The noun of the operation and what it does, for the names of its own schemas.
        self.owner = ("", "")

    def use(self, name: str) -> Json:
        """Return the reference to the schema of a response."""
        if name not in self.schemas:
            self.schemas[name] = schema_of(name)
            for other in re.findall(r"'#/components/schemas/(\w+)'", str(self.schemas[name])):
                self.use(other)
        return {"$ref": f"#/components/schemas/{name}"}

    def add(self, name: str, schema: Json) -> Json:
        """Return the reference to a schema of a request; a different one gets another name."""
        noun, action = self.owner
        for candidate in (name, f"{noun}{name}", f"{noun}{action}{name}"):
            if candidate not in OBJECTS and self.schemas.get(candidate, schema) == schema:
                break
        self.schemas[candidate] = schema
        return {"$ref": f"#/components/schemas/{candidate}"}

    # --- requests ---

    def body(self, name: str, arguments: Arguments) -> Json:
        """Return the reference to the body of a request."""
        self.owner = (re.sub("(Create|Update)$", "", name), name[-6:])
        required = [field for field, each in arguments.items() if each.get("required")]
        schema: Json = {"type": "object", "properties": dict(self._properties(arguments))}
        return self.add(name, schema | ({"required": required} if required else {}))

    def _properties(self, arguments: Arguments) -> Iterator[tuple[str, Json]]:
        for field, each in arguments.items():
            if each != {} or field != "id":  # of a create, where it must be empty
                yield field, self.input(field, each)

    def input(self, field: str, schema: Schema) -> Json:
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
        found: Json = {"type": [kind, "null"] if is_nullable else kind}
        found |= {key: schema[key] for key in known if key in schema}
        if schema.get("format") == "email":
            found["format"] = "email"
        if not schema.get("enum"):
            return found
        found["enum"] = [str(value) for value in enum_of(schema)]
        if field == "order":
            return self.add("SortDirection", found)
        noun = "".join(self.owner) if self.owner[1] == "List" else self.owner[0]
        return self.add(f"{noun}{field.title().replace('_', '')}", found)

    def parameters(self, noun: str, arguments: Arguments) -> list[Json]:
        """Return the query parameters of an operation."""
        found, self.owner = [], (noun, "List")
        for name, each in arguments.items():
            if name == "context":
                continue
            parameter: Json = {"name": name, "in": "query", "schema": self.input(name, each)}
            if each.get("type") == "array":
                parameter |= {"style": "form", "explode": False}
                parameter["schema"].pop("default", None)
            found.append(parameter)
        return found

    # --- responses ---

    def responses(self, operation: Operation) -> Json:
        """Return the responses of an operation."""
        schema = self._result(operation)
        success: Json = {
            "description": "The result.",
            "content": {"application/json": {"schema": schema}},
        }
        if "per_page" in operation.args:
            success["headers"] = {
                name: {"description": text, "schema": {"type": kind}}
                for name, (text, kind) in _HEADERS.items()
            }
        failure = {
            "description": "An error.",
            "content": {"application/json": {"schema": self.use("ApiError")}},
        }
        return {str(operation.status): success, "default": failure}

    def _result(self, operation: Operation) -> Json:
        if operation.action == "batch":
            return self._batch_result(operation.result.removesuffix("Batch"))
        item = self.use(operation.result)
        return {"type": "array", "items": item} if operation.is_list else item

    def _batch_result(self, noun: str) -> Json:
        self.use("ApiError")
        error = {"$ref": "#/components/schemas/ApiError"}
        self.use(noun)
        fields = {**schema_of(noun)["properties"], "error": error}
        item = self.add(
            f"{noun}BatchItem", {"type": "object", "properties": fields, "required": ["id"]}
        )
        items = {name: {"type": "array", "items": item} for name in ("create", "update", "delete")}
        return self.add(f"{noun}BatchResult", {"type": "object", "properties": items})

    def batch(self, noun: str, create: Operation, update: Operation) -> Json:
        """Return the reference to the body of a batch."""
        created = self.body(f"{noun}Create", create.args)
        changed = self.body(f"{noun}Update", update.args)
        fields = self.schemas[changed["$ref"].rpartition("/")[2]]["properties"]
        update_item = self.add(
            f"{noun}BatchUpdate",
            {
                "type": "object",
                "properties": {"id": {"type": "integer"}, **fields},
                "required": ["id"],
            },
        )
        lists = {"create": created, "update": update_item, "delete": {"type": "integer"}}
        properties = {name: {"type": "array", "items": each} for name, each in lists.items()}
        return self.add(f"{noun}Batch", {"type": "object", "properties": properties})


def document(routes: Sequence[Route], site: Site) -> Json:
    """Return the document of the routes of a shop."""
    made, paths = _Document(), {}
    by_path = {route.path: route for route in routes}
    for route in routes:
        path = _VARIABLE.sub(r"{\1}", route.path)
        described: Json = {
            _VERBS[name]: _operation(made, by_path, route, name, operation)
            for name, operation in route.operations.items()
        }
        if names := _VARIABLE.findall(route.path):
            described["parameters"] = [
                {"name": each, "in": "path", "required": True, "schema": {"type": "integer"}}
                for each in names
            ]
        paths[path] = described
    used = {each["tags"][0] for item in paths.values() for each in item.values() if "tags" in each}
    config = current_app.config
    about = openapi_info.info(config, _INTRODUCTION)
    version = config["SHOP_OPENAPI_VERSION"]
    shown: Json = {
        "openapi": version,
        "info": {"title": f"{config['SHOP_NAME']}, wc/v3", "version": VERSION, **about},
        "servers": [{"url": site.root}],
        "tags": [{"name": n, "description": t} for n, t in _TAGS.items() if n in used],
        "security": [{"basicAuth": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(made.schemas.items())),
            "securitySchemes": {"basicAuth": {"type": "http", "scheme": "basic"}},
        },
    }
    return in_openapi_30(shown) if version.startswith("3.0") else shown


def in_openapi_30(value: Any) -> Any:
    """Return a part of a document with null in the words of OpenAPI 3.0."""
    if isinstance(value, list):
        return [in_openapi_30(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: in_openapi_30(each) for name, each in value.items()}
    if isinstance(kinds := value.get("type"), list):
        return {**found, "type": next(k for k in kinds if k != "null"), "nullable": True}
    if "anyOf" in value:  # a reference or null
        return {"allOf": found["anyOf"][:1], "nullable": True}
    return found


def _operation(
    made: _Document, routes: Mapping[str, Route], route: Route, name: str, operation: Operation
) -> Json:
    segment = route.resource
    found: Json = {
        "operationId": _identifier(operation),
        "summary": operation.summary,
        "description": f"{operation.summary}.",
        "tags": [_OF_PATHS.get(segment, segment)],
    }
    if name in {"GET", "DELETE"}:
        own = made.parameters(operation.result, operation.args)
        found["parameters"] = [*own, _FIELDS] if name == "GET" else own
    else:
        if operation.action == "batch":
            parent = route.path.removesuffix("/batch")
            create = routes[parent].operations["POST"]
            update = routes[f"{parent}/<id:id>"].operations["EDIT"]
            body = made.batch(create.result, create, update)
        else:
            kind = "Create" if name == "POST" else "Update"
            body = made.body(f"{operation.result}{kind}", operation.args)
        content = {"application/json": {"schema": body}}
        found["requestBody"] = {"required": True, "content": content}
    found["responses"] = made.responses(operation)
    return found


def _identifier(operation: Operation) -> str:
    """Return the name of an operation, such as ``listCoupons``."""
    first, *others = (operation.name or operation.call.__name__).split("_")
    return first + "".join(map(str.title, others))
