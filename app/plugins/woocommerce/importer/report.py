"""The report of an import: counts for each kind of record, and a line for each exception."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

COLUMNS = ("read", "created", "updated", "unchanged", "altered", "left_out")


@dataclass(slots=True)
class KindCounts:
    """Counts of the records of one kind.

    Attributes:
        kept: records that changed at the source but keep their edits in this shop.
        missing: records that an earlier import created and that no longer exist at the source.
    """

    read: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    altered: int = 0
    left_out: int = 0
    kept: int = 0
    missing: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        lines: file for one JSON object for each record that is left out, altered, kept or missing;
            None to write no file.
        counts: the counts of each kind by its name, in the order of the import.
        refunded: sum of the refunds in cents, by currency.
        keys: table, key, number and reason of the metadata that was left out.
    """

    lines: IO[str] | None = None
    counts: dict[str, KindCounts] = field(default_factory=dict)
    refunded: dict[str, int] = field(default_factory=dict)
    keys: list[tuple[str, str, int, str]] = field(default_factory=list)

    def counts_of(self, kind: str) -> KindCounts:
        """Return the counts of a kind."""
        return self.counts.setdefault(kind, KindCounts())

    @contextmanager
    def timed(self, kind: str) -> Iterator[KindCounts]:
        """Measure the time of a step."""
        counts, start = self.counts_of(kind), time.monotonic()
        try:
            yield counts
        finally:
            counts.seconds += time.monotonic() - start

    def add(self, kind: str, what: str, table: str, record_id: int, why: str) -> None:
        """Count a record of a kind that is left out, kept or missing, and write its line."""
        counts = self.counts_of(kind)
        setattr(counts, what, getattr(counts, what) + 1)
        self.line(table, record_id, what, why)

    def left_out_keys(self, keys: list[tuple[str, str, int, str]]) -> None:
        """Report metadata that is not imported, by its key."""
        self.keys = keys
        for table, key, number, why in keys:
            self.line(table, None, "left_out", why, key=key, number=number)

    def line(
        self, table: str, record_id: int | None, what: str, why: str, **more: str | int
    ) -> None:
        """Write the line of a record.

        Args:
            record_id: the ID at the source.
            what: ``left_out``, ``altered``, ``kept`` or ``missing``.
            why: the reason, as text for the operator.
        """
        if self.lines:
            line = {"table": table, "id": record_id, **more, "what": what, "why": why}
            self.lines.write(json.dumps(line, ensure_ascii=False) + "\n")
