"""Serializers of response schemas: columns to select, and conversion of rows.

The schema remains the single source of names, order and documentation. A test verifies that the
output of a serializer equals ``Schema().dump()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from operator import itemgetter
from typing import Any

import marshmallow as ma

from app.db.records import NamedColumns, Row
from app.errors import InvalidParams, joined
from app.schemas.fields.output import Composite, Lines, Metadata, OnRequest, Output, either
from app.schemas.fields.query import StrictSelection
from app.schemas.strict import unknown_names

Selection = Mapping[str, Any] | None
"""The names that ``fields`` selects, each with those in its object; None for all names."""

Names = Mapping[str, "Names | None"]
"""The names in an object, each with the names in its nested object, or None."""

Field = ma.fields.Field[object]
Object = dict[str, Any]
"""An object of a response."""

Fields = Mapping[str, "tuple[Field, Fields | None]"]
"""The fields of an object by name, each with the fields of its ``Composite``, or None."""

Position = tuple[Any, int | None]
"""The column of a value, and its index within a column that contains several values."""

Convert = Callable[[Any], Any]
Rows = Sequence[Any]
ValuesOf = Callable[[Rows], Sequence[object]]
ConvertAll = Callable[[Rows], list[Object]]


class Serializer:
    """Converts rows to the objects of a response.

    Args:
        columns: the columns of the values by name. A Part can have a column for the whole object,
            and several values can share a column.

    Attributes:
        selectable: the names that ``fields`` can select.
        metadata: the name and the field of the metadata in the schema, if it has metadata.
        lists_with_metadata: the names of the lists of items that have metadata.
        names: the names of the columns, in the order of a row.
        columns: the columns to select.
        rows: function that converts rows with values in the order of ``columns``.
        records: function that converts records with values by column name.
    """

    def __init__(self, schema: type[ma.Schema], columns: NamedColumns) -> None:
        self.schema = schema
        self.selectable = _names_of(schema)
        self.metadata = _metadata_of(schema)
        self.lists_with_metadata = frozenset(
            name
            for name, field in schema().fields.items()
            if isinstance(field, Lines) and _metadata_of(field.line)
        )
        self._fields = _fields_of(schema)
        self._all_columns = columns
        self._substitutes: dict[type[ma.Schema], Serializer] = {}
        self._requested = {name: field for name, field in self._fields.items() if _waits(field[0])}
        self._positions: dict[str, Position] = {  # of values that share a column
            name: (column, index)
            for column, element in columns.items()
            for index, name in enumerate(getattr(element.type, "names", ()))
        }
        self._convert_requested = self._converter(
            self._requested, dict.fromkeys(self._requested), self._of_record, {}
        )
        self._select(None)

    def _select(self, selection: Mapping[str, object] | None) -> None:
        self.names: list[str] = []
        self.rows = self._converter(self._fields, selection, self._of_row, self._all_columns)
        self.records = self._converter(self._fields, selection, self._of_record, {})
        self.columns = tuple(self._all_columns[name] for name in self.names)

    def only(self, selection: Mapping[str, object] | None) -> Serializer:
        """Return the serializer for a selection of ``fields``, with fewer keys and columns.

        Raises:
            InvalidParams: the request is strict and selects an unknown name.
        """
        if selection is None:
            return self
        require_known(selection, self.selectable)
        narrow = copy(self)
        narrow._select(selection)
        return narrow

    def complete(self) -> Serializer:
        """Return the serializer with the values that are otherwise shown on request."""
        return self.only(dict.fromkeys(self._fields)) if self._requested else self

    def for_schemas(self, schemas: Mapping[type[ma.Schema], type[ma.Schema]]) -> Serializer:
        """Return the serializer of the schema that replaces this schema, or this serializer."""
        schema = schemas.get(self.schema)
        if schema is None:
            return self
        if schema not in self._substitutes:
            self._substitutes[schema] = Serializer(schema, self._all_columns)
        return self._substitutes[schema]

    def row(self, row: Row) -> Object:
        """Convert a row with values in the order of ``columns``."""
        return self.rows([row])[0]

    def record(self, record: Mapping[str, object]) -> Object:
        """Convert a record with values by column name."""
        return self.records([record])[0]

    def requested(self, record: Mapping[str, object]) -> Object:
        """Convert only the values of a record that are shown on request."""
        return self._convert_requested([record])[0]

    def _of_row(self, name: str) -> Position:
        """Return the position of a value in a row."""
        column, index = self._positions.get(name, (name, None))
        if column not in self.names:
            self.names.append(column)
        return self.names.index(column), index

    def _of_record(self, name: str) -> Position:
        """Return the position of a value in a record."""
        return self._positions.get(name, (name, None))

    def _converter(
        self,
        fields: Fields,
        selection: Selection,
        position_of: Callable[[str], Position],
        whole: Mapping[str, object],
        prefix: str = "",
    ) -> ConvertAll:
        """Return a function that creates the objects of some fields, one for each row.

        The columns of copied values come first, so that they are a part of each row.

        Args:
            selection: the selected keys, or None for all keys.
            position_of: function that returns the position of a column value.
            whole: names of Parts that have a column for the whole object.
            prefix: beginning of the names of the columns.
        """
        copied: dict[str, object] = {}
        later: dict[str, Callable[[], ValuesOf]] = {}
        wires: list[tuple[str, Convert, bool]] = []
        blank: dict[str, object] = {}
        names: set[str] = set()
        for key, (field, part) in fields.items():
            if _waits(field) if selection is None else key not in selection:
                continue
            inner = None if selection is None else selection[key]
            if part is not None and not (inner is None and key in whole):
                below: Any = field
                later[key] = partial(self._converter, part, inner, position_of, whole, below.prefix)
            elif isinstance(field, Output) and inner is not None and not isinstance(field, Lines):
                continue  # not an object
            else:
                name = key if part is not None else prefix + (field.attribute or key)
                wire = getattr(field, "wire", None) if inner is None else _narrowing(inner)
                if name in self._positions or name in names:
                    later[key] = partial(_values, position_of, name)
                else:
                    names.add(name)
                    copied[key], _ = position_of(name)
                if wire is not None:
                    wires.append((key, wire, getattr(field, "keeps_text", False)))
            blank[key] = None
        computed = {key: values_of() for key, values_of in later.items()}
        return _joined(blank, copied, wires, computed)


def _joined(
    blank: Mapping[str, object],
    copied: Mapping[str, object],
    wires: Sequence[tuple[str, Convert, bool]],
    computed: Mapping[str, ValuesOf],
) -> ConvertAll:
    """Return a function that creates an object from each row.

    The values of a row are copied together, and those of a key are converted together, because a
    call for each value takes a tenth of a long list.

    Args:
        blank: the keys of the object in order.
        copied: the columns of values by key.
        wires: functions that convert values, with whether they keep text.
        computed: functions that return the other values of rows.
    """
    keys, template, places = tuple(copied), dict(blank), list(copied.values())
    # One more than there are keys, so that the values are a tuple even of a single key.
    values = itemgetter(*places, *places[:1]) if places else tuple
    first = places[0] if places else None
    if isinstance(first, int) and places == [*range(first, first + len(places))]:
        values = itemgetter(slice(first, first + len(places)))  # a part of the row

    def convert(rows: Rows) -> list[Object]:
        objects = []
        for row in rows:
            shown = template.copy()
            shown.update(zip(keys, values(row), strict=False))
            objects.append(shown)
        for key, compute in computed.items():
            for shown, value in zip(objects, compute(rows), strict=True):
                shown[key] = value
        for key, wire, keeps_text in wires:
            for shown in objects:
                value = shown[key]
                if not (keeps_text and type(value) is str):
                    shown[key] = wire(value)
        return objects

    return convert


def _waits(field: Field) -> bool:
    """Return whether a response contains a value only on request."""
    return isinstance(field, Output | Composite) and field.on_request


def _narrowing(selection: Mapping[str, object]) -> Convert:
    return partial(narrowed, selection=selection)


def _values(position_of: Callable[[str], Position], name: str) -> ValuesOf:
    """Return a function that reads a value of each row, which can be within a column."""
    column, index = position_of(name)
    if index is None:
        return lambda rows: [row[column] for row in rows]
    return lambda rows: [row[column][index] for row in rows]


def _fields_of(schema: type[ma.Schema]) -> Fields:
    """Return the output fields of a schema, except those that only some responses contain."""
    found: dict[str, tuple[Field, Fields | None]] = {}
    for key, field in schema().fields.items():
        if isinstance(field, Composite):
            found[key] = field, _fields_of(field.part)
        elif not isinstance(field, Output):
            raise TypeError(f"{schema.__name__}.{key} is not an output field")
        elif not isinstance(field, OnRequest):
            found[key] = field, None
    return found


def _metadata_of(schema: type[ma.Schema]) -> tuple[str, Metadata] | None:
    """Return the name and the field of the metadata in a schema."""
    found = schema().fields.items()
    return next(((name, field) for name, field in found if isinstance(field, Metadata)), None)


def _names_of(schema: type[ma.Schema]) -> Names:
    """Return the names in the objects of a schema in order."""
    return {key: names_in(field) for key, field in schema().fields.items()}


def names_in(field: Field) -> Names | None:
    """Return the names in the value of a field, or None if it has none, or they are not known."""
    if isinstance(field, Composite):
        return _names_of(field.part)
    if isinstance(field, Lines):
        return _names_of(field.line)
    if isinstance(field, either):
        return {name: below for kind in field.schemas for name, below in _names_of(kind).items()}
    return None


def require_known(selection: Mapping[str, object], names: Names) -> None:
    """Raise InvalidParams, with the nearest name, if a strict request selects an unknown name."""
    if isinstance(selection, StrictSelection):
        selected = filter(None, _dotted(selection, within=False))
        unknown = unknown_names(selected, set(_dotted(names, within=True)), "field")
        if unknown:
            raise InvalidParams({"fields": joined(each.reason() for each in unknown)})


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


def narrowed(value: object, selection: Selection) -> Any:
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
