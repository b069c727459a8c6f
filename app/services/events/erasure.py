"""Removal of the personal data of a deleted customer from retained events (events 1)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import Row, Select, bindparam, select, update
from sqlalchemy.orm import Session

from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import EVENTS, WEBHOOK_DELIVERIES
from app.services.common.locks import hold_accounts
from app.services.events.outbox import NewEvent

BATCH = 500
"""Number of events in memory at a time."""

PERSONAL = frozenset(
    {
        "email",
        "username",
        "first_name",
        "last_name",
        "billing_address",
        "shipping_address",
        "shipping_phone",
        "billing",
        "shipping",
        "customer_ip",
        "customer_ip_address",
        "customer_user_agent",
        "note",
        "customer_note",
        "reason",
        "transaction_id",
        "refunded_by",
        "login",
        "author",
        "description",
    }
)
"""Names of personal values in the data of customers, orders, notes, refunds, invitations and keys,
in every dialect and at any depth."""

METADATA = "metadata"
"""Name of the values of integrations in the data of events, which can contain anything."""

_EMPTY: Mapping[str, Any] = {
    METADATA: {},
    "customer_meta": {},
    "order_meta": {},
    "meta_data": [],
    "meta": [],  # attributes of lines
    "tags": [],
    "avatar_url": None,  # an empty text is not a URL
}
"""Empty values of what is metadata in one of the dialects, or derived from personal data."""

_EVENTS = (
    select(EVENTS.c.position, EVENTS.c.id, EVENTS.c.data, EVENTS.c.changes)
    .where(EVENTS.c.position > bindparam("after"))
    .order_by(EVENTS.c.position)
    .limit(BATCH)
    .with_for_update()
)
_OF_CUSTOMER = _EVENTS.where(EVENTS.c.customer_id == bindparam("customer"))
_OF_RECORDS = _EVENTS.where(
    EVENTS.c.resource == bindparam("resource"),
    is_one_of(EVENTS.c.resource_id, bindparam("ids", type_=IdList)),
)
_OF_GUEST = _OF_RECORDS.where(EVENTS.c.customer_id.is_(None))
_OF_OTHERS = _OF_RECORDS.where(EVENTS.c.customer_id.is_not(None), EVENTS.c.changes.is_not(None))
# Two partial indexes: of numbered events, and of those that are not numbered yet.
_PARTS = EVENTS.c.id.is_not(None), EVENTS.c.id.is_(None)
_OF_GUEST_PARTS = [_OF_GUEST.where(part) for part in _PARTS]
_OF_OTHERS_PARTS = [_OF_OTHERS.where(part) for part in _PARTS]
_BLANK_CHANGES = (
    update(EVENTS)
    .where(EVENTS.c.position == bindparam("this"))
    .values(changes=bindparam("blanked_changes"))
)
_BLANK = (
    update(EVENTS)
    .where(EVENTS.c.position == bindparam("this"))
    .values(data=bindparam("blanked"), changes=bindparam("blanked_changes"), customer_id=None)
)
_BLANK_RESPONSES = (
    update(WEBHOOK_DELIVERIES)
    .where(is_one_of(WEBHOOK_DELIVERIES.c.event_id, bindparam("events", type_=IdList)))
    .values(response_body="", response_headers={})
)


def erase_events(
    session: Session, customer_id: int, records: Mapping[str, Collection[int]]
) -> None:
    """Remove the personal data from the events of a customer and of the customer's orders.

    Names, addresses, notes and technical data become empty. IDs, times, amounts and statistics
    stay, so that the events still report what changed. Responses of receivers of the events can
    repeat the data, so they become empty, too.

    Args:
        records: IDs of the customer's orders and of their notes, by resource. Their events can be
            those of a guest.
    """
    _erase(session, _OF_CUSTOMER, {"customer": customer_id})
    for resource, ids in records.items():
        for part in _OF_GUEST_PARTS if ids else ():
            _erase(session, part, {"resource": resource, "ids": list(ids)})
    _erase_earlier_owner(session, customer_id, records.get("order", ()))


def _erase_earlier_owner(session: Session, customer_id: int, orders: Collection[int]) -> None:
    """Blank the changes that gave orders of a customer to another one, whose events they are."""
    parameters = {"resource": "order", "ids": list(orders)}
    for part in _OF_OTHERS_PARTS if orders else ():
        for events in _batches(session, part, parameters):
            blanked = [
                {"this": event.position, "blanked_changes": _blanked(event.changes)}
                for event in events
                if orjson.loads(event.changes)["before"].get("customer_id") == customer_id
            ]
            if blanked:
                session.execute(_BLANK_CHANGES, blanked)


def _erase(session: Session, found: Select[Any], parameters: Mapping[str, Any]) -> None:
    for events in _batches(session, found, parameters):
        blanked = [
            {
                "this": event.position,
                "blanked": _blanked(event.data),
                "blanked_changes": event.changes and _blanked(event.changes),
            }
            for event in events
        ]
        session.execute(_BLANK, blanked)
        ids = [event.id for event in events if event.id is not None]
        session.execute(_BLANK_RESPONSES, {"events": ids})


def _batches(
    session: Session, found: Select[Any], parameters: Mapping[str, Any]
) -> Iterator[Sequence[Row[Any]]]:
    """Lock and return the events that a statement finds, BATCH at a time."""
    after = 0
    while events := session.execute(found, {**parameters, "after": after}).all():
        yield events
        after = events[-1].position


def _blanked(text: str) -> str:
    return orjson.dumps(blank(orjson.loads(text))).decode()


def without_deleted_customers(session: Session, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Return events of a plugin, without the personal data of customers that no longer exist."""
    held = hold_accounts(session, [event.customer_id or 0 for event in events])
    return [
        event
        if event.customer_id is None or event.customer_id in held
        else replace(event, data=blank(event.data), changes=None, customer_id=None)
        for event in events
    ]


def blank(value: Any, *, personal: bool = False) -> Any:
    """Return a JSON value without metadata and personal data: all its texts if ``personal``."""
    if isinstance(value, Mapping):
        return {name: _blank_value(name, inner, personal) for name, inner in value.items()}
    if isinstance(value, list):
        return [blank(inner, personal=personal) for inner in value]
    if personal and isinstance(value, int) and not isinstance(value, bool):
        return None  # refunded_by
    return "" if personal and isinstance(value, str) else value


def _blank_value(name: str, value: Any, is_personal: bool) -> Any:
    if name in _EMPTY:
        return _EMPTY[name]
    return blank(value, personal=is_personal or name in PERSONAL)
