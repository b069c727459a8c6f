"""Response schemas, compiled once: which columns to select, and a row's way to JSON.

The schema stays the one source of names, order and documentation; a test proves that a compiled
serializer prints what ``Schema().dump()`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import marshmallow as ma
from sqlalchemy import ColumnElement

from app.schemas.fields import Lines, Output, Part

Row = Sequence[Any]
Columns = Mapping[str, ColumnElement[Any]]
Frozen = tuple[tuple[str, "Frozen | None"], ...]

MAX_SELECTIONS = 100
"""How many selections of ``fields`` are kept compiled for a schema."""


class Serializer:
    """Turns rows into the objects of a response.

    Of the schema functions are written, ``lambda v: {"id": v[0], "code": v[1], …}``: a list of
    a hundred objects is made without a call for each of their keys.

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
        self._narrow = lru_cache(maxsize=MAX_SELECTIONS)(self._narrowed_to)
        self._substitutes: dict[type[ma.Schema], Serializer] = {}
        self._known: dict[str, Any] = {}  # what the functions call, by the names it has there
        self.names: list[str] = []
        self._places = {  # of values that are read together
            name: (column, place)
            for column, element in columns.items()
            for place, name in enumerate(getattr(element.type, "names", ()))
        }
        self.row: Callable[[Row], dict[str, Any]] = self._function(
            self._source(schema, selection, "", self._of_row, whole=columns)
        )
        """Returns the object of a row, whose values stand in the order of ``columns``."""
        self.record: Callable[[Mapping[str, Any]], dict[str, Any]] = self._function(
            self._source(schema, selection, "", self._of_record, whole={})
        )
        """Returns the object of a record that is known by its column names."""
        self.columns = tuple(columns[name] for name in self.names)

    def only(self, selection: Mapping[str, Any] | None) -> Serializer:
        """Return the serializer of what ``fields`` selected: fewer keys, fewer columns."""
        return self if selection is None else self._narrow(_frozen(selection))

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

    def _function(self, source: str) -> Callable[[Any], dict[str, Any]]:
        # Made of field names of our schemas; what a client sent is no part of it.
        made: Callable[[Any], dict[str, Any]] = eval(f"lambda v: {source}", self._known)  # noqa: S307  # nosec B307  # see above
        return made

    def _source(
        self,
        schema: type[ma.Schema],
        selection: Mapping[str, Any] | None,
        prefix: str,
        value_of: Callable[[str], str],
        whole: Container[str],
    ) -> str:
        """Return the expression that makes the object of a schema from the values ``v``.

        Args:
            value_of: returns the expression of a column's value.
            whole: the Parts that need not be made of their values.
        """
        parts: list[str] = []
        for key, field in schema().fields.items():
            if selection is not None and key not in selection:
                continue
            inner = None if selection is None else selection[key]
            if isinstance(field, Part) and inner is None and key in whole:
                made = value_of(key)
            elif isinstance(field, Part):
                made = self._source(field.part, inner, field.prefix, value_of, whole)
            elif not isinstance(field, Output):
                raise TypeError(f"{schema.__name__}.{key} is no output field")
            else:
                wire = type(field).wire
                if inner is not None:
                    if not isinstance(field, Lines):
                        continue  # a part of what has no parts
                    wire = partial(narrowed, selection=inner)
                made = self._through(wire, value_of(prefix + (field.attribute or key)))
            parts.append(f"{key!r}: {made}")
        return f"{{{', '.join(parts)}}}"

    def _of_row(self, name: str) -> str:
        """Return the expression of a value in a row."""
        column, place = self._place(name)
        if column not in self.names:
            self.names.append(column)
        return f"v[{self.names.index(column)}]{place}"

    def _of_record(self, name: str) -> str:
        """Return the same in a record."""
        column, place = self._place(name)
        return f"v[{column!r}]{place}"

    def _place(self, name: str) -> tuple[str, str]:
        """Return the column of a value, and where in the column that is."""
        column, place = self._places.get(name, (name, None))
        return column, "" if place is None else f"[{place}]"

    def _through(self, wire: Callable[[Any], Any] | None, value: str) -> str:
        """Return the expression of a value taken through ``wire``."""
        if wire is None:
            return value
        called = f"wire{len(self._known)}"
        self._known[called] = wire
        return f"{called}({value})"


def _frozen(selection: Mapping[str, Any]) -> Frozen:
    return tuple(
        (key, None if inner is None else _frozen(inner)) for key, inner in selection.items()
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
