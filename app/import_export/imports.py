"""Import of records from files in batches, with the rules of bulk requests (migration 2)."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import marshmallow as ma
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.conversions.text import nearest_name
from app.db import timeouts
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import ShopError
from app.import_export.export_kinds import Record
from app.import_export.file_reader import Line
from app.import_export.import_kinds import Target, is_trashed
from app.schemas.loading import instance_of, invalid_params
from app.services.common.bulk import BulkItem
from app.services.events.bulk import summarized
from app.services.maintenance.import_runs import ImportProgress

BATCH = 500
"""Number of records that one transaction writes."""


class OnConflict(StrEnum):
    """How to handle a record whose code or e-mail address already exists."""

    FAIL = "fail"
    SKIP = "skip"
    UPDATE = "update"


@dataclass
class Counts:
    """Counts of the records of a file."""

    read: int = 0
    created: int = 0
    updated: int = 0
    skipped: int = 0
    failed: int = 0


class _DryRunEnds(Exception):
    """Raised to roll back the transaction of a dry run."""


@dataclass
class FileImport:
    """An import of a file.

    Args:
        target: the kind of records in the file.
        actor: the author of new records.
        on_conflict: how to handle a record whose code or e-mail address already exists.
        from_csv: whether the values are texts of CSV cells.
        report: called with the line number of a failed record and the reason.
        warn: called with a warning about the whole file.
        note_progress: called with the number of records that were read so far.
    """

    target: Target
    actor: Principal
    on_conflict: OnConflict
    from_csv: bool
    report: Callable[[int, str], None]
    warn: Callable[[str], None]
    note_progress: Callable[[int], None] = lambda _: None
    counts: Counts = field(default_factory=Counts)
    _progress: ImportProgress | None = None
    _batch: dict[str | int, tuple[int, Record, Record]] = field(default_factory=dict)
    _failures: list[tuple[int, str]] = field(default_factory=list)
    _warned: set[str] = field(default_factory=set)

    def run(self, lines: Iterable[Line], *, dry_run: bool = False) -> Counts:
        """Import the lines with one event (events 1), or roll them all back in a dry run."""
        if not dry_run:
            self._progress = ImportProgress("file", self.target.kind.name)
            try:
                with summarized():
                    self._run(lines)
            finally:  # earlier batches remain stored if a later batch fails
                self._progress.finish(self.counts.created, self.counts.updated)
            return self.counts

        def work(session: Session) -> None:
            if self.counts.read:
                raise ShopError(
                    "shop_api_unavailable",
                    reason="Another program wrote to the database at the same time.",
                )
            timeouts.lift_limit(session.connection())
            with reading_own_writes(), summarized():
                self._run(lines)
            raise _DryRunEnds

        with suppress(_DryRunEnds):
            run_in_transaction(work)
        return self.counts

    def _run(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.counts.read += 1
            self._add(line)
            if len(self._batch) + len(self._failures) >= BATCH:
                self._write()
                self.note_progress(self.counts.read)
        self._write()
        self.note_progress(self.counts.read)

    def _add(self, line: Line) -> None:
        """Add a record to the batch, or report why it cannot be written."""
        if line.error:
            self._fail(line.number, line.error)
            return
        self._warn_about_names(line.record)
        if is_trashed(line.record):
            self.counts.skipped += 1
            return
        try:
            record, data = self.target.read(line.record, from_csv=self.from_csv)
        except ma.ValidationError as error:
            self._fail(line.number, invalid_params(error))
            return
        except ValueError as error:
            self._fail(line.number, str(error))
            return
        key = self.target.normalized(data.get(self.target.key, ""))
        if key in self._batch:  # the earlier record must be stored first
            self._write()
        # A record without a key fails when it is written.
        self._batch[key or line.number] = line.number, record, data

    def _write(self) -> None:
        """Write the batch, then report the lines that failed in their order."""
        try:
            self._write_batch()
        finally:
            failures, self._failures = sorted(self._failures), []
            for number, reason in failures:
                self.report(number, reason)

    def _write_batch(self) -> None:
        batch, self._batch = self._batch, {}
        if not batch:
            return
        existing: Mapping[Any, int] = self.target.existing(
            [key for key in batch if isinstance(key, str)]
        )
        items: list[tuple[int, BulkItem]] = []
        for key, (number, record, data) in batch.items():
            if key not in existing or self.on_conflict is OnConflict.FAIL:
                items.append((number, BulkItem(None, data)))
            elif self.on_conflict is OnConflict.SKIP:
                self.counts.skipped += 1
            else:
                changes: Any = instance_of(self.target.update).load(record)
                items.append((number, BulkItem(existing[key], changes)))
        if not items:
            return
        if self._progress:
            self._progress.begin()
        outcomes = self.target.save(self.actor, [item for _, item in items])
        for (number, item), outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, ShopError):
                self._fail(number, outcome)
            elif item.id is None:
                self.counts.created += 1
            else:
                self.counts.updated += 1
        if self._progress:
            self._progress.note(self.counts.created, self.counts.updated)

    def _fail(self, number: int, error: ShopError | str) -> None:
        self.counts.failed += 1
        text = error if isinstance(error, str) else f"{error.code}: {error.message}"
        self._failures.append((number, text))

    def _warn_about_names(self, record: Mapping[str, Any]) -> None:
        """Warn once about each unknown name, which a request would ignore."""
        unknown = record.keys() - self._known - self._warned
        for name in sorted(unknown):
            self._warned.add(name)
            nearest = nearest_name(name, self._known)
            hint = f" Did you mean {nearest!r}?" if nearest else ""
            self.warn(f"{name!r} is unknown and ignored.{hint}")

    @cached_property
    def _known(self) -> set[str]:
        return self.target.known_names()
