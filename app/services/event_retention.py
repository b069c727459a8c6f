"""Removal of events after ``SHOP_EVENTS_DAYS`` (events 1)."""

from __future__ import annotations

from datetime import timedelta

from flask import current_app
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.orm import Session

from app.db.session import now, run_in_transaction
from app.services.event_sequence import FEED, lock_sequence, number_events
from app.services.events import TABLE

BATCH = 500
"""Maximum number of events that one transaction removes, so that others do not wait long."""


def remove_expired_events(*conditions: ColumnElement[bool]) -> int:
    """Remove events that are older than ``SHOP_EVENTS_DAYS``, and return their number.

    Looks at the oldest BATCH events. Call it again while it returns BATCH.

    Args:
        conditions: conditions for the removal in addition to the age, for example that the event
            has no pending delivery.
    """
    number_events()
    before = now() - timedelta(days=current_app.config["SHOP_EVENTS_DAYS"])
    # IDs ascend with time, so only the first ones are read, also when none of them has expired.
    oldest = select(TABLE.c.id).where(TABLE.c.id > 0).order_by(TABLE.c.id).limit(BATCH)
    expired = TABLE.c.id.in_(oldest), TABLE.c.created_at < before, *conditions

    def work(session: Session) -> int:
        lock_sequence(session)
        removed = session.scalars(delete(TABLE).where(*expired).returning(TABLE.c.id)).all()
        if removed:
            # A reader whose cursor is lower gets an error, because it has missed events.
            last = max(id_ for id_ in removed if id_ is not None)
            if session.scalar(select(FEED.c.id)) is None:
                session.execute(insert(FEED).values(id=1, last_id=0, removed_id=0))
            session.execute(update(FEED).where(FEED.c.removed_id < last).values(removed_id=last))
        return len(removed)

    return run_in_transaction(work)
