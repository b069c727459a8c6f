"""Removal of events after ``SHOP_EVENTS_DAYS`` (events 1)."""

from datetime import timedelta
from typing import NamedTuple

from flask import current_app
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.orm import Session

from app.db.session import now, run_in_transaction
from app.models import EVENT_FEED, EVENTS
from app.services.events.sequence import lock_sequence, number_events

BATCH = 500
"""Maximum number of events that one transaction examines, so that others do not wait long."""


class Removal(NamedTuple):
    """The result of removing the expired events of a batch.

    Attributes:
        removed: number of removed events.
        last_id: the last event of the batch; None if no event after it has expired.
    """

    removed: int
    last_id: int | None


def remove_expired_events(*conditions: ColumnElement[bool], after: int = 0) -> Removal:
    """Remove events that are older than ``SHOP_EVENTS_DAYS`` from the next BATCH events.

    Events that must stay do not stop the removal: call it again with ``last_id`` as ``after``.

    Args:
        conditions: conditions for the removal in addition to the age, for example that the event
            has no pending delivery.
        after: the ID before the batch.
    """
    number_events()
    before = now() - timedelta(days=current_app.config["SHOP_EVENTS_DAYS"])
    # IDs ascend with time, so only the first ones are read, also when none of them has expired.
    batch = (
        select(EVENTS.c.id, EVENTS.c.created_at)
        .where(EVENTS.c.id > after)
        .order_by(EVENTS.c.id)
        .limit(BATCH)
    )

    def work(session: Session) -> Removal:
        lock_sequence(session)
        expired = [row.id for row in session.execute(batch) if row.created_at < before]
        if not expired:
            return Removal(0, None)
        is_expired = EVENTS.c.id.between(expired[0], expired[-1]), EVENTS.c.created_at < before
        statement = delete(EVENTS).where(*is_expired, *conditions).returning(EVENTS.c.id)
        removed = [id_ for id_ in session.scalars(statement) if id_ is not None]
        if removed:
            # A reader whose cursor is lower gets an error, because it has missed events.
            last = max(removed)
            if session.scalar(select(EVENT_FEED.c.id)) is None:
                session.execute(insert(EVENT_FEED).values(id=1, last_id=0, removed_id=0))
            session.execute(
                update(EVENT_FEED).where(EVENT_FEED.c.removed_id < last).values(removed_id=last)
            )
        return Removal(len(removed), expired[-1] if len(expired) == BATCH else None)

    return run_in_transaction(work)
