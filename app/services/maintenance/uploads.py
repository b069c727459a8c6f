"""Uploaded files: stored for the session that sent them, until they are imported (admin 5)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, exists, insert, or_, select, update

from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.models import ADMIN_SESSIONS, UPLOADS
from app.models.upload import IS_IMPORTING, KEPT

CLAIMED = timedelta(minutes=2)
"""How long other workers leave a file alone whose worker was killed."""

SHOWN = 20
"""Maximum number of files in a list."""

COUNTS = ("created", "updated", "skipped", "failed")


def keep(session_id: int, upload: Mapping[str, Any]) -> int:
    """Store a file and return its ID.

    Args:
        session_id: the session that has sent it.
        upload: name, kind, on_conflict, digest, content, size, the COUNTS of the dry run, and
            failures.
    """
    values = {"session_id": session_id, "position": 0, "created_at": now(), **upload}
    statement = insert(UPLOADS).values(values).returning(UPLOADS.c.id)
    return int(run_in_transaction(lambda session: session.execute(statement).scalar_one()))


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


def note(upload_id: int, position: int, changes: Mapping[str, Any]) -> bool:
    """Store how far the import of a file is.

    Args:
        position: the position before.
        changes: the new position, COUNTS, failures and ``claimed_at``.

    Returns:
        Whether the file was still at the position. Otherwise, another request has continued it.
    """
    is_here = UPLOADS.c.id == upload_id, UPLOADS.c.position == position
    statement = update(UPLOADS).where(*is_here).values(changes).returning(UPLOADS.c.id)
    return run_in_transaction(lambda session: session.scalar(statement)) is not None
