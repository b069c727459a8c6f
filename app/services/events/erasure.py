"""Removal of personal data from retained events (events 1, people 5)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import Select, Update, bindparam, select, update
from sqlalchemy.orm import Session

from app.db.read_pool import ReadRow
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import EVENTS, WEBHOOK_DELIVERIES
from app.models.personal_data import EMPTY_VALUES, NAMES
from app.services.common.locks import hold_accounts
from app.services.events.outbox import NewEvent

BATCH = 500
"""Number of events in memory at a time."""

REPORTED = ("order", "order_note", "order_refund", "invitation")
"""Resources whose events contain personal data of customers, in addition to the customers."""

_EVENTS = (
    select(
        *(EVENTS.c[name] for name in ("position", "id", "resource", "resource_id")),
        EVENTS.c.data,
        EVENTS.c.changes,
    )
    .where(EVENTS.c.position > bindparam("after"))
    .order_by(EVENTS.c.position)
    .limit(BATCH)
    .with_for_update()
)
# SQLite reads the events of one customer in order from the index, if it is not one of a list.
_OF_CUSTOMERS = _EVENTS.where(EVENTS.c.customer_id.in_(bindparam("ids", expanding=True)))
# Two partial indexes: of numbered events, and of those that are not numbered yet.
_OF_RECORDS = [
    _EVENTS.where(
        EVENTS.c.resource == bindparam("resource"),
        is_one_of(EVENTS.c.resource_id, bindparam("ids", type_=IdList)),
        is_numbered,
    )
    for is_numbered in (EVENTS.c.id.is_not(None), EVENTS.c.id.is_(None))
]
_WRITE = (
    update(EVENTS)
    .where(EVENTS.c.position == bindparam("this"))
    .values(data=bindparam("blanked"), changes=bindparam("blanked_changes"))
)
_BLANK = _WRITE.values(customer_id=None)
_BLANK_RESPONSES = (
    update(WEBHOOK_DELIVERIES)
    .where(is_one_of(WEBHOOK_DELIVERIES.c.event_id, bindparam("events", type_=IdList)))
    .values(response_body="", response_headers={})
)
# No other event of an account is without its ID.
_OF_MERGED = (
    update(WEBHOOK_DELIVERIES)
    .where(
        WEBHOOK_DELIVERIES.c.event_id.in_(
            select(EVENTS.c.id).where(
                EVENTS.c.resource == "customer",
                is_one_of(EVENTS.c.resource_id, bindparam("merged", type_=IdList)),
                EVENTS.c.type == "customer.deleted",
                EVENTS.c.id.is_not(None),
            )
        )
    )
    .values(response_body="", response_headers={})
)

Convert = Callable[[Any], Any]
"""Function that returns a JSON value without personal data."""


def erase_events(session: Session, records: Mapping[str, Collection[int]]) -> None:
    """Remove the personal data from the events of records.

    Names, addresses, notes and technical data become empty. IDs, times, amounts and statistics
    stay, so that the events still report what changed. Responses of receivers of the events can
    repeat the data, so they become empty, too.

    Args:
        records: IDs of orders and of their notes and refunds, by resource. Their events can be
            those of a guest, or of a customer who has the order now: until its address changed,
            they contain that of the earlier customer.
    """
    for resource, ids in records.items():
        rewrite_events(session, resource, ids, blank, _BLANK)


def erase_events_of(
    session: Session, customer_ids: Collection[int], size: int, after: int
) -> tuple[list[int], dict[str, set[int]]]:
    """Do the same for events of customers after a position, up to a number of them.

    Returns:
        The positions of the events, and the IDs of the records that they report, by resource.
    """
    if len(customer_ids) > 1 and not after:
        session.execute(_OF_MERGED, {"merged": list(customer_ids)})
    given = {"ids": list(customer_ids), "after": after}
    found = _OF_CUSTOMERS.limit(size)
    events: Sequence[ReadRow] = session.execute(found, given).all() if customer_ids else ()
    _write_converted(session, events, blank, _BLANK)
    records: dict[str, set[int]] = {name: set() for name in REPORTED}
    for event in events:
        if event.resource in records:
            records[event.resource].add(event.resource_id)
    return [event.position for event in events], records


def rewrite_events(
    session: Session,
    resource: str,
    ids: Collection[int],
    convert: Convert,
    write: Update = _WRITE,
) -> None:
    """Convert the data and the changes of all events of records."""
    for part in _OF_RECORDS if ids else ():
        _rewrite(session, part, {"resource": resource, "ids": list(ids)}, convert, write)


def _rewrite(
    session: Session,
    found: Select[Any],
    parameters: Mapping[str, object],
    convert: Convert,
    write: Update,
) -> None:
    for events in _batches(session, found, parameters):
        _write_converted(session, events, convert, write)


def _write_converted(
    session: Session, events: Sequence[ReadRow], convert: Convert, write: Update
) -> None:
    if not events:
        return
    rows = [
        {
            "this": event.position,
            "blanked": converted(event.data, convert),
            "blanked_changes": event.changes and converted(event.changes, convert),
        }
        for event in events
    ]
    session.execute(write, rows)
    ids = [event.id for event in events if event.id is not None]
    session.execute(_BLANK_RESPONSES, {"events": ids})


def _batches(
    session: Session, found: Select[Any], parameters: Mapping[str, object]
) -> Iterator[Sequence[ReadRow]]:
    """Lock and return the events that a statement finds, BATCH at a time."""
    after = 0
    while events := session.execute(found, {**parameters, "after": after}).all():
        yield events
        if len(events) < BATCH:
            break
        after = events[-1].position


def converted(text: str, convert: Convert) -> str:
    """Return the data or the changes of an event as another JSON text."""
    return orjson.dumps(convert(orjson.loads(text))).decode()


def hidden_data(data: str, changes: str | None) -> dict[str, str | None]:
    """Return what readers show of ``data`` and ``changes`` of an event with IS_HIDDEN."""
    return {
        "data": converted(data, blank),
        "changes": changes and converted(changes, blank),
    }


def without_deleted_customers(session: Session, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Return events of a plugin, without the personal data of customers that no longer exist."""
    held = hold_accounts(session, [event.customer_id or 0 for event in events])
    return [
        event
        if event.customer_id is None or event.customer_id in held
        else replace(event, data=blank(event.data), changes=None, customer_id=None)
        for event in events
    ]


def blank(value: object, *, personal: bool = False) -> Any:
    """Return a JSON value without metadata and personal data: all its texts if ``personal``."""
    if isinstance(value, Mapping):
        return {name: _blank_value(name, inner, personal) for name, inner in value.items()}
    if isinstance(value, list):
        return [blank(inner, personal=personal) for inner in value]
    if personal and isinstance(value, int) and not isinstance(value, bool):
        return None  # refunded_by
    return "" if personal and isinstance(value, str) else value


def _blank_value(name: str, value: object, is_personal: bool) -> object:
    if name in EMPTY_VALUES:
        return EMPTY_VALUES[name]
    return blank(value, personal=is_personal or name in NAMES)
