"""The states of imports: created, started, cancelled and ended (people 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.auth.api_keys import require_resources
from app.auth.principals import Principal
from app.db.read_pool import ReadRow, fetch
from app.db.records import Record, row_dicts
from app.db.session import now, run_in_transaction
from app.errors import Sentence, ShopError
from app.models import IMPORT_ERRORS, IMPORT_PARTS, IMPORT_RUNS, USERS
from app.models.import_run import UNFINISHED, ImportStatus
from app.services.events.bulk import record_summary

CLAIMED = timedelta(minutes=2)
"""How long other workers leave an import alone whose worker was killed."""

KEPT = timedelta(hours=1)
"""How long the file of an import is kept that has ended before all of it was imported."""

MAX_UNFINISHED = 5
"""Maximum number of unfinished imports of a user, because their files are stored."""

MAX_ERRORS = 10_000
"""Maximum number of lines with errors that are stored."""

COUNTS = ("created", "updated", "skipped", "failed")

WRITES: Mapping[str, tuple[str, ...]] = {
    "coupons": ("shop_api_user_cannot_create_coupon", "shop_api_user_cannot_edit_coupon"),
    "customers": ("shop_api_user_cannot_create_customer", "shop_api_user_cannot_edit_customer"),
}
"""The rights of bulk requests by the kind of records. One of them is enough."""


class SupersededError(Exception):
    """Another worker has imported the part, or the import was cancelled."""


def require_import(actor: Principal, kind: str | None) -> None:
    """Raise ShopError unless an actor may import records of a kind (None: of every kind)."""
    kinds = [kind] if kind else list(WRITES)
    require_resources(actor, *kinds)
    if not all(any(map(actor.has_right, WRITES[each])) for each in kinds):
        raise ShopError("shop_api_user_cannot_import")


@dataclass(frozen=True, slots=True)
class NewImport:
    """What a request to import a file says. ``format`` is csv or ndjson."""

    kind: str
    name: str
    format: str
    on_conflict: str
    dry_run: bool


def create_import(
    actor: Principal, given: NewImport, parts: Mapping[int, bytes], size: int
) -> Record:
    """Store an import with its parts for a worker, and return it by its column names.

    Args:
        parts: the parts of the file by the number of records before them.
        size: the number of records.

    Raises:
        ShopError: too many imports of the user are unfinished.
    """
    timestamp = now()
    values = {
        "source": "file",
        "kind": given.kind,
        "name": given.name,
        "format": given.format,
        "on_conflict": given.on_conflict,
        "dry_run": given.dry_run,
        "status": ImportStatus.WAITING,
        "size": size,
        "created": 0,
        "updated": 0,
        "user_id": actor.user_id,
        "key_id": actor.key_id,
        "created_at": timestamp,
        "progress_at": timestamp,
    }

    def work(session: Session) -> Record:
        _require_room(session, actor.user_id)
        new = insert(IMPORT_RUNS).values(values).returning(*IMPORT_RUNS.c)
        (run,) = row_dicts(session.execute(new))
        rows = [
            {"import_id": run["id"], "position": position, "content": content}
            for position, content in parts.items()
        ]
        session.execute(insert(IMPORT_PARTS), rows)
        return dict(run)

    return run_in_transaction(work)


def start_import(actor: Principal, import_id: int) -> Record:
    """Import a file after its dry run, or continue an import that was cancelled or has failed.

    Raises:
        ShopError: the import does not exist, another user has created it, a right is missing, it
            has another state, its file was deleted, or too many imports are unfinished.
    """

    def work(session: Session) -> Record:
        run = _locked(session, actor, import_id)
        if run["user_id"] != actor.user_id:
            raise ShopError("shop_api_user_cannot_import")
        if run["status"] not in {ImportStatus.READY, ImportStatus.CANCELLED, ImportStatus.FAILED}:
            raise _wrong_status(run)
        of_run = select(IMPORT_PARTS.c.import_id).where(IMPORT_PARTS.c.import_id == import_id)
        if session.scalar(of_run.limit(1)) is None:
            reason = "The file of the import was deleted. Send it again."
            raise ShopError("shop_api_invalid_import_status", reason=reason)
        if run["status"] != ImportStatus.READY:
            _require_room(session, actor.user_id)
        changes: Record = {"status": ImportStatus.WAITING, "key_id": actor.key_id}
        changes |= dict.fromkeys(("finished_at", "claimed_at", "reason")) | {"progress_at": now()}
        if run["dry_run"] and run["position"] == run["size"]:
            changes |= dict.fromkeys(("position", *COUNTS), 0)
            changes |= {"dry_run": False, "started_at": None}
            session.execute(delete(IMPORT_ERRORS).where(IMPORT_ERRORS.c.import_id == import_id))
        return _changed(session, run, changes)

    return run_in_transaction(work)


def cancel_import(actor: Principal, import_id: int) -> Record:
    """End an import that is not finished. What it has written stays.

    Raises:
        ShopError: the import does not exist, a right is missing, or it has ended.
    """

    def work(session: Session) -> Record:
        run = _locked(session, actor, import_id)
        if run["status"] not in UNFINISHED:
            raise _wrong_status(run)
        return end_import(session, actor, run, ImportStatus.CANCELLED)

    return run_in_transaction(work)


def end_import(
    session: Session,
    cause: Principal | None,
    run: Mapping[str, object],
    status: ImportStatus,
    reason: str | None = None,
) -> Record:
    """End an import, which is locked, with its event, and return it."""
    changes = {"status": status, "reason": reason, "finished_at": now(), "claimed_at": None}
    ended = _changed(session, run, changes)
    names = ("source", "kind", *COUNTS, "status")
    summary = {name: ended[name] for name in names}
    record_summary(session, cause, "import.completed", ended["id"], summary)
    return ended


def claim_import() -> ReadRow | None:
    """Return the import whose next part this worker imports, with ``content``, or None.

    The import that has waited longest comes first, so that a small file does not wait for a large
    one. Other workers leave it alone until ``finish_part`` or for two minutes.
    """
    waits = (
        IMPORT_RUNS.c.finished_at.is_(None),
        IMPORT_RUNS.c.key_id.is_not(None),
        IMPORT_RUNS.c.status.in_((ImportStatus.WAITING, ImportStatus.RUNNING)),
        or_(IMPORT_RUNS.c.claimed_at.is_(None), IMPORT_RUNS.c.claimed_at < now() - CLAIMED),
    )
    first = select(IMPORT_RUNS.c.id).where(*waits).order_by(IMPORT_RUNS.c.progress_at).limit(1)
    found = fetch(first)
    if not found:
        return None
    changes = {
        "status": ImportStatus.RUNNING,
        "claimed_at": now(),
        "started_at": func.coalesce(IMPORT_RUNS.c.started_at, now()),
    }
    this = update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == found[0][0], *waits).values(changes)
    claimed = this.returning(IMPORT_RUNS.c.id)
    if run_in_transaction(lambda session: session.scalar(claimed)) is None:
        return None
    is_next = and_(
        IMPORT_PARTS.c.import_id == IMPORT_RUNS.c.id,
        IMPORT_PARTS.c.position == IMPORT_RUNS.c.position,
    )
    with_part = select(*IMPORT_RUNS.c, IMPORT_PARTS.c.content).outerjoin(IMPORT_PARTS, is_next)
    rows = fetch(with_part.where(IMPORT_RUNS.c.id == found[0][0]))
    return rows[0] if rows else None


def fail_import(run: ReadRow, reason: str) -> None:
    """End an import that must not continue, unless it has ended."""

    def work(session: Session) -> None:
        (current,) = row_dicts(session.execute(_lock(run.id)))
        if current["status"] == ImportStatus.RUNNING:
            end_import(session, None, current, ImportStatus.FAILED, reason)

    run_in_transaction(work)


def finish_part(
    session: Session,
    actor: Principal,
    run: ReadRow,
    counts: Mapping[str, int],
    errors: Sequence[Mapping[str, object]],
) -> None:
    """Store the numbers and errors of a part, in the transaction that writes its records.

    Args:
        run: the import as ``claim_import`` returned it.
        counts: ``read`` and the COUNTS of the part.
        errors: the columns of lines that failed, without the import.

    Raises:
        SupersededError: the transaction must be rolled back.
    """
    position = run.position + counts["read"]
    changes: Record = {name: IMPORT_RUNS.c[name] + counts[name] for name in COUNTS}
    changes |= {"position": position, "claimed_at": None, "progress_at": now()}
    this = (
        IMPORT_RUNS.c.id == run.id,
        IMPORT_RUNS.c.position == run.position,
        IMPORT_RUNS.c.status == ImportStatus.RUNNING,
        IMPORT_RUNS.c.dry_run == run.dry_run,
    )
    noted = update(IMPORT_RUNS).where(*this).values(changes).returning(*IMPORT_RUNS.c)
    rows = row_dicts(session.execute(noted))
    if not rows:
        raise SupersededError
    stored = [{"import_id": run.id, **each} for each in errors]
    if stored := stored[: max(0, MAX_ERRORS - run.failed)]:
        session.execute(insert(IMPORT_ERRORS), stored)
    if not run.dry_run:
        part = IMPORT_PARTS.c.import_id == run.id, IMPORT_PARTS.c.position == run.position
        session.execute(delete(IMPORT_PARTS).where(*part))
    if position < run.size:
        return
    if run.dry_run:
        _changed(session, rows[0], {"status": ImportStatus.READY, "finished_at": now()})
    else:
        end_import(session, actor, rows[0], ImportStatus.FINISHED)


def delete_files() -> int:
    """Delete the next files of imports that ended an hour ago, and return their number."""
    has_part = select(IMPORT_PARTS.c.import_id).where(IMPORT_PARTS.c.import_id == IMPORT_RUNS.c.id)
    old = select(IMPORT_RUNS).where(IMPORT_RUNS.c.finished_at < now() - KEPT, has_part.exists())
    one = old.order_by(IMPORT_RUNS.c.id).limit(1).with_for_update(skip_locked=True)

    def work(session: Session) -> int:
        rows = row_dicts(session.execute(one))
        for run in rows:
            session.execute(delete(IMPORT_PARTS).where(IMPORT_PARTS.c.import_id == run["id"]))
            if run["status"] == ImportStatus.READY:
                reason = "It was not started within an hour after its dry run."
                end_import(session, None, run, ImportStatus.CANCELLED, reason)
        return len(rows)

    return run_in_transaction(work)


def _lock(import_id: int) -> Any:
    return select(IMPORT_RUNS).where(IMPORT_RUNS.c.id == import_id).with_for_update()


def _locked(session: Session, actor: Principal, import_id: int) -> Record:
    rows = row_dicts(session.execute(_lock(import_id)))
    if not rows:
        raise ShopError("shop_api_invalid_import_id")
    require_import(actor, rows[0]["kind"])
    return dict(rows[0])


def _changed(session: Session, run: Mapping[str, object], changes: Mapping[str, object]) -> Record:
    session.execute(update(IMPORT_RUNS).where(IMPORT_RUNS.c.id == run["id"]).values(changes))
    return {**run, **changes}


def _wrong_status(run: Mapping[str, object]) -> ShopError:
    by_command = "The import was started by a command."
    is_status = Sentence("The import is {0}.", Sentence(str(run["status"])))
    reason = by_command if run["key_id"] is None else is_status
    return ShopError("shop_api_invalid_import_status", reason=reason)


def _require_room(session: Session, user_id: int) -> None:
    """Raise ShopError if a user has too many unfinished imports."""
    # Another import of the user waits until the commit.
    session.execute(select(USERS.c.id).where(USERS.c.id == user_id).with_for_update(key_share=True))
    of_user = IMPORT_RUNS.c.user_id == user_id, IMPORT_RUNS.c.key_id.is_not(None)
    unfinished = select(func.count()).where(*of_user, IMPORT_RUNS.c.status.in_(UNFINISHED))
    if (session.scalar(unfinished.select_from(IMPORT_RUNS)) or 0) >= MAX_UNFINISHED:
        reason = Sentence(
            "{0} of your imports are not finished. Start or cancel one of them.", MAX_UNFINISHED
        )
        raise ShopError("shop_api_invalid_import_status", reason=reason)
