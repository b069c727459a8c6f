"""Loading of the fields that an object has."""

from collections.abc import Mapping
from typing import Any

import marshmallow as ma

Defaults = Mapping[str, object]


def defaults_of(schema: ma.Schema) -> Defaults:
    """Return the defaults of a schema by field. Some are functions that create the default."""
    fields = schema.load_fields.items()
    defaults = {field.attribute or name: field.load_default for name, field in fields}
    return {name: default for name, default in defaults.items() if default is not ma.missing}


def load_given(
    schema: ma.Schema, data: Mapping[str, object], defaults: Defaults | None = None
) -> dict[str, Any]:
    """Load the fields that an object has, and set the defaults of others.

    The result is that of ``load(partial=True)`` with defaults. marshmallow takes twice as long for
    an object with few fields, which was a quarter of the time of an order with 500 items.

    Args:
        schema: a schema whose nested objects have no defaults. It has no hooks, but can have a
            ``load`` of its own.
        defaults: its ``defaults_of``; without, absent fields stay absent.

    Raises:
        ValidationError: values are invalid, with the problems of all.
    """
    loaded: dict[str, Any] = {}
    if type(schema).load is not ma.Schema.load:  # of a dialect
        loaded = schema.load(data, partial=True)
    else:
        unknown_in = getattr(schema, "unknown_in", None)  # of a strict schema
        problems: dict[str, object] = unknown_in(data) if unknown_in else {}
        for name, field in schema.load_fields.items():
            key = field.data_key or name
            if key not in data:
                continue
            try:
                value = field.deserialize(data[key], key, data, partial=True)
            except ma.ValidationError as error:
                problems[key] = error.messages
                continue
            if value is not ma.missing:
                loaded[field.attribute or name] = value
        if problems:
            raise ma.ValidationError(problems)
    for name, default in (defaults or {}).items():
        if name not in loaded:
            loaded[name] = default() if callable(default) else default
    return loaded
