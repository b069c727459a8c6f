"""The sequencer: numbers events after their commit, in the order in which readers see them.

PostgreSQL assigns an identity before the commit. A reader that has seen position 105 could miss
position 104, whose transaction commits later. IDs are therefore assigned to committed events only:
one transaction at a time, which an advisory lock ensures, numbers all that it sees. A reader that
sees an ID sees every lower one.

An event has a higher position than an earlier event of the same record, because the second
transaction waits for the lock of the record before it writes its event.
"""

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.db.locks import lock_until_commit
from app.db.read_pool import fetch, on_postgresql
from app.db.session import run_in_transaction
from app.models import EVENT_FEED, EVENTS

BATCH = 1000
"""Events that one transaction numbers."""

_LOCK_KEY = 7_345_102_881
"""The advisory lock of the sequencer in a database. Any number that nothing else uses."""

_IS_UNNUMBERED = EVENTS.c.id.is_(None)
_LAST_ID = select(EVENT_FEED.c.last_id)

_next = (
    select(EVENTS.c.position)
    .where(_IS_UNNUMBERED)
    .order_by(EVENTS.c.position)
    .limit(bindparam("limit", type_=BigInteger))
    .subquery("next")
)
_numbered = select(
    _next.c.position,
    (
        bindparam("last_id", type_=BigInteger) + func.row_number().over(order_by=_next.c.position)
    ).label("id"),
).subquery("numbered")
# PostgreSQL finds the least position in the index of unnumbered events. For EXISTS, it would read
# the whole table if it took its statistics while many events were unnumbered.
_HAS_UNNUMBERED = (
    select(func.min(EVENTS.c.position)).where(_IS_UNNUMBERED).scalar_subquery().is_not(None)
)
_SELECT_HAS_UNNUMBERED = select(_HAS_UNNUMBERED)
_NUMBER = update(EVENTS).where(EVENTS.c.position == _numbered.c.position).values(id=_numbered.c.id)


def number_events() -> int:
    """Number committed events that have no ID, and return how many: at most 10 times BATCH.

    Waits while another process numbers. On SQLite events are numbered as they are written, so
    there are none to number.
    """
    total = 0
    for _transaction in range(10 if on_postgresql() else 0):
        numbered = run_in_transaction(_number) if fetch(_SELECT_HAS_UNNUMBERED)[0][0] else 0
        total += numbered
        if numbered < BATCH:
            break
    return total


def lock_sequence(session: Session) -> None:
    """Wait until no other transaction numbers or removes events, and hold this until the commit."""
    lock_until_commit(session, _LOCK_KEY)


def has_unnumbered() -> ColumnElement[bool]:
    """Return the condition that committed events have no ID yet."""
    return _HAS_UNNUMBERED


def last_event_id(session: Session) -> int:
    """Number committed events, and return the ID of the last event, or 0.

    The transaction of the session numbers them, so later events get their IDs after its commit.
    """
    number_events()
    return session.scalar(select(func.max(EVENTS.c.id))) or 0


def removed_event_id(session: Session) -> int:
    """Return the highest ID of an event that was removed because of its age, or 0."""
    return session.scalar(select(EVENT_FEED.c.removed_id)) or 0


def _number(session: Session) -> int:
    # At READ COMMITTED, the next statement sees what was committed before the lock was free.
    lock_sequence(session)
    last_id = session.scalar(_LAST_ID)
    if last_id is None:
        session.execute(insert(EVENT_FEED).values(id=1, last_id=0, removed_id=0))
    given = {"limit": BATCH, "last_id": last_id or 0}
    numbered = session.connection().execute(_NUMBER, given).rowcount
    if numbered:
        session.execute(update(EVENT_FEED).values(last_id=(last_id or 0) + numbered))
    return numbered
