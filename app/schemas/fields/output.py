"""Output fields: one class for each type of value in responses.

An output field converts a stored value to a JSON value with a pure function.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.schemas.fields import json_schema


def described(meaning: str) -> dict[str, Any]:
    """Return the keyword arguments of a field for its description."""
    return {"metadata": {"description": meaning}} if meaning else {}


class Output(ma.fields.Field[Any]):
    """A value of a response.

    ``wire`` converts the stored value to a JSON value. None means that no conversion is required.
    It is a pure function, so that serializers can be compiled (see ``app.api.serializers``).
    With ``keeps_text``, it returns text unchanged, which most selects read.

    Args:
        on_request: whether a response contains the value only if ``fields`` names it, or if the
            request wrote it.
    """

    wire: Callable[[Any], Any] | None = None
    keeps_text = False
    openapi: json_schema.Schema = {}  # the JSON Schema of the value in the OpenAPI document

    def __init__(
        self,
        meaning: str = "",
        *,
        openapi: json_schema.Schema | None = None,
        wire: Callable[[Any], Any] | None = None,
        on_request: bool = False,
        **kwargs: Any,
    ) -> None:
        self.on_request = on_request
        kwargs.setdefault("required", not on_request)  # in the OpenAPI document (decisions 16)
        super().__init__(**described(meaning), **kwargs)
        if openapi is not None:
            self.openapi = openapi
        if wire is not None:
            self.wire = wire

    def serialize(self, attr: str, obj: Any, accessor: Any = None, **kwargs: Any) -> object:
        """Return the value. A response that a view dumps itself has none on request."""
        return ma.missing if self.on_request else super().serialize(attr, obj, accessor, **kwargs)

    def _serialize(self, value: object, attr: str | None, obj: object, **kwargs: object) -> object:
        return value if self.wire is None else self.wire(value)


class Identifier(Output):
    """The ID of a record."""

    openapi = json_schema.IDENTIFIER


class OptionalIdentifier(Output):
    """The ID of a record, or null."""

    openapi = json_schema.OPTIONAL_IDENTIFIER


class Number(Output):
    """A non-negative integer."""

    openapi = json_schema.NUMBER


class Limit(Output):
    """A limit. The stored value 0 means no limit and is returned as null."""

    openapi = {**json_schema.NUMBER, "type": ["integer", "null"], "minimum": 1}

    wire = staticmethod(lambda value: value or None)


class String(Output):
    """A string."""

    openapi = {"type": "string"}


class OptionalString(Output):
    """A string, or null."""

    openapi = {"type": ["string", "null"]}


class JsonObject(Output):
    """A JSON object, stored as text and inserted into the response unchanged."""

    openapi = {"type": "object", "additionalProperties": True}


def on_request(schema: type[ma.Schema]) -> tuple[str, ...]:
    """Return the fields that a response contains only on request (see ``Output``)."""
    fields = schema().fields.items()
    return tuple(name for name, each in fields if getattr(each, "on_request", False))


class OnRequest(Output):
    """A value that only some responses contain, so that serializers leave it out.

    ``app.api.metadata`` and ``app.api.representations`` add it.
    """

    def __init__(self, meaning: str, *, name: str, **kwargs: Any) -> None:
        # Not a name of the record, so that nothing else adds the value.
        super().__init__(meaning, required=False, attribute=f"on_request_{name}", **kwargs)


class Metadata(OnRequest):
    """Metadata of a record: the first value of each key.

    Attributes:
        hides: beginning of the keys that responses leave out.
        is_in_writes: whether the response to a write of metadata contains it.
    """

    openapi = {"type": "object", "additionalProperties": True, "examples": [{"erp_id": "4711"}]}
    hides: str | None = None
    is_in_writes = True

    def __init__(self, meaning: str = "") -> None:
        meaning = meaning or (
            "Metadata: values by key. Only if `fields` names it, with `filter[meta]=true`, and in "
            "the response to a request that writes it."
        )
        super().__init__(meaning, name="metadata")


class Boolean(Output):
    """A boolean."""

    openapi = {"type": "boolean"}


class Amount(Output):
    """A decimal with 2 places, as a string. A missing amount is 0.00 (decisions 3)."""

    keeps_text = True
    openapi = json_schema.AMOUNT

    @staticmethod
    def wire(value: Decimal | str | None) -> str:
        """Return the amount as text. Accepts text, because most selects read formatted amounts."""
        return "0.00" if value is None else str(value)


class OptionalAmount(Output):
    """A decimal with 2 places, as a string, or null."""

    keeps_text = True
    openapi = {**json_schema.AMOUNT, "type": ["string", "null"]}

    wire = staticmethod(lambda value: None if value is None else str(value))


class Timestamp(Output):
    """A UTC date-time without a fraction: 2026-11-20T09:38:00Z (decisions 6)."""

    keeps_text = True
    openapi = json_schema.TIMESTAMP

    @staticmethod
    def wire(value: datetime | str | None) -> str | None:
        """Return the timestamp as text. Accepts text, because most selects read formatted text."""
        if value is None or isinstance(value, str):
            return value
        # The first 19 characters are the time without its fraction and its time zone.
        return None if value is None else f"{value.isoformat()[:19]}Z"


class OptionalTimestamp(Timestamp):
    """A UTC date-time, or null."""

    openapi = {**json_schema.TIMESTAMP, "type": ["string", "null"]}


class Date(Output):
    """A date, returned as midnight UTC, or null."""

    openapi = {
        **json_schema.TIMESTAMP,
        "type": ["string", "null"],
        "examples": ["2030-12-31T00:00:00Z"],
    }

    @staticmethod
    def wire(value: date | None) -> str | None:
        return None if value is None else f"{value.isoformat()}T00:00:00Z"


class Identifiers(Output):
    """A list of IDs."""

    openapi = {"type": "array", "items": {"type": "integer", "format": "int64"}}


class StringList(Output):
    """A list of strings."""

    openapi = {"type": "array", "items": {"type": "string"}}


class Composite(ma.fields.Nested):
    """An object whose values are columns of the parent record, with a common prefix."""

    def __init__(
        self, schema: type[ma.Schema], *, prefix: str = "", on_request: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(schema, required=not on_request, **kwargs)
        self.on_request = on_request
        self.part = schema
        self.prefix = prefix

    def serialize(
        self, attr: str, obj: object, accessor: object = None, **kwargs: object
    ) -> object:
        names = self.part._declared_fields
        values = {name: ma.utils.get_value(obj, self.prefix + name) for name in names}
        return self.schema.dump(values)


class Lines(Output):
    """A list of objects that are stored in the format of the response."""

    def __init__(self, schema: type[ma.Schema], meaning: str = "", **kwargs: Any) -> None:
        super().__init__(meaning, **kwargs)
        self.line = schema


class OptionalObject(Output):
    """An object that is stored in the format of the response, or null."""

    def __init__(self, schema: type[ma.Schema], meaning: str = "", **kwargs: Any) -> None:
        super().__init__(meaning, **kwargs)
        self.described_by = schema


def objects(schema: type[ma.Schema], meaning: str = "") -> ma.fields.List[Any]:
    """Return the field of a list of objects that a schema describes."""
    return ma.fields.List(ma.fields.Nested(schema), required=True, **described(meaning))


def by_name(meaning: str = "", of: type[ma.Schema] | None = None) -> ma.fields.Dict:
    """Return the field of an object with any names, for texts or for the objects of a schema."""
    values = ma.fields.Nested(of) if of else ma.fields.String()
    return ma.fields.Dict(
        keys=ma.fields.String(), values=values, required=True, **described(meaning)
    )


class either(ma.fields.Field[Any]):  # noqa: N801  # used like a function: either(…, A, B)
    """One of several objects, only for the OpenAPI document.

    Args:
        name: the name of this schema in the document.
        meaning: the description of this schema.
        schemas: the schemas of the objects. A client uses the first schema that matches.
        by: the name of a property with its value in each schema, if it determines the schema.
    """

    def __init__(
        self,
        name: str,
        meaning: str,
        *schemas: type[ma.Schema],
        by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(required=True)
        self.schema_name = name
        self.meaning = meaning
        self.schemas = schemas
        self.by = by
