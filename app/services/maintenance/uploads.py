"""Uploaded files: stored for the session that sent them, until they are imported (admin 5)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.models import ADMIN_SESSIONS, UPLOADS
from app.models.upload import IS_IMPORTING, KEPT

CLAIMED = timedelta(minutes=2)
"""How long other workers leave a file alone whose worker was killed."""

SHOWN = 20
"""Maximum number of files in a list."""

COUNTS = ("created", "updated", "skipped", "failed")


WAITING = 20
"""Maximum number of files of a session that wait for their import."""

CHECKED = 5
"""Number of files of a session that are kept without an import. Others replace the oldest."""


def keep(session_id: int, upload: Mapping[str, Any]) -> int:
    """Store a file and return its ID.

    Raises:
        ValueError: too many files of the session wait for their import.

    Args:
        session_id: the session that has sent it.
        upload: name, kind, on_conflict, digest, content, size, the COUNTS of the dry run, and
            failures.
    """
    values = {"session_id": session_id, "position": 0, "created_at": now(), **upload}
    statement = insert(UPLOADS).values(values).returning(UPLOADS.c.id)
    of_session = UPLOADS.c.session_id == session_id
    waiting = select(func.count()).select_from(UPLOADS).where(of_session, IS_IMPORTING)
    without_import = select(UPLOADS.c.id).where(of_session, UPLOADS.c.queued_at.is_(None))
    kept = without_import.order_by(UPLOADS.c.id.desc()).limit(CHECKED - 1)

    def work(session: Session) -> int:
        if (session.scalar(waiting) or 0) >= WAITING:
            raise ValueError(
                f"{WAITING} files already wait for their import. Try again when one is finished."
            )
        newest = [*session.scalars(kept)]
        older = of_session, UPLOADS.c.queued_at.is_(None), UPLOADS.c.id.not_in(newest)
        session.execute(delete(UPLOADS).where(*older))
        return int(session.execute(statement).scalar_one())

    return run_in_transaction(work)


def find(session_id: int, upload_id: int) -> Row[Any] | None:
    """Return a file that the session has sent within the last hour, or None."""
    rows = fetch(select(UPLOADS).where(UPLOADS.c.id == upload_id, *_kept_for(session_id)))
    return rows[0] if rows else None


def started(session_id: int) -> Sequence[Row[Any]]:
    """Return the files that the session has begun to import within the last hour, newest first.

    They have the columns id, name, kind, position, size and the COUNTS.
    """
    columns = (UPLOADS.c[name] for name in ("id", "name", "kind", "position", "size", *COUNTS))
    is_started = UPLOADS.c.queued_at.is_not(None)
    found = select(*columns).where(is_started, *_kept_for(session_id))
    return fetch(found.order_by(UPLOADS.c.id.desc()).limit(SHOWN))


def _kept_for(session_id: int) -> tuple[ColumnElement[bool], ...]:
    return UPLOADS.c.session_id == session_id, UPLOADS.c.created_at >= now() - KEPT


def was_imported(session_id: int, kind: str, digest: str) -> bool:
    """Return whether the session has imported the same file within the last hour."""
    same = exists().where(
        UPLOADS.c.session_id == session_id,
        UPLOADS.c.kind == kind,
        UPLOADS.c.digest == digest,
        UPLOADS.c.queued_at.is_not(None),
    )
    return bool(fetch(select(same))[0][0])


def enqueue(upload_id: int) -> None:
    """Let a worker import a file. A file that waits already keeps its place."""
    this = UPLOADS.c.id == upload_id, UPLOADS.c.queued_at.is_(None)
    run_in_transaction(
        lambda session: session.execute(update(UPLOADS).where(*this).values(queued_at=now()))
    )


def claim() -> Row[Any] | None:
    """Return the file whose next part this worker imports, with ``key_id``, or None.

    Other workers leave it alone until ``note`` or for two minutes.
    """
    waits = (
        IS_IMPORTING,
        or_(UPLOADS.c.claimed_at.is_(None), UPLOADS.c.claimed_at < now() - CLAIMED),
    )
    first = select(UPLOADS.c.id).where(*waits).order_by(UPLOADS.c.queued_at).limit(1)
    found = fetch(first)
    if not found:
        return None
    upload_id = found[0][0]
    claimed = update(UPLOADS).where(UPLOADS.c.id == upload_id, *waits).values(claimed_at=now())
    claimed = claimed.returning(UPLOADS.c.id)
    if run_in_transaction(lambda session: session.scalar(claimed)) is None:
        return None
    with_key = select(*UPLOADS.c, ADMIN_SESSIONS.c.key_id).join(
        ADMIN_SESSIONS, ADMIN_SESSIONS.c.id == UPLOADS.c.session_id
    )
    rows = fetch(with_key.where(UPLOADS.c.id == upload_id))
    return rows[0] if rows else None


def is_at(session: Session, upload_id: int, position: int) -> bool:
    """Lock a file until the commit, and return whether its import is at a position."""
    this = UPLOADS.c.id == upload_id, UPLOADS.c.position == position
    return session.scalar(select(UPLOADS.c.id).where(*this).with_for_update()) is not None


def note(session: Session, upload_id: int, changes: Mapping[str, Any]) -> None:
    """Store how far the import of a file is: its position, COUNTS, failures and ``claimed_at``."""
    session.execute(update(UPLOADS).where(UPLOADS.c.id == upload_id).values(changes))
