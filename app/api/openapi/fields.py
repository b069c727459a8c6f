"""Schemas and parameters in the OpenAPI document, converted from marshmallow fields."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import marshmallow as ma
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask_smorest.spec.plugins import FlaskPlugin
from werkzeug.routing import Rule

from app.api.openapi.document import Document
from app.schemas.fields.input import Input
from app.schemas.fields.json_schema import COMPONENT, Schema
from app.schemas.fields.output import Lines, OptionalObject, either
from app.schemas.fields.query import QueryField

Field = ma.fields.Field[object]
Schemas = Mapping[type[ma.Schema], type[ma.Schema]]

_CITATION = re.compile(r" \((?:spec|decisions|orders|redemptions|events|migration) [^)]*\)")

_NULL_30: Document = {"type": "object", "nullable": True, "enum": [None]}
"""The schema of null in OpenAPI 3.0."""

_PATH_PARAMETERS: dict[str, tuple[str, object]] = {
    "coupon_id": ("Coupon ID.", 1),
    "code": ("Coupon code, in any letter case.", "demo-percent"),
    "customer_id": ("Customer (user) ID.", 2),
    "email": ("E-mail address of the account, in any letter case.", "grace@example.com"),
    "order_id": ("Order ID.", 1),
    "batch_id": ("Batch ID.", 1),
    "note_id": ("Note ID.", 1),
    "refund_id": ("Refund ID.", 1),
    "redemption_id": ("Redemption ID.", 1),
    "event_id": ("Event ID.", 1),
    "key_id": ("Key ID.", 1),
    "webhook_id": ("Webhook ID.", 1),
    "delivery_id": ("Delivery ID.", 1),
}
"""Description and example of each path parameter."""


class Converter(OpenAPIConverter):
    """Converts the fields of this service. Extension point: ``MarshmallowPlugin.Converter``."""

    schemas: Schemas = MappingProxyType({})
    """Replacements for schemas."""

    def resolve_nested_schema(self, schema: object) -> Any:
        """Return the JSON Schema of a schema or its replacement."""
        return super().resolve_nested_schema(_substitute(schema, self.schemas))  # type: ignore[no-untyped-call] # apispec's

    def schema2jsonschema(self, schema: object) -> object:
        """Return the JSON Schema of a schema, described by its docstring."""
        document = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call] # apispec's
        kind = schema if isinstance(schema, type) else type(schema)
        summary = (kind.__doc__ or "").strip().partition("\n\n")[0]
        document.setdefault("description", _CITATION.sub("", " ".join(summary.split())))
        if required := document.pop("required", None):  # apispec sorts it
            document["required"] = [name for name in document["properties"] if name in required]
        return document

    def schema2parameters(self, schema: Any, *args: Any, **kwargs: Any) -> object:
        """Return the parameters of a schema or its replacement, without undocumented ones."""
        substitute = _substitute(schema, self.schemas)
        parameters = super().schema2parameters(substitute, *args, **kwargs)
        fields = getattr(substitute, "fields", {})
        hidden = {
            field.data_key or name
            for name, field in fields.items()
            if name in getattr(substitute, "undocumented", ())
        }
        required = {
            field.data_key or name
            for name, field in fields.items()
            if getattr(field, "rejects_absence", False)
        }
        for parameter in parameters:
            if parameter["name"] in required:
                parameter["required"] = True
        return [parameter for parameter in parameters if parameter["name"] not in hidden]

    def init_attribute_functions(self) -> None:
        """Add the functions for the fields of this service."""
        super().init_attribute_functions()  # type: ignore[no-untyped-call] # apispec's
        self.add_attribute_function(_field_schema)  # type: ignore[no-untyped-call] # apispec's

    def field2default(self, field: Field, **kwargs: object) -> Document:
        """Return the default of a query parameter.

        The default of a body is only described. Generated clients that know it require the field or
        send the default with every request.
        """
        if getattr(field, "null_is_absent", False) and not isinstance(field, QueryField):
            return {}
        default: Document = super().field2default(field, **kwargs)
        return default

    def list2param(self, field: Field, **_: object) -> Document:
        """Return how a list is sent: as a text with commas."""
        return {"style": "form", "explode": False} if isinstance(field, ma.fields.List) else {}

    def metadata2properties(self, field: Field, **kwargs: object) -> Document:
        """Return the description of a field, with the default of an input."""
        properties: Document = super().metadata2properties(field, **kwargs)
        default = field.load_default
        is_body = isinstance(field, Input) and not isinstance(field, QueryField)
        if is_body and not callable(default) and default not in {ma.missing, None, ""}:
            shown = str(default).lower() if isinstance(default, bool) else default
            properties["description"] += f" Default: `{shown}`."
        return properties

    def field2read_only(self, field: Field, **_: object) -> Document:
        """Return nothing, because generated clients would have two types for such a schema."""
        return {}

    field2write_only = field2read_only

    def field2nullable(self, field: Field, ret: Document) -> Document:
        """Return how null is allowed. Inputs tolerate null, but canonical requests have none."""
        if getattr(field, "null_is_absent", False):
            return {}
        if field.allow_none and "$ref" in ret and self.openapi_version.minor < 1:
            return {"anyOf": [{"$ref": ret.pop("$ref")}, _NULL_30]}
        nullable: Document = super().field2nullable(field, ret)
        return nullable


class FieldPlugin(MarshmallowPlugin):
    """Extension point: ``marshmallow_plugin`` of flask-smorest."""

    Converter = Converter

    def __init__(self, schemas: Schemas) -> None:
        super().__init__(schema_name_resolver=self._name)
        self._schemas = schemas
        self._replaced = {substitute: native for native, substitute in schemas.items()}

    def _name(self, schema: object) -> str:
        """Return the name of a schema in the document. A replacement has the replaced name."""
        kind = schema if isinstance(schema, type) else type(schema)
        name = self._replaced.get(kind, kind).__name__
        return name.removeprefix("Legacy").removesuffix("Schema")

    def init_spec(self, spec: Any) -> None:
        """Create the converter of a document."""
        super().init_spec(spec)
        self.converter.schemas = self._schemas  # type: ignore[union-attr] # set by the base class


def _substitute(schema: object, schemas: Schemas) -> object:
    kind = schema if isinstance(schema, type) else type(schema)
    substitute = schemas.get(kind)
    return schema if substitute is None else substitute()


class PathPlugin(FlaskPlugin):
    """Extension point: ``flask_plugin`` of flask-smorest."""

    def rule_to_params(self, rule: Rule) -> list[Document]:
        """Return the path parameters of a rule, each with a description and an example."""
        parameters: list[Document] = super().rule_to_params(rule)
        for parameter in parameters:
            name = parameter["name"]
            meaning, example = _PATH_PARAMETERS.get(name, (f"{name.replace('_', ' ').title()}.", 1))
            parameter["description"] = meaning
            if parameter["schema"]["type"] == "integer" or name in _PATH_PARAMETERS:
                parameter["example"] = example
        return parameters


def _field_schema(
    converter: Converter,
    field: Field,
    ret: Document,  # noqa: ARG001  # apispec's signature
) -> Document:
    """Return the JSON Schema of a field. Extension point: ``add_attribute_function``."""
    if isinstance(field, either):
        components = converter.spec.components
        name = field.schema_name
        if name not in components.schemas:
            choices = [converter.resolve_nested_schema(schema) for schema in field.schemas]
            components.schema(name, {**_union(field, choices), "description": field.meaning})
        return {"$ref": f"#/components/schemas/{name}"}
    if isinstance(field, Lines):
        return {"type": "array", "items": converter.resolve_nested_schema(field.line)}
    if isinstance(field, OptionalObject):
        reference = converter.resolve_nested_schema(field.described_by)
        null = {"type": "null"} if converter.openapi_version.minor else _NULL_30
        return {"anyOf": [reference, null]}
    schema = dict(getattr(field, "openapi", {}))
    if not schema:
        return schema
    if COMPONENT in schema:
        reference = _component(converter, schema)
        return reference if converter.openapi_version.minor else {"allOf": [reference]}
    if COMPONENT in schema.get("items", {}):
        schema["items"] = _component(converter, schema["items"])
    if field.allow_none and not getattr(field, "null_is_absent", False):
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*dict.fromkeys([*kinds, "null"])]
    return as_version(schema, str(converter.openapi_version))


def _union(field: either, choices: list[Document]) -> Document:
    if field.by is None:
        return {"anyOf": choices}
    ((name, values),) = field.by.items()
    mapping = {value: ref["$ref"] for value, ref in zip(values, choices, strict=True)}
    return {"oneOf": choices, "discriminator": {"propertyName": name, "mapping": mapping}}


def _component(converter: Converter, schema: Schema) -> Document:
    """Add a schema to the components of the document and return a reference to it."""
    name = schema[COMPONENT]
    if name not in converter.spec.components.schemas:
        own = {key: value for key, value in schema.items() if key != COMPONENT}
        converter.spec.components.schema(name, as_version(own, str(converter.openapi_version)))
    return {"$ref": f"#/components/schemas/{name}"}


def as_version(schema: Schema, version: str) -> Document:
    """Return a JSON Schema as a version of OpenAPI writes it.

    Args:
        schema: as OpenAPI 3.1 writes it, which is JSON Schema 2020-12, with one type or null.
        version: ``3.1.0``, or ``3.0.3``, which has ``nullable``, ``example`` and ``enum`` instead
            of a type ``null``, ``examples`` and ``const``.
    """
    if not version.startswith("3.0"):
        return dict(schema)
    result = {key: value for key, value in schema.items() if key not in {"examples", "const"}}
    if "items" in schema and "$ref" not in schema["items"]:
        result["items"] = as_version(schema["items"], version)
    if examples_of_type := schema.get("examples"):
        result["example"] = examples_of_type[0]
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if isinstance(schema["type"], list):
        (result["type"],) = set(schema["type"]) - {"null"}
        result["nullable"] = True
    return result
