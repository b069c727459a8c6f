"""The context that all steps of an import share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select

from app.catalog import Catalog, current_catalog
from app.db.read_pool import ReadRow, fetch
from app.models import REDEMPTIONS
from app.plugins.woocommerce.importer.convert import Converted, LeftOut
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter
from app.plugins.woocommerce.importer.report import ImportReport
from app.plugins.woocommerce.importer.source.shop import ShopSource
from app.plugins.woocommerce.importer.source.staging import SourceIndex, Staging
from app.plugins.woocommerce.importer.target.writer import TargetKind, Writer
from app.services.common.progress import NoteProgress

PAGE = 500
"""Number of records that are read, converted and written together."""

Uses = Mapping[int, ReadRow]
"""Stored redemptions, by their ID at the source."""


@dataclass(frozen=True, slots=True)
class ImportContext:
    """An import of a staged shop, or a verification, whose writer compares instead."""

    source: ShopSource
    writer: Writer
    report: ImportReport
    metadata: MetadataConverter
    index: SourceIndex
    catalog: Catalog

    @classmethod
    def of(
        cls, source: ShopSource, writer: Writer, report: ImportReport, metadata: MetadataConverter
    ) -> ImportContext:
        """Return the context of a source, with an index of its own."""
        index = SourceIndex(source.staging)
        return cls(source, writer, report, metadata, index, current_catalog())

    @property
    def staging(self) -> Staging:
        """The staged rows."""
        return self.source.staging

    def converted(
        self,
        kind: TargetKind,
        table: str,
        sources: Mapping[int, Sequence[object]],
        convert: Callable[..., Converted],
    ) -> list[Converted]:
        """Return the records that can be imported, and report the others.

        Args:
            table: the table of the source, for the report.
            sources: what ``convert`` takes besides the ID of each record, by this ID.
        """
        counts, found = self.report.counts_of(kind.label), list[Converted]()
        for record_id, source in sources.items():
            counts["read"] += 1
            try:
                found.append(convert(record_id, *source))
                found[-1].table = table
            except LeftOut as reason:
                self.report.add(kind.label, "left_out", table, record_id, str(reason))
        self.resolve(kind, found)
        return found

    def resolve(self, kind: TargetKind, found: Sequence[Converted]) -> None:
        """Set the columns of references to the new IDs; to None where a record is unknown."""
        for name, (of, column) in kind.references.items():
            # A merge opens no account to keys and webhooks of the other (people 6).
            targets = self.targets(of, found, name, merged=column != "user_id")
            for each in found:
                each.resolved[column] = targets.get(each.references.get(name, 0))

    def targets(
        self, kind: str, found: Sequence[Converted], name: str, *, merged: bool = True
    ) -> dict[int, int]:
        """Return the new IDs of referenced records of a kind, by their ID at the source."""
        ids = [each.references[name] for each in found if name in each.references]
        return self.writer.records.targets(kind, ids, erased=name == "parent", merged=merged)

    def of_orders(self, kind: TargetKind, found: Sequence[Converted]) -> list[Converted]:
        """Return the records whose order was imported, sorted by ID, and report the others."""
        kept = [each for each in found if each.resolved["order_id"] is not None]
        for each in found:
            if each.resolved["order_id"] is None:
                why = "its order was not imported"
                self.report.add(kind.label, "left_out", each.table, each.source_id, why)
        return sorted(kept, key=lambda each: each.source_id)

    def report_missing(self, kind: TargetKind, name: str) -> None:
        """Report the records that were imported before and no longer exist at the source."""
        table = name.partition(":")[0]
        for ids in self.writer.records.all_of(kind.name):
            for record_id in self.staging.missing(name, ids):
                why = "it no longer exists at the source, and was kept in this shop"
                self.report.add(kind.label, "missing", table, record_id, why)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an import: the records of a staged table.

    Attributes:
        convert: yields the records of a page, and continues when they have been written.
        prepare: called before the first page.
        pages: returns the pages, if they are not those of the table.
        count: returns the number of records, if it is not that of the rows. Called before pages.
    """

    table: str
    kind: TargetKind
    convert: Callable[[ImportContext, Any], Iterator[Sequence[Converted]]]
    prepare: Callable[[ImportContext], None] = lambda _: None
    pages: Callable[[ImportContext], Iterable[Sized]] | None = None
    count: Callable[[ImportContext], int] | None = None

    def total(self, context: ImportContext) -> int:
        """Return the number of records that ``run`` reads."""
        return self.count(context) if self.count else context.staging.count(self.table)

    def run(self, context: ImportContext, note_progress: NoteProgress) -> None:
        """Write or compare the records, page by page."""
        self.prepare(context)
        pages = self.pages(context) if self.pages else context.staging.pages(self.table, PAGE)
        done = 0
        for page in pages:
            for found in self.convert(context, page):
                context.writer.write(self.kind, found)
            done += len(page)
            note_progress(done)


def redemption(coupon_id: int, reference: str) -> dict[str, object]:
    """Return the columns of an imported coupon use that depend on records of this shop."""
    return {"coupon_id": coupon_id, "reference": reference, "holds_slot": False, "expires_at": None}


def imported_uses(context: ImportContext, kind: TargetKind, which: ColumnElement[bool]) -> Uses:
    """Return the coupon uses of a kind that an earlier import has stored, by their source ID.

    Args:
        which: the condition of the redemptions.
    """
    rows = fetch(select(REDEMPTIONS).where(which))
    sources = context.writer.records.sources(kind.name, [row.id for row in rows])
    return {sources[row.id]: row for row in rows if row.id in sources}


def released(source_id: int, use: ReadRow, references: Mapping[str, int], table: str) -> Converted:
    """Return an imported coupon use that the source no longer has."""
    names = ("code", "email", "email_normalized", "amount", "created_at", "updated_at")
    values = {name: getattr(use, name) for name in names}
    values |= {"status": "released", "confirmed_at": None}
    resolved = {"customer_id": use.customer_id, "order_id": use.order_id}
    resolved |= redemption(use.coupon_id, use.reference)
    return Converted(
        source_id, values, references=references, is_absent=True, resolved=resolved, table=table
    )
