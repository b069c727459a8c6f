"""The OpenAPI document beside what schemas say: headers, errors, versions, what plugins added."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import marshmallow as ma
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask_smorest.spec.plugins import FlaskPlugin
from werkzeug.routing import Rule

from app.api.versions import ApiVersion
from app.errors import ERRORS
from app.plugins import Registry
from app.schemas.fields import Lines, either
from app.schemas.inputs import Input
from app.schemas.kinds import KNOWN, Schema

Document = dict[str, Any]
Schemas = Mapping[type[ma.Schema], type[ma.Schema]]

HEADERS: dict[str, Document] = {
    "X-Request-Id": {
        "description": "Names the request in the logs: the caller's own `X-Request-Id` when it has "
        "1 to 128 characters of `A-Za-z0-9._-`, else a new one.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    },
    "X-Total": {
        "description": "How many records match, on all pages.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-TotalPages": {
        "description": "How many pages they fill.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "Link": {
        "description": "RFC 8288: the `first`, `prev`, `next` and `last` page, as they apply.",
        "schema": {"type": "string"},
    },
    "ETag": {
        "description": "RFC 9110: names this state of the answer; it changes with anything in it.",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
    },
    "Idempotent-Replayed": {
        "description": "This is the answer to an earlier request with the same `Idempotency-Key`.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before another attempt.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "How to send credentials; with `shop_api_authentication_error`. A "
        "page's own script gets none, so that the browser shows no login prompt.",
        "schema": {"type": "string"},
    },
}


SECURITY_SCHEMES: dict[str, Document] = {
    "basicAuth": {
        "type": "http",
        "scheme": "basic",
        "description": "Consumer key as user name, consumer secret as password.",
    },
    "consumerKey": {
        "type": "apiKey",
        "in": "query",
        "name": "consumer_key",
        "description": "With `consumer_secret`; over TLS only. OAuth 1.0a signatures, of which "
        "OpenAPI knows nothing, are accepted instead.",
    },
    "consumerSecret": {"type": "apiKey", "in": "query", "name": "consumer_secret"},
}


def security(api_version: ApiVersion) -> list[dict[str, list[str]]]:
    """Return the ways in which a request can say who sent it: one of them is enough."""
    basic: dict[str, list[str]] = {"basicAuth": []}
    return (
        [basic, {"consumerKey": [], "consumerSecret": []}] if api_version.key_in_query else [basic]
    )


def references(*names: str) -> Document:
    """Return headers of HEADERS as an answer refers to them."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


ALWAYS = references("X-Request-Id")
PAGE_HEADERS = references("X-Total", "X-TotalPages", "Link")
_HEADERS_OF_STATUS = {
    401: references("WWW-Authenticate"),
    429: references("Retry-After"),
    503: references("Retry-After"),
}


def describe_errors(responses: Document, codes: Iterable[tuple[str, int]]) -> None:
    """Add to the responses of an operation the codes that it can answer, each with an example."""
    for key in [key for key, response in responses.items() if isinstance(response, str)]:
        del responses[key]  # flask-smorest's answer to wrong input; ours has codes
    for code, status in codes:
        message = re.sub(r"\{\w+\}", "…", ERRORS[code][1])
        response = responses.setdefault(
            str(status),
            {
                "description": "",
                "headers": dict(_HEADERS_OF_STATUS.get(status, {})),
                "content": {
                    "application/json": {
                        "schema": {"$ref": "#/components/schemas/ErrorResponse"},
                        "examples": {},
                    }
                },
            },
        )
        response["description"] += f"`{code}`: {message}\n\n"
        example = {"errors": [{"code": code, "message": message}]}
        response["content"]["application/json"]["examples"][code] = {"value": example}
    for response in responses.values():
        response["headers"] = ALWAYS | response.get("headers", {})


