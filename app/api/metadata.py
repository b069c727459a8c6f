"""Metadata in responses: which of it a request asks for, and its place in records (records 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.api.dialect import Dialect, current_dialect
from app.api.serializers import Object, Selection, Serializer
from app.db.read_pool import fetch
from app.db.records import Row
from app.schemas.fields.query import StrictSelection
from app.services.common.metadata import (
    ITEM,
    ITEMS_METADATA,
    METADATA,
    WRITTEN,
    MetadataTable,
    Shown,
    fetch_entries,
    first_values,
)

_KEY = f"{METADATA}."
"""Beginning of a name in ``fields`` that selects a key of the metadata of items."""


class WantedMetadata:
    """The metadata that a response contains.

    Args:
        serializer: the serializer of the records.
        query: the loaded query with ``selection`` and ``meta``; None for the response to a write.

    Attributes:
        selection: the selection of ``fields`` without metadata.
        has_items: whether the metadata of items is wanted.
        is_wanted: whether the records or their items have metadata.
    """

    def __init__(self, serializer: Serializer, query: Selection) -> None:
        found = serializer.metadata
        self._name = found[0] if found else METADATA
        self._field = found[1] if found else None
        # A dialect that hides keys has no metadata of items.
        is_native = self._field is not None and self._field.hides is None
        self._lists_of_schema = serializer.lists_with_metadata if is_native else frozenset()
        self._all = self._field is not None and query is not None and query.get("meta") == "true"
        # The keys of the records and of the items of each list; None for all keys.
        self._keys: Selection = None if self._all else {}
        self._of_record = self._all
        self._lists: dict[str, Selection] = {}
        if self._all:
            self._lists = dict.fromkeys(self._lists_of_schema)
        # Lists whose IDs are selected only to find the metadata of items.
        self._without_ids: set[str] = set()
        self.selection: Selection = None if query is None else query["selection"]
        if self.selection is not None:
            self.selection = self._without_metadata(self.selection)
        self.has_items = bool(self._lists)
        self.is_wanted = self._of_record or self.has_items

    def _without_metadata(self, selection: Mapping[str, Any]) -> Selection:
        rest: Object = StrictSelection() if isinstance(selection, StrictSelection) else {}
        for name, inner in selection.items():
            if name == self._name and self._field:
                self._of_record = True
                self._keys = None if self._all else inner
            elif name in self._lists_of_schema and inner is not None:
                rest[name] = self._without_metadata_of_items(name, inner)
            else:
                rest[name] = inner
        return rest

    def _without_metadata_of_items(self, name: str, inner: Mapping[str, object]) -> Object:
        keys = {each.removeprefix(_KEY): None for each in inner if each.startswith(_KEY)}
        rest = {each: None for each in inner if each != METADATA and not each.startswith(_KEY)}
        if METADATA in inner or keys or self._all:
            self._lists[name] = None if METADATA in inner or self._all else keys
            if "id" not in rest:
                rest["id"] = None
                self._without_ids.add(name)
        return rest

    def add(self, kind: MetadataTable, objects: list[Object], ids: Sequence[int]) -> list[Object]:
        """Add the metadata of their records to objects, read in one statement. Return them."""
        found = fetch_entries(fetch, {kind: ids, ITEM: ids if self._lists else ()})
        for each, record_id in zip(objects, ids, strict=True):
            own = found[kind].get(record_id, {}).get(0)
            self.set_found(each, own, found[ITEM].get(record_id, {}))
        return objects

    def set_found(self, shown: Object, own: Shown | None, of_items: Mapping[int, Shown]) -> None:
        """Add its entries to an object, and those of its items by the ID of the item."""
        for name, keys in self._lists.items():
            for item in shown.get(name, ()):
                item[METADATA] = self._chosen(of_items.get(item["id"]), keys)
                if name in self._without_ids:
                    del item["id"]
        if self._of_record:
            shown[self._name] = self._chosen(own, self._keys)

    def add_written(self, shown: Object, record: Mapping[str, Any]) -> Object:
        """Return the object of a written record, with the metadata that the request wrote."""
        if self._field is None or not self._field.is_in_writes:
            return shown
        if ITEMS_METADATA in record:
            of_items = record[ITEMS_METADATA]
            shown = dict(shown)
            for name in self._lists_of_schema & shown.keys():
                shown[name] = [
                    {**item, METADATA: of_items.get(item["id"], {})} for item in shown[name]
                ]
        return {**shown, self._name: record[METADATA]} if METADATA in record else shown

    def _chosen(self, entries: Shown | None, keys: Selection) -> Object:
        if not entries:  # as most items
            return {}
        values, hides = first_values(entries), self._field.hides if self._field else None
        if keys is not None:
            values = {key: value for key, value in values.items() if key in keys}
        if hides:
            values = {key: value for key, value in values.items() if not key.startswith(hides)}
        return values


class RecordSerializer:
    """Converts rows to objects of a response, with metadata if the request asks for it.

    Args:
        query: the loaded query of a read; None for the response to a write.
        dialect: the dialect of the objects, by default that of the request. Events have the native
            form, whatever the dialect of the request is (events 1).

    Raises:
        InvalidParams: the request is strict and selects an unknown name.
    """

    def __init__(
        self,
        serializer: Serializer,
        kind: MetadataTable,
        query: Mapping[str, object] | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        serializer = serializer.for_schemas((dialect or current_dialect()).schemas)
        self._kind = kind
        self._wanted = WantedMetadata(serializer, query)
        selection = self._wanted.selection
        self._serializer = serializer if selection is None else serializer.only(selection)
        self.columns = self._serializer.columns

    def rows(self, rows: Sequence[Row]) -> list[Object]:
        """Return the objects of rows, whose last value is the ID of the record."""
        return self.completed(self.plain(rows), rows)

    def plain(self, rows: Sequence[Row]) -> list[Object]:
        """Return the objects of rows without metadata."""
        return self._serializer.rows(rows)

    def completed(self, objects: list[Object], rows: Sequence[Row]) -> list[Object]:
        """Return objects with what further statements read, such as metadata."""
        if not (rows and self._wanted.is_wanted):
            return objects
        return self._wanted.add(self._kind, objects, [row[-1] for row in rows])

    def records(self, records: Sequence[Mapping[str, Any]]) -> list[Object]:
        """Return the objects of records by column name, with what the request wrote on request."""
        objects = self._serializer.records(records)
        for shown, record in zip(objects, records, strict=True):
            if written := record.get(WRITTEN):
                requested = self._serializer.requested(record)
                shown |= {name: value for name, value in requested.items() if name in written}
        return list(map(self._wanted.add_written, objects, records))

    def record(self, record: Mapping[str, Any]) -> Object:
        """Return the object of a record by column name, with what the request wrote on request."""
        return self.records([record])[0]
