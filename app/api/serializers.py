"""Response schemas, compiled once: which columns to select, and a row's way to JSON.

The schema stays the one source of names, order and documentation; a test proves that a compiled
serializer prints what ``Schema().dump()`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import marshmallow as ma
from sqlalchemy import ColumnElement

from app.schemas.fields import Lines, Output, Part

Row = Sequence[Any]
Columns = Mapping[str, ColumnElement[Any]]
Frozen = tuple[tuple[str, "Frozen | None"], ...]
Names = Mapping[str, "Names | None"]
"""The names that exist in an object; under a name the names below it, None where it has none."""

Place = tuple[Any, int | None]
"""Where a value is: its column, and its place in there where several are read together."""

Wire = Callable[[Any], Any]

MAX_SELECTIONS = 100
"""How many selections of ``fields`` are kept compiled for a schema."""


class Serializer:
    """Turns rows into the objects of a response.

    The schema is walked once. What is left for each row is a list of keys, each with a function
    that gets its value.

    Args:
        schema: the response schema; its fields are Output fields.
        columns: where the value of each field comes from, by name. A Part is there, too, where it
            can be read as a whole; and values that are read together have a column together.
        selection: what the ``fields`` parameter selected; None for everything.
    """

    def __init__(
        self, schema: type[ma.Schema], columns: Columns, selection: Mapping[str, Any] | None = None
    ) -> None:
        self._schema = schema
        self._all_columns = columns
        self._selectable = _names_of(schema)
        self._narrow = lru_cache(maxsize=MAX_SELECTIONS)(self._narrowed_to)
        self._substitutes: dict[type[ma.Schema], Serializer] = {}
        self.names: list[str] = []
        self._places: dict[str, Place] = {  # of values that are read together
            name: (column, place)
            for column, element in columns.items()
            for place, name in enumerate(getattr(element.type, "names", ()))
        }
        self.row: Callable[[Row], dict[str, Any]] = _object(
            schema, selection, "", self._of_row, whole=columns
        )
        """Returns the object of a row, whose values stand in the order of ``columns``."""
        self.record: Callable[[Mapping[str, Any]], dict[str, Any]] = _object(
            schema, selection, "", self._of_record, whole={}
        )
        """Returns the object of a record that is known by its column names."""
        self.columns = tuple(columns[name] for name in self.names)

    def only(self, selection: Mapping[str, Any] | None) -> Serializer:
        """Return the serializer of what ``fields`` selected: fewer keys, fewer columns.

        Names that do not exist are dropped first. What a client invents compiles nothing, and
        takes no place in a cache.
        """
        return self if selection is None else self._narrow(_frozen(selection, self._selectable))

    def of(self, schemas: Mapping[type[ma.Schema], type[ma.Schema]]) -> Serializer:
        """Return the serializer of the schema that takes the place of this one, if one does."""
        schema = schemas.get(self._schema)
        if schema is None:
            return self
        if schema not in self._substitutes:
            self._substitutes[schema] = Serializer(schema, self._all_columns)
        return self._substitutes[schema]

    def rows(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """Return the objects of several rows, whose values stand in the order of ``columns``."""
        row = self.row
        return [row(values) for values in rows]

    def _narrowed_to(self, frozen: Frozen) -> Serializer:
        return Serializer(self._schema, self._all_columns, _thawed(frozen))

    def _of_row(self, name: str) -> Place:
        """Return where a value is in a row."""
        column, place = self._places.get(name, (name, None))
        if column not in self.names:
            self.names.append(column)
        return self.names.index(column), place

    def _of_record(self, name: str) -> Place:
        """Return where a value is in a record."""
        return self._places.get(name, (name, None))


def _object(
    schema: type[ma.Schema],
    selection: Mapping[str, Any] | None,
    prefix: str,
    place_of: Callable[[str], Place],
    whole: Container[str],
) -> Callable[[Any], dict[str, Any]]:
    """Return what makes the object of a schema.

    Args:
        schema: whose keys the object has.
        selection: which of them; None for all.
        prefix: what the names of its columns begin with.
        place_of: returns where the value of a column is.
        whole: the Parts that need not be made of their values.
    """
    parts: list[tuple[str, Callable[[Any], Any]]] = []
    for key, field in schema().fields.items():
        if selection is not None and key not in selection:
            continue
        inner = None if selection is None else selection[key]
        if isinstance(field, Part) and inner is None and key in whole:
            value_of = _getter(*place_of(key), wire=None)
        elif isinstance(field, Part):
            value_of = _object(field.part, inner, field.prefix, place_of, whole)
        elif not isinstance(field, Output):
            raise TypeError(f"{schema.__name__}.{key} is no output field")
        else:
            wire = type(field).wire
            if inner is not None:
                if not isinstance(field, Lines):
                    continue  # a part of what has no parts
                wire = partial(narrowed, selection=inner)
            value_of = _getter(*place_of(prefix + (field.attribute or key)), wire=wire)
        parts.append((key, value_of))
    return lambda values: {key: value_of(values) for key, value_of in parts}


def _getter(column: Any, place: int | None, wire: Wire | None) -> Callable[[Any], Any]:
    """Return what gets a value by its place, and takes it through ``wire``."""
    if wire is None:
        return itemgetter(column) if place is None else lambda values: values[column][place]
    if place is None:
        return lambda values: wire(values[column])
    return lambda values: wire(values[column][place])


def _names_of(schema: type[ma.Schema]) -> Names:
    """Return the names that exist in the objects of a schema, in their order."""
    return {
        key: _names_of(field.part)
        if isinstance(field, Part)
        else _names_of(field.line)
        if isinstance(field, Lines)
        else None
        for key, field in schema().fields.items()
    }


def _frozen(selection: Mapping[str, Any], names: Names) -> Frozen:
    """Return a selection of names that exist, each once and in their order: a key for a cache."""
    return tuple(
        (key, None if (inner := selection[key]) is None else _frozen(inner, below or {}))
        for key, below in names.items()
        # A part of what has no parts is a name that does not exist.
        if key in selection and (selection[key] is None or below is not None)
    )


def _thawed(frozen: Frozen) -> dict[str, Any]:
    return {key: None if inner is None else _thawed(inner) for key, inner in frozen}


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
