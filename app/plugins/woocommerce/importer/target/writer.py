"""Writing of converted records in bulk: inserts, updates, and records that keep their edits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Table, bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.conversions.emails import ERASED_EMAIL
from app.conversions.numbers import MAX_COUNT
from app.db import timeouts
from app.db.bulk_inserts import insert_records, insert_values
from app.db.read_pool import ReadRow
from app.db.records import Record
from app.db.session import run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ITEM_METADATA, ORDER_REFUNDS
from app.models.imported_record import ERASED
from app.plugins.woocommerce.importer.convert import Converted, Imported, Pending
from app.plugins.woocommerce.importer.report import ImportReport
from app.plugins.woocommerce.importer.target.record_map import RecordMap, Row, TargetIds
from app.services.common.metadata import MetadataTable
from app.services.orders.items import KINDS as ITEM_LISTS

_IDS, _ITEMS = bindparam("ids", type_=IdList), bindparam("items", type_=IdList)


def _write_metadata(
    session: Session, ids: TargetIds, kind: MetadataTable, written: Sequence[Pending]
) -> None:
    """Store the metadata of records, in place of that of an earlier import."""
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
    _insert(session, ids, kind.table, names, rows)


def _write_items(session: Session, ids: TargetIds, written: Sequence[Pending], order: str) -> None:
    """Store metadata of items of records whose column ``order`` has the ID of the order."""
    changed = [each for each in written if each.imported]
    if changed:
        orders = [each.values[order] for each in changed]
        if order == "id":  # also of items that the order does not have any more
            items = items_of_refunds(session.execute, orders)
            chosen = ~is_one_of(ITEM_METADATA.c.item_id, _ITEMS)
        else:
            lists = [each.values.get(name, ()) for each in changed for name in ITEM_LISTS]
            items = [item.get("item_id", item["id"]) for found in lists for item in found]
            chosen = is_one_of(ITEM_METADATA.c.item_id, _ITEMS)
        statement = delete(ITEM_METADATA).where(is_one_of(ITEM_METADATA.c.order_id, _IDS), chosen)
        session.execute(statement, {"ids": orders, "items": items})
    names = ("id", "order_id", "item_id", "key", "value", "internal")
    rows = [
        (entry_id, each.values[order], item_id, key, value, internal)
        for each in written
        for item_id, entries in each.converted.items_metadata.items()
        for entry_id, key, value, _, internal in entries
    ]
    _insert(session, ids, ITEM_METADATA, names, rows)


def _insert(
    session: Session, ids: TargetIds, table: Table, names: Sequence[str], rows: Sequence[Row]
) -> None:
    if rows:
        rows = ids.distinct(session, table, rows)
        insert_values(session.connection(), table.name, names, rows)


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
        table: the table of the records.
        resolve_conflicts: called with the records before they are written. It changes values that
            must be unique and that another record of this shop already has.
        after_write: called with the records after they are written.
        metadata: the table of their metadata; None without metadata.
        items_of: the column with the ID of the order to which their items belong; None without
            items.
        references: the kind and the column of records that they refer to, by the names in
            ``Converted.references``.
        notes_edits: whether each change in this shop moves ``updated_at``. Otherwise the columns
            of a stored record are compared, too.
        lock_first: called with the IDs of stored records before they are locked.
    """

    name: str
    label: str
    table: Table
    resolve_conflicts: Hook = lambda _session, _pending: None
    after_write: Hook = lambda _session, _pending: None
    metadata: MetadataTable | None = None
    items_of: str | None = None
    references: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    notes_edits: bool = True
    lock_first: Callable[[Session, Sequence[int]], None] = lambda _session, _ids: None


