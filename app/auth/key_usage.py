"""The time when a key was last used, to the minute."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import or_, select, update

from app.db.best_effort import try_to_write
from app.models import ApiKey


def record_use(key_id: int, last_used_at: datetime | None) -> None:
    """Store that a key is used in the current minute.

    A worker reads a key at most once per second, together with its ``last_used_at``. Only the first
    request of a key in a minute writes, and it does not wait for other transactions. If the
    database is busy or read-only, a later request writes instead.

    Args:
        key_id: ID of the key.
        last_used_at: the stored time, in UTC; None for a key that was never used.
    """
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    if last_used_at is not None and last_used_at >= minute:
        return
    is_due = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < minute)
    key = select(ApiKey.id).where(ApiKey.id == key_id, is_due).with_for_update(skip_locked=True)
    try_to_write(
        update(ApiKey)
        .where(ApiKey.id.in_(key))
        .values(last_used_at=minute)
        .execution_options(synchronize_session=False)
    )
