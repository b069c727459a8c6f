"""Writing of the metadata of imported records, with the IDs of the source where they are unused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, delete, exists, select
from sqlalchemy.orm import Session

from app.db.bulk_inserts import insert_values
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ITEM_METADATA, ORDER_REFUNDS
from app.plugins.woocommerce.importer.convert.converted import Pending
from app.plugins.woocommerce.importer.target.ids import TargetIds
from app.services.common.metadata import MetadataTable
from app.services.orders.items import KINDS as ITEM_LISTS

_IDS, _ITEMS = bindparam("ids", type_=IdList), bindparam("items", type_=IdList)

Row = tuple[Any, ...]


class MetadataWriter:
    """Writes the metadata of records and of their items, in place of that of an earlier import."""

    def __init__(self, ids: TargetIds, *, new_ids: bool) -> None:
        self._ids = ids
        self._new_ids = new_ids

    def write(self, session: Session, kind: MetadataTable, written: Sequence[Pending]) -> None:
        """Store the metadata of records."""
        changed = [each.target_id for each in written if each.imported]
        if changed:
            session.execute(delete(kind.table).where(kind.of_records), {"ids": changed})
        names = ("id", "key", "value", "found_value", "internal", kind.record_id.name)
        rows = [
            (*entry, record_id)
            for each in written
            for record_id in (each.target_id,)
            for entry in each.converted.metadata
        ]
        self._insert(session, kind.table, names, rows)

    def write_items(self, session: Session, written: Sequence[Pending], order: str) -> None:
        """Store metadata of items of records whose column ``order`` has the ID of the order."""
        changed = [each for each in written if each.imported]
        if changed:
            orders = [each.values[order] for each in changed]
            of_orders = is_one_of(ITEM_METADATA.c.order_id, _IDS)
            if order == "id":  # also of items that the order does not have any more
                items = _items_of_refunds(session, orders)
                chosen = ~is_one_of(ITEM_METADATA.c.item_id, _ITEMS)
            else:
                items = [item_id for each in changed for item_id in _items_of(each.values)]
                chosen = is_one_of(ITEM_METADATA.c.item_id, _ITEMS)
            statement = delete(ITEM_METADATA).where(of_orders, chosen)
            session.execute(statement, {"ids": orders, "items": items})
        names = ("id", "order_id", "item_id", "key", "value", "internal")
        rows = [
            (entry_id, each.values[order], item_id, key, value, internal)
            for each in written
            for item_id, entries in each.converted.items_metadata.items()
            for entry_id, key, value, _, internal in entries
        ]
        self._insert(session, ITEM_METADATA, names, rows)

    def _insert(
        self, session: Session, table: Table, names: Sequence[str], rows: Sequence[Row]
    ) -> None:
        if rows:
            rows = self._with_ids(session, table, rows)
            insert_values(session.connection(), table.name, names, rows)

    def _with_ids(self, session: Session, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows with new IDs in place of those that are in use."""
        seen = {row[0] for row in rows}
        if not self._new_ids:
            of_range = exists().where(table.c.id.between(min(seen), max(seen)))
            used = select(table.c.id).where(is_one_of(table.c.id, _IDS), of_range)
            taken = session.scalars(used, {"ids": list(seen)}).all()
            if not taken and 0 not in seen and len(seen) == len(rows):
                return rows
            seen = {0, *taken}
        without = []
        for place, row in enumerate(rows):
            if row[0] in seen:
                without.append(place)
            seen.add(row[0])
        found = list(rows)
        for place, new in zip(without, self._ids.new(session, table, len(without)), strict=True):
            found[place] = (new, *found[place][1:])
        return found


def _items_of(values: Mapping[str, Any]) -> Iterator[int]:
    """Yield the IDs of the items of an order or of a refund."""
    for name in ITEM_LISTS:
        for item in values.get(name, ()):
            yield item.get("item_id", item["id"])


def _items_of_refunds(session: Session, orders: Sequence[int]) -> list[int]:
    of_orders = is_one_of(ORDER_REFUNDS.c.order_id, _IDS)
    found = session.scalars(select(ORDER_REFUNDS.c.line_items).where(of_orders), {"ids": orders})
    return [item.get("item_id", 0) for items in found for item in items]
