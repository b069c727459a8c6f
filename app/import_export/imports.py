"""Import of records from files in batches, with the rules of bulk requests (migration 2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import marshmallow as ma
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.conversions.text import nearest_name
from app.db.records import Record
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import Sentence, ShopError
from app.import_export.export_kinds import PASSWORD_HASH
from app.import_export.file_reader import Line
from app.import_export.import_kinds import Target, is_trashed
from app.schemas.loading import instance_of, invalid_params
from app.services.common.bulk import BulkItem, Earlier, WriteResult
from app.services.common.progress import NoteProgress
from app.services.events.bulk import summarized
from app.services.maintenance.import_runs import ImportProgress

UNREADABLE = "shop_api_invalid_import"
"""The error code of a line that cannot be read."""

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


@dataclass
class LineBatch:
    """Lines that one transaction writes.

    Attributes:
        counts: the counts of the lines that are not written.
        failures: the numbers of the lines that cannot be read, and their errors.
        groups: the other lines by the key of their record. A record that occurs again is in a later
            group, because the earlier one must be stored first.
    """

    counts: Counts = field(default_factory=Counts)
    failures: list["Failure"] = field(default_factory=list)
    groups: list[dict[str | int, "_Read"]] = field(default_factory=lambda: [{}])


Failure = tuple[int, ShopError]
"""The number of a line that failed, and its error."""


@dataclass(slots=True)
class _Read:
    """A line whose record can be loaded: as a request contains it, and as the schema loads it."""

    number: int
    record: Record = field(repr=False)  # can contain a password
    data: Record = field(repr=False)


@dataclass
class BatchOutcome:
    """What became of a part: counts of its lines, and the lines that failed."""

    counts: Counts
    failures: list[Failure]

    @property
    def sorted_failures(self) -> list[Failure]:
        """The lines that failed in their order."""
        return sorted(self.failures, key=itemgetter(0))

    def fail(self, number: int, error: ShopError) -> None:
        """Count a line that failed."""
        self.counts.failed += 1
        self.failures.append((number, error))


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
        strict: whether an unknown name or a password is an error of its line, and an empty cell of
            a number or a boolean counts as not supplied (people 7).
        name: the name of the file.
    """

    target: Target
    actor: Principal
    on_conflict: OnConflict
    from_csv: bool
    report: Callable[[int, str], None] = lambda _number, _reason: None
    warn: Callable[[str], None] = lambda _: None
    note_progress: NoteProgress = lambda _: None
    strict: bool = False
    name: str = ""
    counts: Counts = field(default_factory=Counts)
    _warned: set[str] = field(default_factory=set)

    def run(self, lines: Iterable[Line], *, dry_run: bool = False) -> Counts:
        """Import the lines with one event (events 1), or check them in a dry run.

        A dry run writes nothing, and no other writer waits for it.
        """
        if dry_run:
            earlier: Earlier = set()
            for part in self._parts(lines):
                self._note(self.check(part, earlier))
            return self.counts
        progress = ImportProgress(
            "file",
            self.target.kind.name,
            {
                "name": self.name,
                "format": "csv" if self.from_csv else "ndjson",
                "on_conflict": self.on_conflict.value,
                "user_id": self.actor.user_id or None,
            },
        )
        try:
            for part in self._parts(lines):
                self.hash_passwords(part)
                self._note(run_in_transaction(partial(self._write_part, progress, part)))
        finally:  # earlier parts remain stored if a later part fails
            progress.finish()
        return self.counts

    def _write_part(
        self, progress: ImportProgress, part: LineBatch, session: Session
    ) -> BatchOutcome:
        """Write a part and its numbers."""
        done = self.write(part)
        progress.add(session, vars(done.counts))
        return done

    def _parts(self, lines: Iterable[Line]) -> Iterator[LineBatch]:
        iterator = iter(lines)
        while batch := list(islice(iterator, BATCH)):
            yield self.read(batch)

    def _note(self, done: BatchOutcome) -> None:
        """Add what became of a part, and report the lines that failed in their order."""
        for name, number in vars(done.counts).items():
            setattr(self.counts, name, getattr(self.counts, name) + number)
        for number, error in done.sorted_failures:
            self.report(number, _reason(error))
        self.note_progress(self.counts.read)

    def read(self, lines: Iterable[Line]) -> LineBatch:
        """Return the records of lines. Call it before the transaction that writes them."""
        part = LineBatch()
        for line in lines:
            part.counts.read += 1
            try:
                self._add(part, line)
            except ma.ValidationError as error:
                self._reject(part, line.number, invalid_params(error))
        return part

    def hash_passwords(self, part: LineBatch) -> None:
        """Hash the passwords of a part. Call it before the transaction, because it is slow."""
        lines = [line for group in part.groups for line in group.values()]
        prepared = self.target.prepare([BulkItem(None, line.data) for line in lines])
        for line, item in zip(lines, prepared, strict=True):
            line.data = dict(item.data)

    def _add(self, part: LineBatch, line: Line) -> None:
        """Add a record to a part, or report why it cannot be written."""
        if line.error:
            error = ShopError(UNREADABLE, reason=Sentence("The line {0}", line.error))
            self._reject(part, line.number, error)
            return
        if not self.strict:
            self._warn_about_names(line.record)
        if is_trashed(line.record):
            part.counts.skipped += 1
            return
        record, data = self.target.read(line.record, from_csv=self.from_csv, strict=self.strict)
        # A record without a key fails when it is written.
        key = self.target.normalized(data.get(self.target.key, "")) or line.number
        if key in part.groups[-1]:
            part.groups.append({})
        part.groups[-1][key] = _Read(line.number, record, data)

    @staticmethod
    def _reject(part: LineBatch, number: int, error: ShopError) -> None:
        part.counts.failed += 1
        part.failures.append((number, error))

    def write(self, part: LineBatch) -> BatchOutcome:
        """Write a part, within the transaction of the caller, which can call it again."""
        done = BatchOutcome(replace(part.counts), list(part.failures))
        with reading_own_writes(), summarized():
            for group in part.groups:
                existing = self.target.existing([key for key in group if isinstance(key, str)])
                items = list(self._items(group, existing, done.counts))
                results = self.target.save(self.actor, [item for _, item in items])
                _count(done, items, results)
        return done

    def check(self, part: LineBatch, earlier: Earlier) -> BatchOutcome:
        """Return what ``write`` would return. Nothing is written, and no other writer waits.

        Args:
            earlier: what earlier records of the file would take.
        """
        done = BatchOutcome(replace(part.counts), list(part.failures))
        for group in part.groups:
            existing = self.target.existing([key for key in group if isinstance(key, str)])
            # Records that the file itself would create.
            created = {key: 0 for key in group if (self.target.key, key) in earlier}
            items = list(self._items(group, {**existing, **created}, done.counts))
            stored = [(line, item) for line, item in items if item.id != 0]
            results = self.target.check(self.actor, [item for _, item in stored], earlier)
            _count(done, stored, results)
            # These records are not stored, so check their changes like new records.
            again = [(line, item) for line, item in items if item.id == 0]
            new = [BulkItem(None, self.target.without_fixed(line.data)) for line, _ in again]
            _count(done, again, self.target.check(self.actor, new, set()))
        return done

    def _items(
        self, group: Mapping[str | int, _Read], existing: Mapping[Any, int], counts: Counts
    ) -> Iterator[tuple[_Read, BulkItem]]:
        """Yield the creates and updates of a group with their lines."""
        for key, line in group.items():
            if key not in existing or self.on_conflict is OnConflict.FAIL:
                yield line, BulkItem(None, line.data)
            elif self.on_conflict is OnConflict.SKIP:
                counts.skipped += 1
            else:
                changes: Any = instance_of(self.target.update).load(line.record)
                if PASSWORD_HASH in line.data:
                    changes = {**changes, PASSWORD_HASH: line.data[PASSWORD_HASH]}
                    del changes["password"]
                yield line, BulkItem(existing[key], changes)

    def _warn_about_names(self, record: Mapping[str, object]) -> None:
        """Warn once about each unknown name, which a request would ignore."""
        known = self.target.known_names
        for name in sorted(self.target.names_of(record) - known - self._warned):
            self._warned.add(name)
            nearest = nearest_name(name, known)
            hint = f" Did you mean {nearest!r}?" if nearest else ""
            self.warn(f"{name!r} is unknown and ignored.{hint}")


def _count(
    done: BatchOutcome, items: Sequence[tuple[_Read, BulkItem]], results: Sequence[WriteResult]
) -> None:
    """Count the results of the items of lines."""
    for (line, item), result in zip(items, results, strict=True):
        if isinstance(result, ShopError):
            done.fail(line.number, result)
        elif item.id is None:
            done.counts.created += 1
        else:
            done.counts.updated += 1


def _reason(error: ShopError) -> str:
    if error.code == UNREADABLE:
        return str(error.details["reason"].values[0])
    return f"{error.code}: {error}"
