"""Strict handling of input: nothing is ignored, and nothing is converted to another value.

``make_strict`` changes an instance of a schema, so that requests without strict handling use other
instances and do not pay for it (decisions 15).
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

import marshmallow as ma

from app.conversions.text import nearest_name
from app.errors import Sentence
from app.schemas.fields.input import Input
from app.schemas.fields.query import FieldList, QueryField, StrictSelection
from app.schemas.queries import Query

MAX_UNKNOWN = 20
"""Maximum number of unknown names that a response reports, because each search for a similar name
takes time."""


@dataclass(frozen=True, slots=True)
class UnknownName:
    """An unknown name, as a reason of a ValidationError.

    Args:
        known: the names that are accepted.
        kind: ``field`` or ``parameter``.
    """

    name: str
    known: Set[str]
    kind: str

    def reason(self, *, suggest: bool = True) -> Sentence:
        """Return the reason. With ``suggest``, it contains the nearest known name."""
        nearest = nearest_name(self.name, self.known) if suggest else ""
        hint = Sentence("; did you mean '{0}'?", nearest) if nearest else "."
        template = "unknown field {0}{1}" if self.kind == "field" else "unknown parameter {0}{1}"
        return Sentence(template, repr(self.name[:100]), hint)


def make_strict(schema: ma.Schema, *, names_only: bool = False) -> ma.Schema:
    """Make an instance of a schema reject input that it would ignore or convert, and return it.

    With ``names_only``, values can still be converted.
    """
    for field in schema.fields.values():
        if isinstance(field, Input) and not names_only:
            field.convert = partial(_convert, field)  # type: ignore[method-assign] # of this instance
        elif isinstance(field, ma.fields.Nested):
            make_strict(field.schema, names_only=names_only)
        elif isinstance(field, ma.fields.List) and isinstance(field.inner, ma.fields.Nested):
            make_strict(field.inner.schema, names_only=names_only)
    schema.unknown = ma.EXCLUDE  # ``_load`` reports unknown names, with suggestions
    known = {field.data_key or name for name, field in schema.load_fields.items()}
    read_only: Set[str] = getattr(schema, "read_only", frozenset())
    known |= schema.names.keys() if isinstance(schema, Query) else read_only
    schema.load = partial(_load, schema)  # type: ignore[method-assign] # see above
    schema.unknown_in = partial(_unknown_in, schema, known)  # type: ignore[attr-defined] # see above
    return schema


def unknown_names(names: Iterable[str], known: Set[str], kind: str) -> list[UnknownName]:
    """Return the first names that are not known."""
    unknown = (UnknownName(name, known, kind) for name in names if name not in known)
    return list(islice(unknown, MAX_UNKNOWN))


def _unknown_in(schema: ma.Schema, known: Set[str], data: Any) -> dict[str, object]:
    """Return the errors of names in data that are not known."""
    kind = "parameter" if isinstance(schema, Query) else "field"
    names: Iterable[str] = data if isinstance(data, Mapping) else ()
    if further := getattr(schema, "further", None):
        names = [name for name in names if not further.fullmatch(name)]
    return {each.name: [each] for each in unknown_names(names, known, kind)}


def _load(schema: ma.Schema, data: Any, **kwargs: Any) -> object:
    """Load data, and report names that are not known together with the errors of the others."""
    unknown = schema.unknown_in(data)  # type: ignore[attr-defined] # of ``make_strict``
    try:
        loaded = type(schema).load(schema, data, **kwargs)
    except ma.ValidationError as error:
        raise ma.ValidationError({**unknown, **error.messages_dict}) from None
    if unknown:
        raise ma.ValidationError(unknown)
    return loaded


def _convert(field: Input, value: Any) -> Any:
    """Convert a value, or raise ValueError if the result is another value."""
    converted = type(field).convert(field, value)
    if isinstance(field, QueryField) and not value.strip():
        return converted  # an empty parameter is not supplied
    if isinstance(field, FieldList):
        return StrictSelection(converted)  # checked later, by code that knows the names
    if reason := field.loss(value, converted) or _loss(value, converted):
        raise ValueError(reason)
    return converted


def _loss(value: object, converted: object) -> str | Sentence:
    """Return why a number or a boolean is not the value that was sent, or an empty string."""
    if isinstance(converted, bool):
        return "" if isinstance(value, bool) else "must be true or false."
    if isinstance(converted, int):
        return (
            ""
            if is_integer(value, converted)
            else Sentence("would be converted to {0}.", str(converted))
        )
    if isinstance(converted, Decimal) and not _is_equal(value, converted):
        return Sentence("would be converted to {0}.", str(converted))
    return ""


def is_integer(value: object, converted: int) -> bool:
    """Return whether a value is an integer, as a number or as text."""
    if isinstance(value, str):
        return bool(re.fullmatch(r"\s*[+-]?[0-9]+\s*", value)) and int(value) == converted
    return isinstance(value, int | Decimal) and not isinstance(value, bool) and value == converted


def _is_equal(value: object, converted: Decimal) -> bool:
    text = str(value).strip()
    return bool(text) and Decimal(text) == converted
