"""Uploaded files: stored for the session that sent them, until they are imported (admin 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, exists, insert, select, update

from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.models import UPLOADS
from app.models.upload import KEPT

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
    rows = fetch(
        select(UPLOADS).where(
            UPLOADS.c.id == upload_id,
            UPLOADS.c.session_id == session_id,
            UPLOADS.c.created_at >= now() - KEPT,
        )
    )
    return rows[0] if rows else None


def was_imported(session_id: int, kind: str, digest: str) -> bool:
    """Return whether the session has imported the same file within the last hour."""
    same = exists().where(
        UPLOADS.c.session_id == session_id,
        UPLOADS.c.kind == kind,
        UPLOADS.c.digest == digest,
        UPLOADS.c.position > 0,
    )
    return bool(fetch(select(same))[0][0])


def note(upload_id: int, position: int, changes: Mapping[str, Any]) -> bool:
    """Store how far the import of a file is.

    Args:
        upload_id: the file.
        position: the position before.
        changes: the new position, COUNTS and failures.

    Returns:
        Whether the file was still at the position. Otherwise, another request has continued it.
    """
    is_here = UPLOADS.c.id == upload_id, UPLOADS.c.position == position
    statement = update(UPLOADS).where(*is_here).values(changes).returning(UPLOADS.c.id)
    return run_in_transaction(lambda session: session.scalar(statement)) is not None
