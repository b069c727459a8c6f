"""The event of each import (events 1).

An import in several transactions is stored before its first transaction. If its process is killed,
a worker writes the event, so that readers of the feed are still notified of the records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.orm import Session

from app.db.records import Record, row_dicts
from app.db.session import call_after_commit, now, run_in_transaction
from app.models import IMPORT_RUNS
from app.models.import_run import ImportStatus
from app.services.events.bulk import record_summary
from app.services.imports.runs import COUNTS

ABANDONED = timedelta(minutes=15)
"""Time without progress after which an import counts as interrupted."""

OF_COMMAND: ColumnElement[bool] = IMPORT_RUNS.c.key_id.is_(None)
"""Condition for the imports of commands. A worker continues all others (``services.imports``)."""

PROCESS_ENDED = "The process of the command ended."
"""Why an interrupted import has failed."""

BATCH = 100
"""Maximum number of interrupted imports that one transaction reports."""


def record_import(
    session: Session, source: str, summary: Mapping[str, object], *, created: int, updated: int = 0
) -> None:
    """Write the event of an import of records, which the transaction of a session completes.

    Args:
        summary: what the event says in addition to the source.
    """
    timestamp = now()
    counts = {"created": created, "updated": updated, "size": created + updated}
    times = {"finished_at": timestamp, "started_at": timestamp}
    run_id = _insert(session, {"source": source, **counts, **times})
    record_summary(session, None, "import.completed", run_id, {"source": source, **summary})


@dataclass
class ImportProgress:
    """The progress of an import in several transactions, which ends with one event.

    Args:
        about: further columns of the import.
    """

    source: str
    kind: str
    about: Mapping[str, object] = field(default_factory=dict)
    _run_id: int | None = None
    _before: dict[str, int] = field(default_factory=dict)
    """Numbers of records before the first one that was written."""

    def add(self, session: Session, counts: Mapping[str, int]) -> None:
        """Add records to the import, in the transaction of a session that writes them.

        Args:
            counts: the numbers of records that were ``read``, and the COUNTS.
        """
        run_id, before = self._run_id, self._before
        if run_id is not None:
            added = {name: IMPORT_RUNS.c[name] + each for name, each in _columns(counts).items()}
            is_running = IMPORT_RUNS.c.id == run_id, IMPORT_RUNS.c.finished_at.is_(None)
            changes = {**added, "progress_at": now()}
            statement = (
                update(IMPORT_RUNS).where(*is_running).values(changes).returning(IMPORT_RUNS.c.id)
            )
            # A worker reports the import as interrupted if it takes too long.
            run_id = session.scalar(statement)
        elif not (counts["created"] or counts["updated"]):
            before = {name: number + before.get(name, 0) for name, number in counts.items()}
        if run_id is None and (counts["created"] or counts["updated"]):
            numbers = {name: number + before.get(name, 0) for name, number in counts.items()}
            more = {"source": self.source, "kind": self.kind, "started_at": now()}
            run_id, before = _insert(session, {**self.about, **more, **_columns(numbers)}), {}
        call_after_commit(session, partial(self._note, run_id, before))

    def _note(self, run_id: int | None, before: dict[str, int]) -> None:
        self._run_id, self._before = run_id, before

    def finish(self) -> None:
        """Write the event of the import. An import that has written nothing has no event."""
        if self._run_id is not None:
            run_in_transaction(self._finish)
            self._run_id = None

    def _finish(self, session: Session) -> None:
        of_run = IMPORT_RUNS.c.id == self._run_id
        run = session.execute(select(IMPORT_RUNS).where(of_run).with_for_update()).mappings().one()
        if run["finished_at"] is None:  # otherwise, a worker has reported it
            _report(session, dict(run))


def report_interrupted_imports() -> int:
    """Write the events of imports that were killed, and return their number."""

    def work(session: Session) -> int:
        is_abandoned = IMPORT_RUNS.c.progress_at < now() - ABANDONED
        abandoned = (
            select(IMPORT_RUNS)
            .where(IMPORT_RUNS.c.finished_at.is_(None), OF_COMMAND, is_abandoned)
            .order_by(IMPORT_RUNS.c.progress_at)
            .limit(BATCH)
            .with_for_update(skip_locked=True)
        )
        runs = row_dicts(session.execute(abandoned))
        for run in runs:
            _report(session, run, interrupted=True)
        return len(runs)

    return run_in_transaction(work)


def _columns(counts: Mapping[str, int]) -> dict[str, int]:
    read = counts["read"]
    return {name: counts[name] for name in COUNTS} | {"size": read, "position": read}


def _insert(session: Session, columns: Mapping[str, object]) -> int:
    timestamp = now()
    times = {"created_at": timestamp, "progress_at": timestamp}
    run = {"created": 0, "updated": 0, **times, **columns}
    statement = insert(IMPORT_RUNS).values(run).returning(IMPORT_RUNS.c.id)
    return int(session.execute(statement).scalar_one())


def _report(session: Session, run: Mapping[str, Any], **more: object) -> None:
    summary = {name: run[name] for name in ("source", "kind", "created", "updated")} | more
    changes: Record = {"finished_at": now()}
    if more:
        changes |= {"status": ImportStatus.FAILED, "reason": PROCESS_ENDED}
    session.execute(update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == run["id"]).values(changes))
    record_summary(session, None, "import.completed", run["id"], summary)
