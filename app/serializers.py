"""Response schemas, compiled once: which columns to select, and a row's way to JSON.

The schema stays the one source of names, order and documentation; a test proves that a compiled
serializer prints what ``Schema().dump()`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import marshmallow as ma
from sqlalchemy import ColumnElement

from app.schemas.fields import Lines, Output, Part

Row = Sequence[Any]
Columns = Mapping[str, ColumnElement[Any]]


class Serializer:
    """Turns rows into the objects of a response.

    Args:
        schema: the response schema; its fields are Output fields.
        columns: where the value of each field comes from, by name.
        selection: what the ``fields`` parameter selected; None for everything.
    """

    def __init__(
        self, schema: type[ma.Schema], columns: Columns, selection: Mapping[str, Any] | None = None
    ) -> None:
        self._schema = schema
        self._all_columns = columns
        self._substitutes: dict[type[ma.Schema], Serializer] = {}
        self.names: list[str] = []
        self._parts = self._compile(schema, selection, "")
        self.columns = [columns[name] for name in self.names]

    def only(self, selection: Mapping[str, Any] | None) -> Serializer:
        """Return the serializer of what ``fields`` selected: fewer keys, fewer columns."""
        if selection is None:
            return self
        return Serializer(self._schema, self._all_columns, selection)

    def of(self, schemas: Mapping[type[ma.Schema], type[ma.Schema]]) -> Serializer:
        """Return the serializer of the schema that takes the place of this one, if one does."""
        schema = schemas.get(self._schema)
        if schema is None:
            return self
        if schema not in self._substitutes:
            self._substitutes[schema] = Serializer(schema, self._all_columns)
        return self._substitutes[schema]

    def row(self, values: Row) -> dict[str, Any]:
        """Return the object of a row whose values stand in the order of ``columns``."""
        return {key: make(values) for key, make in self._parts}

    def rows(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """Return the objects of several rows."""
        return [self.row(values) for values in rows]

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the object of a record that is known by its column names."""
        return self.row([record[name] for name in self.names])

    def _compile(
        self, schema: type[ma.Schema], selection: Mapping[str, Any] | None, prefix: str
    ) -> list[tuple[str, Callable[[Row], Any]]]:
        parts: list[tuple[str, Callable[[Row], Any]]] = []
        for key, field in schema().fields.items():
            if selection is not None and key not in selection:
                continue
            inner = None if selection is None else selection[key]
            if isinstance(field, Lines) and inner is not None:
                at = itemgetter(len(self.names))
                self.names.append(prefix + (field.attribute or key))
                parts.append((key, _through(partial(narrowed, selection=inner), at)))
            elif isinstance(field, Part):
                parts.append((key, _object(self._compile(field.part, inner, field.prefix))))
            elif not isinstance(field, Output):
                raise TypeError(f"{schema.__name__}.{key} is no output field")
            elif inner is None:
                at = itemgetter(len(self.names))
                self.names.append(prefix + (field.attribute or key))
                parts.append((key, _through(type(field).wire, at)))
        return parts


def _object(parts: list[tuple[str, Callable[[Row], Any]]]) -> Callable[[Row], Any]:
    return lambda values: {key: make(values) for key, make in parts}


def _through(wire: Callable[[Any], Any] | None, at: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return at if wire is None else lambda values: wire(at(values))


def narrowed(value: Any, selection: Mapping[str, Any] | None) -> Any:
    """Return the selected keys of an object, or of each object of a list, in their own order."""
    if selection is None:
        return value
    if isinstance(value, list):
        return [narrowed(entry, selection) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: narrowed(inner, selection[key])
        for key, inner in value.items()
        if key in selection and (selection[key] is None or isinstance(inner, dict | list))
    }
