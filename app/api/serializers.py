"""Serializers of response schemas: columns to select, and conversion of rows.

The schema remains the single source of names, order and documentation. A test verifies that the
output of a serializer equals ``Schema().dump()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
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

Convert = Callable[[Any], Any]
Rows = Sequence[Any]
ConvertAll = Callable[[Rows], list[Object]]
Values = Iterable[Any]
Columns = Sequence[Values]
"""The values of each column."""
ConvertColumns = Callable[[Rows, Columns], list[Object]]
_Key = tuple[str, int, int | None, Convert | None, bool]
"""A key, the place of its column, the index of its value in a column that contains several values,
the function that converts the value, and whether it returns text unchanged."""


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
        self._positions: dict[str, tuple[str, int]] = {  # of values that share a column
            name: (column, index)
            for column, element in columns.items()
            for index, name in enumerate(getattr(element.type, "names", ()))
        }
        self._convert_requested = self._from_records(
            self._requested, dict.fromkeys(self._requested)
        )
        self._select(None)

    def _select(self, selection: Mapping[str, object] | None) -> None:
        self.names: list[str] = []
        objects = self._converter(self._fields, selection, self.names, self._all_columns)
        self.rows: ConvertAll = lambda rows: objects(rows, [*zip(*rows, strict=True)])
        self.records = self._from_records(self._fields, selection)
        self.columns = tuple(self._all_columns[name] for name in self.names)

    def _from_records(self, fields: Fields, selection: Selection) -> ConvertAll:
        """Return the function that converts records with values by column name."""
        names: list[str] = []
        objects = self._converter(fields, selection, names, {})

        def convert(records: Rows) -> list[Object]:
            rows = [[record[name] for name in names] for record in records]
            return objects(records, [*zip(*rows, strict=True)])

        return convert

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

    def _converter(
        self,
        fields: Fields,
        selection: Selection,
        names: list[str],
        whole: Mapping[str, object],
        prefix: str = "",
    ) -> ConvertColumns:
        """Return a function that creates the objects of some fields, one for each row.

        Args:
            selection: the selected keys, or None for all keys.
            names: the names of the columns, in their order. This function adds those it needs.
            whole: names of Parts that have a column for the whole object.
            prefix: beginning of the names of the columns.
        """
        keys: list[_Key] = []
        parts: dict[str, ConvertColumns] = {}
        blank: Object = {}
        for key, (field, part) in fields.items():
            if _waits(field) if selection is None else key not in selection:
                continue
            inner = None if selection is None else selection[key]
            if part is not None and not (inner is None and key in whole):
                below: Any = field
                parts[key] = self._converter(part, inner, names, whole, below.prefix)
            elif isinstance(field, Output) and inner is not None and not isinstance(field, Lines):
                continue  # not an object
            else:
                name = key if part is not None else prefix + (field.attribute or key)
                column, index = self._positions.get(name, (name, None))
                if column not in names:
                    names.append(column)
                wire = getattr(field, "wire", None) if inner is None else _narrowing(inner)
                keeps_text = wire is not None and getattr(field, "keeps_text", False)
                keys.append((key, names.index(column), index, wire, keeps_text))
            blank[key] = None
        return partial(_objects, blank, keys, parts)


def _objects(
    blank: Object,
    keys: Sequence[_Key],
    parts: Mapping[str, ConvertColumns],
    rows: Rows,
    columns: Columns,
) -> list[Object]:
    """Return an object for each row.

    The values of a key are converted together, because a call for each value takes a tenth of a
    long list. A copy of an object with all keys has room for them, unlike a new one.

    Args:
        blank: an object with the keys in their order.
        parts: functions that create the objects within the objects.
    """
    objects = [blank.copy() for _ in rows]
    if not rows:
        return objects
    for name, place, index, wire, keeps_text in keys:
        values: Values = columns[place]
        if index is not None:
            values = [value[index] for value in values]
        if keeps_text:
            for shown, value in zip(objects, values):  # noqa: B905  # a third of a single record
                shown[name] = value if type(value) is str or wire is None else wire(value)
            continue
        if wire is not None:
            values = map(wire, values)
        for shown, value in zip(objects, values):  # noqa: B905  # as above
            shown[name] = value
    for name, part in parts.items():
        for shown, value in zip(objects, part(rows, columns), strict=True):
            shown[name] = value
    return objects


def _waits(field: Field) -> bool:
    """Return whether a response contains a value only on request."""
    return isinstance(field, Output | Composite) and field.on_request


def _narrowing(selection: Mapping[str, object]) -> Convert:
    return partial(narrowed, selection=selection)


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
