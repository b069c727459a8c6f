"""Verification of an import: comparison of this shop with its source.

The source is read and converted again. Records that were edited in this shop since the import are
counted but not compared.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Table, bindparam, select

from app.db.read_pool import fetch
from app.db.records import Record, row_dicts
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ORDER_REFUNDS
from app.plugins.woocommerce.importer.context import ImportContext
from app.plugins.woocommerce.importer.convert import Converted, edited_at
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter
from app.plugins.woocommerce.importer.importer import plan_of, staged_shop
from app.plugins.woocommerce.importer.kinds import ORDER, REFUND
from app.plugins.woocommerce.importer.report import ImportReport
from app.plugins.woocommerce.importer.source.loading import Location, Say
from app.plugins.woocommerce.importer.tables import SourceError
from app.plugins.woocommerce.importer.target.record_map import RecordMap
from app.plugins.woocommerce.importer.target.writer import TargetKind, items_of_refunds
from app.services.common.metadata import ITEM
from app.services.common.progress import Progress
from app.services.orders.items import COUPON_ID, amount_text, cents

MAX_LISTED = 50
"""Maximum number of differences in the list. All differences are counted."""

# Random values, and values that depend on the time of the import or on other records.
_NOT_COMPARED = {"consumer_secret_encrypted", "next_item_id", "secret_encrypted", "usage_count"}


@dataclass(slots=True)
class Verification:
    """The result of a comparison.

    Attributes:
        lines: a description of each comparison.
        differences: the first MAX_LISTED differences.
        number: number of all differences.
    """

    lines: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    number: int = 0

    def add(self, difference: str) -> None:
        """Add a difference."""
        self.number += 1
        if len(self.differences) < MAX_LISTED:
            self.differences.append(difference)


class RecordComparer:
    """Compares records. It replaces the writer of an import.

    Args:
        records: the map of the imported records.
        sample: average number of records of each kind that are compared field by field.
        seed: the seed of the random sample.

    Attributes:
        compared: for each kind the numbers of records and of entries of metadata.
        there: number and sum in cents of the orders of each status at the source.
        here: the same in this shop.
        totals: number of records of each kind, from which the sample is taken.
    """

    def __init__(
        self, records: RecordMap, result: Verification, sample: int, seed: int | None
    ) -> None:
        self.records = records
        self.compared: dict[str, Counter[str]] = {}
        self.there, self.here = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        self._result = result
        self._sample = sample
        self.totals: dict[str, int] = {}
        self._random = random.Random(seed)  # nosec B311  # a sample, no secret

    def write(self, kind: TargetKind, converted: Sequence[Converted]) -> None:
        """Compare records of a kind."""
        label = kind.label
        counts = self.compared.setdefault(label, Counter())
        known = self.records.known(fetch, kind.name, [each.source_id for each in converted])
        stored = self._stored(kind, [imported.target_id for imported in known.values()])
        entries = self._entries(kind, list(stored))
        for each in converted:
            imported = known.get(each.source_id)
            if imported is None and each.is_absent:
                continue
            counts["source"] += 1
            record = stored.get(imported.target_id) if imported else None
            if record is None or imported is None:
                self._result.add(f"{label}: {each.table} {each.source_id} is not in this shop")
                continue
            counts["found"] += 1
            if imported.is_edited(record):
                counts["edited"] += 1
                continue
            if kind is ORDER:
                for side, order in ((self.there, each.values), (self.here, record)):
                    side[order["status"], "number"] += 1
                    side[order["status"], "cents"] += cents(order["total"])
            if kind.metadata:
                here = entries.get(imported.target_id, [])
                counts["entries"] += len(here)
                counts["entries there"] += self._compare_metadata(label, each, here)
            if self._random.random() * self.totals.get(label, 0) < self._sample:
                counts["sample"] += 1
                self._compare(label, each, record)

    def _compare(self, label: str, converted: Converted, record: Record) -> None:
        for name, value in {**converted.values, **converted.resolved}.items():
            is_random = name == "created_at" and converted.table == "woocommerce_api_keys"
            if name in _NOT_COMPARED or is_random or (name == "order_key" and not value):
                continue
            if _without_coupons(name, record[name]) != _without_coupons(name, value):
                self._result.add(
                    f"{label}: {converted.table} {converted.source_id}, {name}: "
                    f"{_short(value)} at the source, {_short(record[name])} here"
                )

    def _compare_metadata(
        self, label: str, converted: Converted, here: Sequence[tuple[int, str, str]]
    ) -> int:
        """Compare the metadata of a record and of its items. Return its number at the source."""
        by_item = {0: converted.metadata, **converted.items_metadata}
        expected = sorted(
            (item_id, key, value)
            for item_id, entries in by_item.items()
            for _, key, value, *_ in entries
        )
        if expected != sorted(here):
            missing, further = Counter(expected) - Counter(here), Counter(here) - Counter(expected)
            keys = sorted({key for _, key, _ in [*missing, *further]})
            self._result.add(
                f"{label}: {converted.table} {converted.source_id}, metadata: "
                f"{_short(', '.join(keys))} differ"
            )
        return len(expected)

    def _entries(
        self, kind: TargetKind, ids: Sequence[int]
    ) -> dict[int, list[tuple[int, str, str]]]:
        """Return item, key and value of the stored metadata of records, by their ID."""
        found: dict[int, list[tuple[int, str, str]]] = {}
        if not kind.metadata or not ids:
            return found
        for record_id, _, key, value, _ in fetch(kind.metadata.select_rows, {"ids": ids}):
            found.setdefault(record_id, []).append((0, key, value))
        if not kind.items_of:
            return found
        items: dict[int, int] = {}  # the refunds by the IDs of their items
        of_refunds: set[int] = set()
        wanted = ids
        if kind is REFUND:
            columns = (ORDER_REFUNDS.c.id, ORDER_REFUNDS.c.order_id, ORDER_REFUNDS.c.line_items)
            rows = fetch(select(*columns).where(_has_id(ORDER_REFUNDS, ids)))
            items = {item["item_id"]: row.id for row in rows for item in row.line_items}
            wanted = [row.order_id for row in rows]
        else:
            of_refunds = set(items_of_refunds(fetch, ids))
        wanted = sorted(set(wanted))
        for order_id, item_id, _, key, value, _ in fetch(ITEM.select_rows, {"ids": wanted}):
            record_id = items.get(item_id) if kind is REFUND else order_id
            if record_id is not None and item_id not in of_refunds:
                found.setdefault(record_id, []).append((item_id, key, value))
        return found

    def _stored(self, kind: TargetKind, ids: Sequence[int]) -> dict[int, Record]:
        found = fetch(select(kind.table).where(_has_id(kind.table, ids)))
        records: list[Record] = row_dicts(found)
        return {each["id"]: each | {"updated_at": edited_at(each)} for each in records}


def _has_id(table: Table, ids: Sequence[int]) -> ColumnElement[bool]:
    return is_one_of(table.c.id, bindparam(None, list(ids), type_=IdList))


def verify_shop(
    location: Location,
    *,
    progress: Progress,
    say: Say,
    sample: int,
    seed: int | None,
    keep_keys: Sequence[str] = (),
) -> Verification:
    """Compare this shop with the source from which it was imported.

    Args:
        say: called with a message for the operator.
        sample: average number of records of each kind that are compared field by field.
        seed: the seed of the random sample; None for a new sample each time.
        keep_keys: the keys that the import kept with ``--keep-key``.

    Raises:
        SourceError: the source cannot be read, or was never imported.
    """
    result = Verification()
    with staged_shop(location, progress, say) as source:
        # A dry run writes nothing and adds nothing to the record map.
        records = RecordMap(source.name, source.staging, dry_run=True)
        if not records.is_known:
            raise SourceError(f"{source.name.split()[0]} was never imported into this database.")
        if records.is_interrupted:
            result.add("the import is not complete: run it again")
        comparer = RecordComparer(records, result, sample, seed)
        report = ImportReport()
        context = ImportContext.of(source, comparer, report, MetadataConverter(keep_keys))
        for step in plan_of(context):
            total = comparer.totals[step.kind.label] = step.total(context)
            with progress(step.kind.label, total) as note:
                step.run(context, note)
    _summarise(result, comparer, report)
    return result


def _summarise(result: Verification, comparer: RecordComparer, report: ImportReport) -> None:
    for label, counts in comparer.compared.items():
        left_out = report.counts_of(label)["left_out"]
        result.lines.append(
            f"{label}: {counts['source']:,} at the source, {counts['found']:,} here, "
            f"{left_out:,} left out, {counts['edited']:,} edited here, "
            f"{counts['sample']:,} compared field by field"
        )
        if counts["entries there"] or counts["entries"]:
            result.lines.append(
                f"  metadata: {counts['entries there']:,} at the source, {counts['entries']:,} here"
            )
        if label == ORDER.label:
            _summarise_orders(result, comparer)
    for currency, refunded in report.refunded.items():
        result.lines.append(f"refunded (in no total above): {amount_text(refunded)} {currency}")


def _summarise_orders(result: Verification, comparer: RecordComparer) -> None:
    for status in sorted({status for status, _ in (*comparer.there, *comparer.here)}):
        here, there = (
            f"{side[status, 'number']:,}, {amount_text(side[status, 'cents'])}"
            for side in (comparer.here, comparer.there)
        )
        text = f"{ORDER.label}, {status}: {here}"
        result.lines.append(f"  {text}")
        if here != there:
            result.add(f"{text} here; {there} at the source")


def _without_coupons(name: str, value: object) -> object:
    """Return a value without the coupons of coupon lines, which keep those of their import."""
    if name != "item_details" or not isinstance(value, dict):
        return value
    return {
        item_id: {each: kept for each, kept in details.items() if each != COUPON_ID}
        for item_id, details in value.items()
    }


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
