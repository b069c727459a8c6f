"""The report of an import: counts for each kind of record, and a line for each exception."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

COLUMNS = ("read", "created", "updated", "unchanged", "altered", "left_out")


COUNTS = (*COLUMNS, "kept", "missing")
"""What is counted of each kind of records.

``kept``: records that changed at the source but keep their edits in this shop; ``missing``: records
that an earlier import created and that no longer exist at the source.
"""


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        lines: file for one JSON object for each record that is left out, altered, kept or missing;
            None to write no file.
        counts: the COUNTS of each kind by its name, in the order of the import.
        seconds: the time of each kind.
        refunded: sum of the refunds in cents, by currency.
        keys: table, key, number and reason of the metadata that was left out.
    """

    lines: IO[str] | None = None
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    refunded: dict[str, int] = field(default_factory=dict)
    keys: list[tuple[str, str, int, str]] = field(default_factory=list)

    def counts_of(self, kind: str) -> Counter[str]:
        """Return the counts of a kind."""
        return self.counts.setdefault(kind, Counter())

    def total(self, what: str) -> int:
        """Return the number of records of all kinds."""
        return sum(counts[what] for counts in self.counts.values())

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Measure the time of a step."""
        self.counts_of(kind)
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[kind] = time.monotonic() - start + self.seconds.get(kind, 0.0)

    def add(self, kind: str, what: str, table: str, record_id: int, why: str) -> None:
        """Count a record of a kind that is left out, kept or missing, and write its line."""
        self.counts_of(kind)[what] += 1
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
