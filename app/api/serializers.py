"""Serializers compiled from response schemas: columns to select, and conversion of rows.

The schema remains the single source of names, order and documentation. A test verifies that the
output of a serializer equals ``Schema().dump()``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import marshmallow as ma
from sqlalchemy import ColumnElement

from app.db.records import Row
from app.errors import InvalidParams
from app.schemas.fields.output import Lines, OnRequest, Output, Part, either
from app.schemas.fields.query import StrictSelection
from app.schemas.strict import unknown_names

Frozen = tuple[tuple[str, "Frozen | None"], ...]
Names = Mapping[str, "Names | None"]
"""The names in an object, each with the names in its nested object, or None."""

Position = tuple[Any, int | None]
"""The column of a value, and its index within a column that contains several values."""

Wire = Callable[[Any], Any]

MAX_SELECTIONS = 100
"""Number of cached serializers per schema for selections with ``fields``."""


class Serializer:
    """Converts rows to the objects of a response.

    The schema is compiled once into a function.

    Args:
        columns: the columns of the values by name. A Part can have a column for the whole object,
            and several values can share a column.
        selection: the selection of the ``fields`` parameter, or None for all fields.
    """

    def __init__(
        self,
        schema: type[ma.Schema],
        columns: Mapping[str, ColumnElement[Any]],
        selection: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self._all_columns = columns
        self.selectable = _names_of(schema)
        """The names that ``fields`` can select."""
        self._narrow = lru_cache(maxsize=MAX_SELECTIONS)(self._compile)
        self._substitutes: dict[type[ma.Schema], Serializer] = {}
        self.names: list[str] = []
        self._positions: dict[str, Position] = {  # of values that share a column
            name: (column, index)
            for column, element in columns.items()
            for index, name in enumerate(getattr(element.type, "names", ()))
        }
        self.row: Callable[[Row], dict[str, Any]] = _compiled(
            schema, selection, self._of_row, whole=columns
        )
        """Function that converts a row with values in the order of ``columns``."""
        self.record: Callable[[Mapping[str, Any]], dict[str, Any]] = _compiled(
            schema, selection, self._of_record, whole={}
        )
        """Function that converts a record with values by column name."""
        self.columns = tuple(columns[name] for name in self.names)

    def only(self, selection: Mapping[str, Any] | None) -> Serializer:
        """Return the serializer for a selection of ``fields``, with fewer keys and columns.

        Unknown names are removed first, so that they do not fill the cache.

        Raises:
            InvalidParams: the request is strict and selects an unknown name.
        """
        if selection is None:
            return self
        require_known(selection, self.selectable)
        return self._narrow(_frozen(selection, self.selectable))

    def for_schemas(self, schemas: Mapping[type[ma.Schema], type[ma.Schema]]) -> Serializer:
        """Return the serializer of the schema that replaces this schema, or this serializer."""
        schema = schemas.get(self.schema)
        if schema is None:
            return self
        if schema not in self._substitutes:
            self._substitutes[schema] = Serializer(schema, self._all_columns)
        return self._substitutes[schema]

    def rows(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        """Convert several rows with values in the order of ``columns``."""
        row = self.row
        return [row(values) for values in rows]

    def _compile(self, frozen: Frozen) -> Serializer:
        return Serializer(self.schema, self._all_columns, _thawed(frozen))

    def _of_row(self, name: str) -> Position:
        """Return the position of a value in a row."""
        column, index = self._positions.get(name, (name, None))
        if column not in self.names:
            self.names.append(column)
        return self.names.index(column), index

    def _of_record(self, name: str) -> Position:
        """Return the position of a value in a record."""
        return self._positions.get(name, (name, None))


def _compiled(
    schema: type[ma.Schema],
    selection: Mapping[str, Any] | None,
    position_of: Callable[[str], Position],
    whole: Container[str],
) -> Callable[[Any], dict[str, Any]]:
    """Return a function that creates the object of a schema.

    It is a single expression of Python, compiled from the names of the schema. A function for each
    value would take a tenth of a list of 100 orders or customers more.

    Args:
        selection: the selected keys, or None for all keys.
        position_of: function that returns the position of a column value.
        whole: names of Parts that have a column for the whole object.
    """
    wires: dict[str, Wire] = {}

    def expression(
        schema: type[ma.Schema], selection: Mapping[str, Any] | None, prefix: str
    ) -> str:
        """Return the expression of an object whose columns have a prefix."""
        parts = []
        for key, field in schema().fields.items():
            if isinstance(field, OnRequest) or (selection is not None and key not in selection):
                continue
            inner = None if selection is None else selection[key]
            if isinstance(field, Part) and inner is None and key in whole:
                value = _item(position_of(key))
            elif isinstance(field, Part):
                value = expression(field.part, inner, field.prefix)
            elif not isinstance(field, Output):
                raise TypeError(f"{schema.__name__}.{key} is not an output field")
            elif inner is not None and not isinstance(field, Lines):
                continue  # not an object
            else:
                value = _item(position_of(prefix + (field.attribute or key)))
                wire = field.wire if inner is None else partial(narrowed, selection=inner)
                if wire is not None:
                    name = f"wire_{len(wires)}"
                    wires[name] = wire
                    is_kept = f"{value} if type({value}) is str else " if field.keeps_text else ""
                    value = f"{is_kept}{name}({value})"
            parts.append(f"{key!r}: {value}")
        return f"{{{', '.join(parts)}}}"

    source = f"lambda row: {expression(schema, selection, '')}"
    convert: Callable[[Any], dict[str, Any]]
    convert = eval(source, wires)  # noqa: S307  # nosec B307  # only names of this package
    return convert


def _item(position: Position) -> str:
    """Return the expression of a value of a row."""
    column, index = position
    return f"row[{column!r}]" if index is None else f"row[{column!r}][{index}]"


def _names_of(schema: type[ma.Schema]) -> Names:
    """Return the names in the objects of a schema in order."""
    return {key: names_in(field) for key, field in schema().fields.items()}


def names_in(field: ma.fields.Field[Any]) -> Names | None:
    """Return the names in the value of a field, or None if it has none, or they are not known."""
    if isinstance(field, Part):
        return _names_of(field.part)
    if isinstance(field, Lines):
        return _names_of(field.line)
    if isinstance(field, either):
        return {name: below for kind in field.schemas for name, below in _names_of(kind).items()}
    return None


def require_known(selection: Mapping[str, Any], names: Names) -> None:
    """Raise InvalidParams, with the nearest name, if a strict request selects an unknown name."""
    if isinstance(selection, StrictSelection):
        selected = filter(None, _dotted(selection, within=False))
        unknown = unknown_names(selected, set(_dotted(names, within=True)), "field")
        if unknown:
            raise InvalidParams({"fields": " ".join(each.message() for each in unknown)})


def _dotted(names: Mapping[str, Any], *, within: bool) -> Iterator[str]:
    """Yield names as ``fields`` contains them.

    Args:
        names: the names, each with the names within it, or None.
        within: whether to yield a name that has names within it on its own, too.
    """
    for name, below in names.items():
        if below is None or within:
            yield name
        for inner in below or ():
            yield f"{name}.{inner}"


def _frozen(selection: Mapping[str, Any], names: Names) -> Frozen:
    """Return a hashable selection of known names in schema order, for use as a cache key."""
    return tuple(
        (key, None if (inner := selection[key]) is None else _frozen(inner, below or {}))
        for key, below in names.items()
        # A selection within a value that is not an object is unknown.
        if key in selection and (selection[key] is None or below is not None)
    )


def _thawed(frozen: Frozen) -> dict[str, Any]:
    return {key: None if inner is None else _thawed(inner) for key, inner in frozen}


def narrowed(value: Any, selection: Mapping[str, Any] | None) -> Any:
    """Return the selected keys of an object, or of each object in a list, in original order."""
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
