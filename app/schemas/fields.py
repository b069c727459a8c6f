"""What the response tables of the specification are made of.

An output field turns a stored value into what JSON prints, by a pure function.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.schemas import kinds


def described(meaning: str) -> dict[str, Any]:
    """Return the keyword arguments that give a field its description."""
    return {"metadata": {"description": meaning}} if meaning else {}


class Output(ma.fields.Field[Any]):
    """A value of a response.

    ``wire`` turns the stored value into one that JSON knows; None leaves it as it is. It is a
    pure function, so that a serializer can be compiled from it (see ``app.api.serializers``).
    """

    wire: Callable[[Any], Any] | None = None
    openapi: kinds.Schema = {}  # its JSON Schema; app.openapi writes it into the document

    def __init__(self, meaning: str = "", **kwargs: Any) -> None:
        super().__init__(**described(meaning), **kwargs)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return value if self.wire is None else type(self).wire(value)  # type: ignore[misc]  # not None here


class Identifier(Output):
    """The id of a record."""

    openapi = kinds.IDENTIFIER


class OptionalIdentifier(Output):
    """The id of a record, or null."""

    openapi = kinds.OPTIONAL_IDENTIFIER


class Number(Output):
    """A count."""

    openapi = kinds.NUMBER


class Limit(Output):
    """A count of which 0 means none, printed as null."""

    openapi = {**kinds.NUMBER, "type": ["integer", "null"], "minimum": 1}

    wire = staticmethod(lambda value: value or None)


class String(Output):
    """A string."""

    openapi = {"type": "string"}


class OptionalString(Output):
    """A string, or null."""

    openapi = {"type": ["string", "null"]}


class Boolean(Output):
    """A boolean."""

    openapi = {"type": "boolean"}


class Amount(Output):
    """A decimal with 2 places, as a string; empty prints as 0.00 (decisions 3)."""

    openapi = kinds.AMOUNT

    @staticmethod
    def wire(value: Decimal | str | None) -> str:
        """Return the text of an amount, which may be read as its text already."""
        return "0.00" if value is None else str(value)


class OptionalAmount(Output):
    """A decimal with 2 places, as a string, or null."""

    openapi = {**kinds.AMOUNT, "type": ["string", "null"]}

    wire = staticmethod(lambda value: None if value is None else str(value))


class Timestamp(Output):
    """A UTC date-time without a fraction: 2026-11-20T09:38:00Z (decisions 6)."""

    openapi = kinds.TIMESTAMP

    @staticmethod
    def wire(value: datetime | str | None) -> str | None:
        """Return the text of a moment, which may be read as its text already."""
        if value is None or isinstance(value, str):
            return value
        # Of 2026-11-20T09:38:00+00:00, or with a fraction before the zone, the first 19 characters.
        return None if value is None else f"{value.isoformat()[:19]}Z"


class OptionalTimestamp(Timestamp):
    """A UTC date-time, or null."""

    openapi = {**kinds.TIMESTAMP, "type": ["string", "null"]}


class Date(Output):
    """A day, printed as its midnight UTC; null when there is none."""

    openapi = {**kinds.TIMESTAMP, "type": ["string", "null"], "examples": ["2030-12-31T00:00:00Z"]}

    @staticmethod
    def wire(value: date | None) -> str | None:
        """Return the text of a stored day."""
        return None if value is None else f"{value.isoformat()}T00:00:00Z"


class EchoedIdentifier(Output):
    """The id that a bulk item gave, whatever it identifies (decisions 13)."""

    openapi = {"type": "integer"}


class Identifiers(Output):
    """A list of ids."""

    openapi = {"type": "array", "items": {"type": "integer", "format": "int64"}}


class StringList(Output):
    """A list of strings."""

    openapi = {"type": "array", "items": {"type": "string"}}


class Part(ma.fields.Nested):
    """An object whose values stand beside those of its parent, under a common prefix."""

    def __init__(self, schema: type[ma.Schema], *, prefix: str = "", **kwargs: Any) -> None:
        super().__init__(schema, **kwargs)
        self.part = schema
        self.prefix = prefix

    def serialize(self, attr: str, obj: Any, accessor: Any = None, **kwargs: Any) -> Any:
        """Return the object, made of the parent's values."""
        names = self.part._declared_fields
        values = {name: ma.utils.get_value(obj, self.prefix + name) for name in names}
        return self.schema.dump(values)


class Lines(Output):
    """A list of objects that are stored in the form in which they are shown."""

    def __init__(self, schema: type[ma.Schema], meaning: str = "", **kwargs: Any) -> None:
        super().__init__(meaning, **kwargs)
        self.line = schema


class either(ma.fields.Field[Any]):  # noqa: N801  # reads as what it says: either(A, B)
    """One of several objects, for the document only."""

    def __init__(self, *schemas: type[ma.Schema]) -> None:
        super().__init__()
        self.schemas = schemas