def describe_known(document: Document, registry: Registry) -> None:
    """Write the coupon types and order statuses that plugins have made known by now."""
    for schema in list(_with_key(document, KNOWN)):
        known = schema.pop(KNOWN)
        names = list(getattr(registry, known))
        if "maxLength" in schema:  # a list of them in one text
            # A hyphen needs no escape, and JavaScript allows none.
            one = "|".join(re.escape(name).replace(r"\-", "-") for name in names)
            schema["pattern"] = rf"^[\s,]*(({one})\s*,[\s,]*)*(({one})\s*)?$"
        else:
            _refer(schema, document["components"]["schemas"], names, *_COMPONENTS[known])


_COMPONENTS = {
    "coupon_types": ("CouponType", "A coupon type that is known."),
    "order_statuses": ("OrderStatus", "An order status that is known."),
}


def _refer(
    schema: Document, components: Document, names: list[str], component: str, meaning: str
) -> None:
    """Write the known coupon types or order statuses into a schema.

    Where null is allowed, by reference: a generated client then has one type for them, where an
    enumeration with null in it would make three for each place.
    """
    null: Document = {"type": "object", "nullable": True, "enum": [None]}
    if "null" in schema["type"]:
        null = {"type": "null"}
    elif not schema.pop("nullable", False):
        schema["enum"] = names
        return
    components[component] = {"type": "string", "enum": names, "description": meaning}
    del schema["type"]
    schema["anyOf"] = [{"$ref": f"#/components/schemas/{component}"}, null]


def _with_key(part: Any, key: str) -> Iterator[Document]:
    if isinstance(part, dict):
        if key in part:
            yield part
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _with_key(inner, key)


def describe_dialect(document: Document, api_version: ApiVersion) -> None:
    """Write a dialect into a document: its names, its methods, and no longer its name."""
    for operations in document["paths"].values():
        if put := operations.get("put"):
            for method in api_version.methods(["PUT"])[1:]:
                again = deepcopy(put)
                again["operationId"] += method.title()
                operations.setdefault(method.lower(), again)
        for operation in operations.values():
            if isinstance(operation, dict):
                operation["tags"] = [_tag(name, api_version) for name in operation["tags"]]
    for tag in document.get("tags", ()):
        tag["name"] = _tag(tag["name"], api_version)
    _translate(document, api_version)


def _tag(name: str, api_version: ApiVersion) -> str:
    return name.removeprefix(f"{api_version.name}-")


def _translate(part: Any, api_version: ApiVersion) -> Any:
    """Return a part of a document with the names of a dialect; objects and lists in place."""
    if isinstance(part, str):
        return api_version.translate(part)
    if isinstance(part, list):
        part[:] = [_translate(inner, api_version) for inner in part]
    if isinstance(part, dict):
        items = [(api_version.translate(key), _translate(part[key], api_version)) for key in part]
        part.clear()
        part.update(items)
    return part