@dataclass(slots=True)
class _Outcome:
    unchanged: int = 0
    kept: list[Converted] = field(default_factory=list)
    erased: list[Converted] = field(default_factory=list)
    merged: list[Converted] = field(default_factory=list)
    inserted: list[Pending] = field(default_factory=list)
    updated: list[Pending] = field(default_factory=list)

    @property
    def written(self) -> list[Pending]:
        return [*self.inserted, *self.updated]


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
        counts["unchanged"] += outcome.unchanged
        for each in outcome.kept:
            why = "it was edited in this shop and changed at the source; --overwrite replaces it"
            self.report.add(kind.label, "kept", each.table, each.source_id, why)
        left_out = {
            "its personal data was erased in this shop": outcome.erased,
            "it was merged into another account of this shop": outcome.merged,
        }
        for why, records in left_out.items():
            for each in records:
                self.report.add(kind.label, "left_out", each.table, each.source_id, why)
        for pending in outcome.written:
            counts["updated" if pending.imported else "created"] += 1
            source = pending.converted
            reasons = ["; ".join(source.altered)] if source.altered else []
            reasons += [f"{key} {what}" for key, what in source.altered.keys.items()]
            counts["altered"] += bool(reasons)
            for why in reasons:
                self.report.line(source.table, source.source_id, "altered", why)

    def _write(
        self, session: Session, kind: TargetKind, converted: Sequence[Converted]
    ) -> _Outcome:
        outcome = _Outcome()
        prints = {each.source_id: each.fingerprint() for each in converted}
        known = self.records.known(session.execute, kind.name, list(prints))
        changing = [
            imported.target_id
            for source_id, imported in known.items()
            if self.overwrite or imported.fingerprint != prints[source_id]
        ]
        present = _locked(session, kind, changing) if changing else {}
        merged = self.records.targets(kind.name, list(known)) if kind.name == "customer" else {}
        for each in converted:
            imported, fingerprint = known.get(each.source_id), prints[each.source_id]
            if imported is None:
                if not each.is_absent:
                    values = each.values | each.resolved
                    outcome.inserted.append(Pending(each, fingerprint, values))
                continue
            if imported.fingerprint == ERASED:
                outcome.erased.append(each)
                continue
            if merged.get(each.source_id, imported.target_id) != imported.target_id:
                outcome.merged.append(each)
                continue
            is_same = imported.fingerprint == fingerprint
            stored = present.get(imported.target_id)
            is_edited = stored is None or imported.is_edited(stored)
            if is_same and not (self.overwrite and (is_edited or _differs(kind, each, stored))):
                outcome.unchanged += 1
            elif is_edited and not self.overwrite:
                outcome.kept.append(each)
            else:
                pending = Pending(each, fingerprint, _changed(each, stored, imported), imported)
                (outcome.updated if stored else outcome.inserted).append(pending)
        new = [each for each in outcome.inserted if not each.target_id]
        self.ids.give(session, kind.name, kind.table, new)
        kind.resolve_conflicts(session, outcome.written)
        if self.records.dry_run:
            pairs = [(each.converted.source_id, each.target_id) for each in outcome.written]
            self.records.stage(kind.name, pairs)
        else:
            self._store(session, kind, outcome)
        return outcome

    def _store(self, session: Session, kind: TargetKind, outcome: _Outcome) -> None:
        table, updated, written = kind.table, outcome.updated, outcome.written
        if updated:
            rows = [{"this": each.target_id, **each.values} for each in updated]
            names = [name for name in updated[0].values if name != "id"]
            statement = update(table).where(table.c.id == bindparam("this"))
            session.execute(statement.values({name: bindparam(name) for name in names}), rows)
        if outcome.inserted:
            insert_records(session, table, [each.values for each in outcome.inserted])
        kind.after_write(session, written)
        if kind.metadata:
            _write_metadata(session, self.ids, kind.metadata, written)
        if kind.items_of:
            _write_items(session, self.ids, written, kind.items_of)
        self.records.store(session, kind.name, written)


def _changed(converted: Converted, stored: Record | None, imported: Imported) -> Record:
    """Return the columns of a record that an earlier import created."""
    values = {**converted.values, **converted.resolved, "id": imported.target_id}
    if stored and "usage_count" in stored:
        # Add the uses since the import to the uses at the source.
        here = stored["usage_count"] - (imported.usage_count or 0)
        values["edited_at"] = None
        if ERASED_EMAIL in stored["customer_emails"]:
            values["customer_emails"] = stored["customer_emails"]
            converted.altered.append("its addresses stay, because one was erased in this shop")
        values["usage_count"] = max(0, min(values["usage_count"] + here, MAX_COUNT))
    return values


def _differs(kind: TargetKind, converted: Converted, stored: Record | None) -> bool:
    """Return whether a stored record was changed in this shop although no time says so."""
    if kind.notes_edits or stored is None:
        return False
    values = converted.values | converted.resolved
    return any(stored[name] != value for name, value in values.items())


def _locked(session: Session, kind: TargetKind, ids: Sequence[int]) -> dict[int, Record]:
    """Return the stored records that may have to change, locked until the commit."""
    kind.lock_first(session, ids)
    table = kind.table
    names = ("id", "updated_at", "edited_at", "usage_count", "customer_emails")
    columns = [each for each in table.c if each.name in names or not kind.notes_edits]
    this = is_one_of(table.c.id, bindparam(None, list(ids), type_=IdList))
    rows = session.execute(select(*columns).where(this).with_for_update())
    return {row["id"]: dict(row) for row in rows.mappings()}
