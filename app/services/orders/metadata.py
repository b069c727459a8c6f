"""Changes of the metadata of orders, of refunds and of their items (records 1 and 5)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.db.records import Record
from app.services.common.bulk import BulkItem, Data, Writes
from app.services.common.metadata import BEFORE, ITEM, ITEMS_METADATA, METADATA, ORDER, REFUND
from app.services.common.metadata_rules import Metadata, MetadataEntry, shown
from app.services.common.metadata_writes import (
    Key,
    MetadataWrites,
    count_change,
    delete_items,
    key_of,
)
from app.services.orders.items import KINDS, OrderItems


@dataclass(frozen=True, slots=True)
class ItemChanges:
    """Changes of the items of an order that concern metadata.

    Attributes:
        given: the metadata of the request by the ID of the item.
        places: its name in the request, such as ``order.line_items[0].metadata``.
        ids: IDs of the items after the request.
        removed: IDs of the items that the request removes.
    """

    given: Mapping[int, Any]
    places: Mapping[int, str]
    ids: frozenset[int]
    removed: frozenset[int]

    @classmethod
    def take(cls, before: OrderItems, after: OrderItems) -> ItemChanges:
        """Return the changes of a request, and remove its metadata from the items."""
        given = {
            item["id"]: item.pop(METADATA)
            for found in after.lists.values()
            for item in found
            if METADATA in item
        }
        places = {item_id: f"{after.places[item_id]}.{METADATA}" for item_id in given}
        return cls(given, places, after.ids(), before.ids() - after.ids())


@dataclass(frozen=True, slots=True)
class ChangedMetadata:
    """The metadata of an order and of its items after an item of a request.

    Attributes:
        of_order: the entries of the order; None if they are not changed.
        of_items: the changed entries of items, by the IDs of the order and of the item.
        items: the changes of the items.
    """

    order_id: int
    of_order: list[MetadataEntry] | None
    of_items: Mapping[Key, list[MetadataEntry]]
    items: ItemChanges


@dataclass(slots=True)
class OrderMetadataWrites:
    """The changes of the metadata of orders and of their items in one transaction.

    Attributes:
        removed: the metadata before the write of the items of an order, by a removed item.
    """

    orders: MetadataWrites
    items: MetadataWrites
    removed: dict[tuple[int, int], dict[int, object]] = field(default_factory=dict)

    @classmethod
    def of_items(
        cls, session: Session, items: Sequence[BulkItem], stored: Container[int]
    ) -> OrderMetadataWrites:
        """Return the stored entries that the items of a request can change.

        Args:
            stored: IDs of the orders that can be updated, which are locked.
        """
        found = {
            item.id: given
            for item in items
            if item.id is not None
            and item.id in stored
            and (given := list(_given_to_items(item.data)))
        }
        return cls(
            MetadataWrites.of_items(session, ORDER, items, stored),
            MetadataWrites.read(
                session, ITEM, found, [each for several in found.values() for each in several]
            ),
        )

    def changed(
        self,
        writes: Writes[Any],
        data: Data,
        items: ItemChanges,
        before: Record | None,
    ) -> ChangedMetadata:
        """Return the metadata of an order and of its items after an item of the request.

        Nothing is kept yet: the item can still be rejected, because a coupon has no use left.

        Args:
            before: the stored order, or None for a new one.

        Raises:
            ShopError: the result is beyond a limit, and larger than before in this respect.
        """
        order_id = key_of(writes, before)
        of_items: dict[Key, list[MetadataEntry]] = {
            (order_id, item_id): self.items.changed(
                (order_id, item_id), each, items.places[item_id]
            )
            for item_id, each in items.given.items()
        }
        of_order = None
        if METADATA in data:
            of_order = self.orders.changed(order_id, data[METADATA], f"order.{METADATA}")
        return ChangedMetadata(order_id, of_order, of_items, items)

    def keep(self, changed: ChangedMetadata, before: Record | None, after: Record) -> None:
        """Let ``write`` store changed metadata, which other items of the request see.

        Args:
            after: the order after the item. It gets another revision.
        """
        order_id, items = changed.order_id, changed.items
        if changed.of_order is not None:
            self.orders.keep(order_id, changed.of_order, before, after)
        if before and (items.given or items.removed):
            earlier = self._shown(order_id, items.ids | items.removed)
            self.items.show(after, earlier, ITEMS_METADATA + BEFORE)
            self.removed |= {(order_id, item_id): earlier for item_id in items.removed}
        self.items.entries |= changed.of_items
        for item_id in items.removed:
            self.items.entries.pop((order_id, item_id), None)
        if items.given:
            self.items.show(after, self._shown(order_id, items.ids), ITEMS_METADATA)
            count_change(before, after)

    def _shown(self, order_id: int, ids: Iterable[int]) -> dict[int, object]:
        return {each: shown(self.items.entries.get((order_id, each), ())) for each in ids}

    def write(self, session: Session, new_ids: Sequence[int]) -> None:
        """Write the changes, and add the metadata to the orders."""
        for (order_id, item_id), metadata in delete_items(session, self.removed).items():
            self.removed[order_id, item_id][item_id] = metadata
        self.orders.write(session, new_ids)
        self.items.write(session, new_ids)


@dataclass(slots=True)
class RefundMetadataWrites:
    """The metadata of a refund and of its items in one transaction.

    Attributes:
        of_items: the metadata to show, by the ID of the item of the order.
    """

    refund: MetadataWrites
    items: MetadataWrites
    of_items: dict[int, object] | None = None
    is_shown: bool = False
    before: Metadata = field(default_factory=dict)

    @classmethod
    def of_new(
        cls, order_id: int, items: Sequence[Mapping[str, Any]], data: Data
    ) -> RefundMetadataWrites:
        """Return the metadata of a new refund.

        Args:
            items: the refunded items, in the order of the request.

        Raises:
            ShopError: the metadata is beyond a limit.
        """
        writes = cls(MetadataWrites(REFUND), MetadataWrites(ITEM))
        writes._change(_NEW, data)
        given = data.get("line_items") or ()
        for index, (item, fields) in enumerate(zip(items, given, strict=True)):
            if METADATA in fields:
                key = (order_id, item["item_id"])
                place = f"order_refund.line_items[{index}].{METADATA}"
                entries = writes.items.changed(key, fields[METADATA], place)
                writes.items.entries[key] = entries
                writes.of_items = {**(writes.of_items or {}), item["id"]: shown(entries)}
        return writes

    @classmethod
    def of_stored(
        cls, session: Session, refund_id: int, data: Mapping[str, object]
    ) -> RefundMetadataWrites:
        """Return the change of the metadata of a stored refund, whose order is locked.

        Raises:
            ShopError: the result is beyond a limit, and larger than before in this respect.
        """
        given = [data[METADATA]] if METADATA in data else []
        stored = MetadataWrites.read(session, REFUND, [refund_id] if given else [], given)
        writes = cls(stored, MetadataWrites(ITEM))
        writes._change(refund_id, data)
        return writes

    def _change(self, key: int, data: Data) -> None:
        if METADATA in data:
            place = f"order_refund.{METADATA}"
            self.before = shown(self.refund.entries.get(key, ()))
            self.refund.entries[key] = self.refund.changed(key, data[METADATA], place)
            self.is_shown = True

    def write(self, session: Session, refund: Record) -> None:
        """Write the metadata, and add it to the refund for the response and the event."""
        self.refund.write(session, [refund["id"]])
        self.items.write(session)
        if self.is_shown:
            (entries,) = self.refund.entries.values()
            refund |= {METADATA: shown(entries), METADATA + BEFORE: self.before}
        if self.of_items is not None:
            refund[ITEMS_METADATA] = self.of_items


_NEW = -1
"""Key of the only new record of a transaction."""


def _given_to_items(data: Data) -> Iterator[object]:
    for name in KINDS:
        for item in data.get(name) or ():
            if METADATA in item:
                yield item[METADATA]
