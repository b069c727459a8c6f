"""Writing events, in the transaction of the changes that they report (events 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import insert, literal_column
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change, current_catalog
from app.db.bulk_inserts import insert_records
from app.db.locks import has_one_writer
from app.db.records import Record
from app.db.session import now
from app.db.sql.types import Id
from app.models import EVENTS
from app.services.common.bulk import Data

_ONE = insert(EVENTS).inline()  # without RETURNING

# On SQLite one transaction writes at a time, so the order of positions is the order in which
# readers see the events, and the ID, which is the position, is assigned at once. SQLite updates the
# sequence at the end of the statement, which runs once for each row: the table has no triggers, so
# this takes half of the time of one statement for all rows. It would bind parameters each time.
_NEXT = literal_column(
    "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0) + 1", Id
)
_ONE_ON_SQLITE = _ONE.values(id=_NEXT)


CAUSE = ("user_id", "request_id", "key_id", "session_id")
"""The columns of an event that say who made the change."""


Cause = Principal | Change
"""Who makes a change: the principal of a request, or a change that a hook is notified of."""


def cause_of(cause: Cause | None) -> Record:
    """Return who makes a change, by the columns of events. A command has no values."""
    return {name: getattr(cause, name, None) for name in CAUSE}


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to write.

    Args:
        type: a type of the catalog: ``<resource>.<what happened>``.
        data: what the event reports, as JSON: usually the record under the name of its resource.
        customer_id: the customer whose personal data is in ``data`` and ``changes``.
        changes: what the write changed, or None (people 1).
    """

    type: str
    resource_id: int
    data: Data
    customer_id: int | None = None
    changes: Mapping[str, object] | None = None


def record(session: Session, cause: Cause | None, events: Sequence[NewEvent]) -> list[str]:
    """Write events in the transaction of a session, in their order, in one statement.

    If the transaction is rolled back or retried, its events are rolled back as well.

    Args:
        cause: who makes the change; None for a command.
        events: the events. Their types are in the catalog.

    Returns:
        ``data`` of each event as JSON.

    Raises:
        KeyError: a type is unknown.
    """
    if not events:
        return []
    known = current_catalog().event_types
    timestamp, causes = now(), cause_of(cause)
    rows: list[Record] = []
    for event in events:
        known[event.type]
        rows.append(
            {
                "type": event.type,
                "resource": event.type.partition(".")[0],
                "resource_id": event.resource_id,
                "created_at": timestamp,
                "data": orjson.dumps(event.data).decode(),
                "customer_id": event.customer_id,
                "changes": event.changes and orjson.dumps(event.changes).decode(),
                **causes,
            }
        )
    # Core's execute takes two thirds of the time of the session's.
    connection = session.connection()
    if has_one_writer(session):
        connection.execute(_ONE_ON_SQLITE, rows)
    elif len(rows) == 1:
        connection.execute(_ONE, rows[0])
    else:
        insert_records(session, EVENTS, rows)
    return [row["data"] for row in rows]
