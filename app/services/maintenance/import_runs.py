"""The event of each import (events 1).

An import in several transactions is stored before its first transaction. If its process is killed,
a worker writes the event, so that readers of the feed are still notified of the records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.orm import Session

from app.db.read_pool import fetch
from app.db.session import call_after_commit, now, run_in_transaction
from app.models import IMPORT_RUNS
from app.services.events.bulk import record_summary

ABANDONED = timedelta(minutes=15)
"""Time without progress after which an import counts as interrupted."""

BATCH = 100
"""Maximum number of interrupted imports that one transaction reports."""


def record_part(session: Session, kind: str, created: int, updated: int) -> None:
    """Write the event of records of a file, which the transaction of a session completes."""
    run_id = _insert(session, "file", kind, finished=True, created=created, updated=updated)
    summary = {"source": "file", "kind": kind, "created": created, "updated": updated}
    record_summary(session, None, "import.completed", run_id, summary)


def record_import(session: Session, source: str, summary: Mapping[str, Any]) -> None:
    """Write the event of an import of records, which the transaction of a session completes."""
    run_id = _insert(session, source, None, finished=True)
    record_summary(session, None, "import.completed", run_id, {"source": source, **summary})


@dataclass
class ImportProgress:
    """The progress of an import in several transactions, which ends with one event."""

    source: str
    kind: str
    _run_id: int | None = None

    def add(self, session: Session, created: int, updated: int) -> None:
        """Add records to the import, in the transaction of a session that writes them."""
        run_id = self._run_id
        if run_id is not None:
            changes = {
                "created": IMPORT_RUNS.c.created + created,
                "updated": IMPORT_RUNS.c.updated + updated,
                "progress_at": now(),
            }
            is_running = IMPORT_RUNS.c.id == run_id, IMPORT_RUNS.c.finished_at.is_(None)
            statement = (
                update(IMPORT_RUNS).where(*is_running).values(changes).returning(IMPORT_RUNS.c.id)
            )
            # A worker reports the import as interrupted if it takes too long.
            run_id = session.scalar(statement)
        if run_id is None and (created or updated):
            run_id = _insert(
                session, self.source, self.kind, finished=False, created=created, updated=updated
            )
        call_after_commit(session, partial(setattr, self, "_run_id", run_id))

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
        runs = (
            session.execute(
                select(IMPORT_RUNS)
                .where(IMPORT_RUNS.c.finished_at.is_(None), is_abandoned)
                .order_by(IMPORT_RUNS.c.progress_at)
                .limit(BATCH)
                .with_for_update(skip_locked=True)
            )
            .mappings()
            .all()
        )
        for run in runs:
            _report(session, dict(run), interrupted=True)
        return len(runs)

    return run_in_transaction(work)


def recent_runs(limit: int) -> Sequence[Row[Any]]:
    """Return the latest imports, newest first."""
    return fetch(select(IMPORT_RUNS).order_by(IMPORT_RUNS.c.id.desc()).limit(limit))


def _insert(
    session: Session,
    source: str,
    kind: str | None,
    *,
    finished: bool,
    created: int = 0,
    updated: int = 0,
) -> int:
    timestamp = now()
    run = {
        "source": source,
        "kind": kind,
        "created": created,
        "updated": updated,
        "progress_at": timestamp,
        "finished_at": timestamp if finished else None,
    }
    statement = insert(IMPORT_RUNS).values(run).returning(IMPORT_RUNS.c.id)
    return int(session.execute(statement).scalar_one())


def _report(session: Session, run: Mapping[str, Any], **more: Any) -> None:
    summary = {name: run[name] for name in ("source", "kind", "created", "updated")} | more
    session.execute(
        update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == run["id"]).values(finished_at=now())
    )
    record_summary(session, None, "import.completed", run["id"], summary)