class Converter(OpenAPIConverter):
    """Lets our fields say what they are. Seam: ``MarshmallowPlugin.Converter``."""

    schemas: Schemas = MappingProxyType({})  # what takes the place of a schema

    def resolve_nested_schema(self, schema: Any) -> Any:
        """Return the document of a schema, or of the one that takes its place."""
        return super().resolve_nested_schema(_substitute(schema, self.schemas))  # type: ignore[no-untyped-call] # apispec's

    def schema2parameters(self, schema: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the parameters of a schema, or of the one that takes its place."""
        substitute = _substitute(schema, self.schemas)
        return super().schema2parameters(substitute, *args, **kwargs)

    def init_attribute_functions(self) -> None:
        """Ask our fields last."""
        super().init_attribute_functions()  # type: ignore[no-untyped-call] # apispec's
        self.add_attribute_function(_field_schema)  # type: ignore[no-untyped-call] # apispec's

    def field2nullable(self, field: ma.fields.Field[Any], ret: Document) -> Document:
        """Return how null is allowed; our fields say it themselves."""
        if isinstance(field, Input):
            return {}
        if field.allow_none and "$ref" in ret and self.openapi_version.minor < 1:
            null = {"type": "object", "nullable": True, "enum": [None]}
            return {"anyOf": [{"$ref": ret.pop("$ref")}, null]}
        nullable: Document = super().field2nullable(field, ret)
        return nullable


class FieldPlugin(MarshmallowPlugin):
    """Seam: ``marshmallow_plugin`` of flask-smorest."""

    Converter = Converter

    def __init__(self, schemas: Schemas) -> None:
        super().__init__()
        self._schemas = schemas

    def init_spec(self, spec: Any) -> None:
        """Make the converter of a document."""
        super().init_spec(spec)
        self.converter.schemas = self._schemas  # type: ignore[union-attr] # made by now


def _substitute(schema: Any, schemas: Schemas) -> Any:
    kind = schema if isinstance(schema, type) else type(schema)
    substitute = schemas.get(kind)
    return schema if substitute is None else substitute()


class PathPlugin(FlaskPlugin):
    """Seam: ``flask_plugin`` of flask-smorest."""

    def rule_to_params(self, rule: Rule) -> list[Document]:
        """Return the path parameters of a rule, described by what their schemas say."""
        parameters: list[Document] = super().rule_to_params(rule)
        for parameter in parameters:
            if meaning := parameter["schema"].pop("description", None):
                parameter["description"] = meaning
        return parameters


def _field_schema(
    converter: OpenAPIConverter,
    field: ma.fields.Field[Any],
    ret: Document,  # noqa: ARG001  # apispec's signature
) -> Document:
    """Return what our fields say of themselves. Seam: ``add_attribute_function``."""
    if isinstance(field, either):
        resolve: Callable[[Any], Any] = converter.resolve_nested_schema
        return {"anyOf": [resolve(schema) for schema in field.schemas]}
    if isinstance(field, Lines):
        return {"type": "array", "items": converter.resolve_nested_schema(field.line)}  # type: ignore[no-untyped-call] # apispec's
    schema = dict(getattr(field, "openapi", {}))
    if not schema:
        return schema
    if field.allow_none:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*dict.fromkeys([*kinds, "null"])]
    return as_version(schema, str(converter.openapi_version))


def as_version(schema: Schema, version: str) -> Document:
    """Return a JSON Schema as a version of OpenAPI writes it.

    Args:
        schema: as OpenAPI 3.1 has it, which is JSON Schema 2020-12.
        version: ``3.1.0``, or ``3.0.3``, which knows ``nullable`` and ``example`` instead of a type
            ``null`` and ``examples``, and one type only.
    """
    if not version.startswith("3.0"):
        return dict(schema)
    result = {key: value for key, value in schema.items() if key not in {"type", "examples"}}
    if "items" in schema:
        result["items"] = as_version(schema["items"], version)
    if examples := schema.get("examples"):
        result["example"] = examples[0]
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if bound in result:
            result |= {limit: result[bound], bound: True}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kinds = [kind for kind in types if kind != "null"]
    if len(kinds) == 1:
        result["type"] = kinds[0]
    else:
        branches = [{"type": kind} | _part_for(kind, result) for kind in kinds]
        used = {key for branch in branches for key in branch}
        result = {key: value for key, value in result.items() if key not in used}
        result["anyOf"] = branches
    if "null" in types:
        (result["anyOf"][0] if len(kinds) > 1 else result)["nullable"] = True
    return result


_OF_KIND: Mapping[str, frozenset[str]] = {
    "string": frozenset({"pattern", "format", "minLength", "maxLength"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
}


def _part_for(kind: str, schema: Document) -> Document:
    """Return the keywords that speak of one type."""
    keys = _OF_KIND.get("number" if kind == "integer" else kind, frozenset())
    return {key: value for key, value in schema.items() if key in keys}
