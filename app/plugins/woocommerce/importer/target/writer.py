"""Writing of converted records in bulk: inserts, updates, and records that keep their edits."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Table, bindparam, delete, exists, select, update
from sqlalchemy.orm import Session

from app.conversions.numbers import MAX_COUNT
from app.db import timeouts
from app.db.bulk_inserts import insert_records, insert_values
from app.db.read_pool import ReadRow
from app.db.records import Record
from app.db.session import Model, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ITEM_METADATA, ORDER_REFUNDS
from app.models.imported_record import ERASED
from app.plugins.woocommerce.importer.convert.converted import (
    Converted,
    Imported,
    Pending,
    edited_at,
)
from app.plugins.woocommerce.importer.report import ImportReport
from app.plugins.woocommerce.importer.target.record_map import RecordMap, TargetIds
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
                items = items_of_refunds(session.execute, orders)
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


def _items_of(values: Record) -> Iterator[int]:
    """Yield the IDs of the items of an order or of a refund."""
    for name in ITEM_LISTS:
        for item in values.get(name, ()):
            yield item.get("item_id", item["id"])


def items_of_refunds(
    fetch: Callable[[Any, Any], Iterable[ReadRow]], orders: Sequence[int]
) -> list[int]:
    """Return the IDs of the items of all refunds of orders, read with ``fetch``."""
    of_orders = is_one_of(ORDER_REFUNDS.c.order_id, _IDS)
    rows = fetch(select(ORDER_REFUNDS.c.line_items).where(of_orders), {"ids": orders})
    return [item.get("item_id", 0) for (items,) in rows for item in items]


Hook = Callable[[Session, Sequence[Pending]], None]


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of record.

    Attributes:
        name: the name of the kind in the record map.
        label: its name in the report.
        model: the model of its table.
        resolve_conflicts: called with the records before they are written. It changes values that
            must be unique and that another record of this shop already has.
        after_write: called with the records after they are written.
        metadata: the table of their metadata; None without metadata.
        items_of: the column with the ID of the order to which their items belong; None without
            items.
        references: the kind and the column of records that they refer to, by the names in
            ``Converted.references``.
    """

    name: str
    label: str
    model: type[Model]
    resolve_conflicts: Hook = lambda _session, _pending: None
    after_write: Hook = lambda _session, _pending: None
    metadata: MetadataTable | None = None
    items_of: str | None = None
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table of the records."""
        return self.model.__table__


@dataclass(slots=True)
class _Outcome:
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: list[Converted] = field(default_factory=list)
    erased: list[Converted] = field(default_factory=list)
    written: list[Pending] = field(default_factory=list)


class Writer(Protocol):
    """Writes or compares converted records."""

    records: RecordMap

    def write(self, kind: TargetKind, converted: Sequence[Converted]) -> None:
        """Process records of a kind, ordered by their ID at the source."""


class RecordWriter:
    """Writes the records of one import.

    Args:
        records: the map of records that were imported before.
        overwrite: whether to replace records that were edited in this shop.
        new_ids: whether all records get new IDs, even if the ID at the source is unused.
    """

    def __init__(
        self, records: RecordMap, report: ImportReport, *, overwrite: bool, new_ids: bool
    ) -> None:
        self.records = records
        self.report = report
        self.overwrite = overwrite
        self.ids = TargetIds(dry_run=records.dry_run, new_ids=new_ids)
        self._metadata = MetadataWriter(self.ids, new_ids=new_ids)

    def write(self, kind: TargetKind, converted: Sequence[Converted]) -> None:
        """Write records of a kind, ordered by their ID at the source, in one transaction."""
        if not converted:
            return
        alterations = [list(each.altered) for each in converted]

        def work(session: Session) -> _Outcome:
            for each, before in zip(converted, alterations, strict=True):
                each.altered[:] = before  # the transaction can be retried
            timeouts.lift_limit(session.connection())
            outcome = self._write(session, kind, converted)
            if self.records.dry_run:
                session.rollback()
            return outcome

        outcome = run_in_transaction(work)
        counts = self.report.counts_of(kind.label)
        counts.created += outcome.created
        counts.updated += outcome.updated
        counts.unchanged += outcome.unchanged
        for each in outcome.kept:
            counts.kept += 1
            why = "it was edited in this shop and changed at the source; --overwrite replaces it"
            self.report.line(each.table, each.source_id, "kept", why)
        for each in outcome.erased:
            counts.left_out += 1
            why = "its personal data was erased in this shop"
            self.report.line(each.table, each.source_id, "left_out", why)
        for pending in outcome.written:
            source = pending.converted
            keys = source.altered.keys
            reasons = ["; ".join(source.altered)] if source.altered else []
            reasons += [f"{key} {what}" for key, what in keys.items()]
            counts.altered += bool(reasons)
            for why in reasons:
                self.report.line(source.table, source.source_id, "altered", why)

    def _write(
        self, session: Session, kind: TargetKind, converted: Sequence[Converted]
    ) -> _Outcome:
        outcome = _Outcome()
        known = self.records.known(
            session.execute, kind.name, [each.source_id for each in converted]
        )
        prints = {each.source_id: each.fingerprint() for each in converted}
        present = self._present(session, kind, known, prints)
        created: list[Pending] = []
        updated: list[Pending] = []
        for each in converted:
            imported = known.get(each.source_id)
            if imported is None:
                if not each.is_absent:
                    created.append(Pending(each, each.values | each.resolved))
                    outcome.created += 1
                continue
            if imported.fingerprint == ERASED:
                outcome.erased.append(each)
                continue
            is_same = imported.fingerprint == prints[each.source_id]
            if is_same and not self.overwrite:
                outcome.unchanged += 1
                continue
            stored = present.get(imported.target_id)
            is_edited = stored is None or edited_at(stored) != imported.updated_at
            if is_same and not is_edited:
                outcome.unchanged += 1
            elif is_edited and not self.overwrite:
                outcome.kept.append(each)
            else:
                values = {**each.values, **each.resolved, "id": imported.target_id}
                if stored and "usage_count" in stored:
                    # Add the uses since the import to the uses at the source.
                    here = stored["usage_count"] - (imported.usage_count or 0)
                    values["edited_at"] = None
                    values["usage_count"] = max(0, min(values["usage_count"] + here, MAX_COUNT))
                pending = Pending(each, values, imported)
                (updated if stored else created).append(pending)
                outcome.updated += 1
        self.ids.give(session, kind.name, kind.table, [p for p in created if not p.target_id])
        outcome.written = created + updated
        kind.resolve_conflicts(session, outcome.written)
        if self.records.dry_run:
            pairs = [(each.converted.source_id, each.target_id) for each in outcome.written]
            self.records.stage(kind.name, pairs)
            return outcome
        self._store(session, kind, created, updated, prints)
        return outcome

    def _present(
        self,
        session: Session,
        kind: TargetKind,
        known: Mapping[int, Imported],
        prints: Mapping[int, bytes],
    ) -> dict[int, Record]:
        """Return the stored records that may have to change, locked until the commit."""
        ids = [
            imported.target_id
            for source_id, imported in known.items()
            if self.overwrite or imported.fingerprint != prints[source_id]
        ]
        if not ids:
            return {}
        table = kind.table
        names = ("id", "updated_at", "edited_at", "usage_count")
        columns = [table.c[name] for name in names if name in table.c]
        rows = session.execute(
            select(*columns).where(is_one_of(table.c.id, _ids(ids))).with_for_update()
        )
        return {row["id"]: dict(row) for row in rows.mappings()}

    def _store(
        self,
        session: Session,
        kind: TargetKind,
        created: Sequence[Pending],
        updated: Sequence[Pending],
        prints: Mapping[int, bytes],
    ) -> None:
        table = kind.table
        if updated:
            rows = [{"this": each.target_id, **each.values} for each in updated]
            names = [name for name in updated[0].values if name != "id"]
            statement = update(table).where(table.c.id == bindparam("this"))
            session.execute(statement.values({name: bindparam(name) for name in names}), rows)
        if created:
            insert_records(session, table, [each.values for each in created])
        kind.after_write(session, [*created, *updated])
        if kind.metadata:
            self._metadata.write(session, kind.metadata, [*created, *updated])
        if kind.items_of:
            self._metadata.write_items(session, [*created, *updated], kind.items_of)
        new: list[Record] = []
        changed: list[Record] = []
        for each in [*created, *updated]:
            source_id = each.converted.source_id
            record = {
                "source_id": source_id,
                "target_id": each.target_id,
                "fingerprint": prints[source_id],
                "updated_at": each.values.get("updated_at"),
                "usage_count": each.converted.values.get("usage_count"),
            }
            (changed if each.imported else new).append(record)
        if new:
            self.records.add(session, kind.name, new)
        for record in changed:
            self.records.change(session, kind.name, record)


def _ids(ids: Sequence[int]) -> object:
    return bindparam(None, list(ids), type_=IdList)
