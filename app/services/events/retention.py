"""Removal of the data of events, and of events, because of their age (events 1, people 1)."""

from datetime import timedelta
from typing import NamedTuple

from flask import current_app
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.orm import Session

from app.db.session import now, run_in_transaction
from app.models import EVENT_FEED, EVENTS
from app.services.events.sequence import lock_sequence, number_events, removed_event_id

BATCH = 500
"""Maximum number of events that one transaction examines, so that others do not wait long."""

HAS_DATA = EVENTS.c.data != "{}"
"""Whether the data of an event is retained."""

_WITHOUT_HISTORY = EVENTS.c.type.in_(["coupon.redeemed", "coupon.released"])


class Removal(NamedTuple):
    """The result of removing the expired events of a batch, or their data.

    Attributes:
        removed: number of events that were removed, or lost their data.
        last_id: the last event of the batch; None if no event after it has expired.
    """

    removed: int
    last_id: int | None


def remove_expired_data(*conditions: ColumnElement[bool], after: int | None = None) -> Removal:
    """Remove the data of events that are older than ``SHOP_EVENTS_DAYS`` from a batch of events.

    Uses of coupons are removed. Events that must stay do not stop the removal: call it again with
    ``last_id`` as ``after``.

    Args:
        conditions: conditions for the removal in addition to the age, for example that the event
            has no pending delivery.
        after: the ID before the batch. None for the last event whose data was removed.
    """
    number_events()

    def work(session: Session) -> Removal:
        lock_sequence(session)
        start = removed_event_id(session) if after is None else after
        expired = _expired(session, "SHOP_EVENTS_DAYS", start)
        if not expired:
            return Removal(0, None)
        wanted = (EVENTS.c.id.in_(expired), HAS_DATA, *conditions)
        uses = delete(EVENTS).where(*wanted, _WITHOUT_HISTORY).returning(EVENTS.c.id)
        others = update(EVENTS).where(*wanted).values(data="{}").returning(EVENTS.c.id)
        removed = [*session.scalars(uses), *session.scalars(others)]
        if removed:
            _note_removed(session, max(removed))
        return Removal(len(removed), expired[-1] if len(expired) == BATCH else None)

    return run_in_transaction(work)


def remove_expired_events(*conditions: ColumnElement[bool], after: int = 0) -> Removal:
    """Remove events before the start of the feed that are older than ``SHOP_HISTORY_DAYS``.

    The arguments are those of ``remove_expired_data``.
    """

    def work(session: Session) -> Removal:
        lock_sequence(session)
        expired = _expired(session, "SHOP_HISTORY_DAYS", after)
        # Data of an event before the start of the feed has stayed: its webhook was deleted.
        is_old = ~HAS_DATA | (EVENTS.c.id <= removed_event_id(session))
        wanted = (EVENTS.c.id.in_(expired), is_old, *conditions)
        removed = session.scalars(delete(EVENTS).where(*wanted).returning(EVENTS.c.id)).all()
        return Removal(len(removed), expired[-1] if len(expired) == BATCH else None)

    return run_in_transaction(work)


def _expired(session: Session, setting: str, after: int) -> list[int]:
    """Return the IDs of the events of a batch that are older than a setting in days.

    The history is never shorter than ``SHOP_EVENTS_DAYS``.
    """
    days = max(current_app.config[setting], current_app.config["SHOP_EVENTS_DAYS"])
    before = now() - timedelta(days=days)
    # IDs ascend with time, so only the first ones are read, also when none of them has expired.
    batch = (
        select(EVENTS.c.id, EVENTS.c.created_at)
        .where(EVENTS.c.id > after)
        .order_by(EVENTS.c.id)
        .limit(BATCH)
    )
    return [row.id for row in session.execute(batch) if row.created_at < before]


def _note_removed(session: Session, last_id: int) -> None:
    """Store the last event without data: a reader whose cursor is lower gets an error."""
    if session.scalar(select(EVENT_FEED.c.id)) is None:
        session.execute(insert(EVENT_FEED).values(id=1, last_id=0, removed_id=0))
    is_lower = EVENT_FEED.c.removed_id < last_id
    session.execute(update(EVENT_FEED).where(is_lower).values(removed_id=last_id))
