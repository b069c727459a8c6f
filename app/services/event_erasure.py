"""Removal of the personal data of a deleted customer from retained events (events 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from app.models.tables import EVENTS
from app.services.events import NewEvent
from app.services.order_rows import hold_accounts

BATCH = 500
"""Number of events in memory at a time."""

PERSONAL = frozenset(
    {
        "email",
        "username",
        "first_name",
        "last_name",
        "avatar_url",
        "billing_address",
        "shipping_address",
        "customer_ip",
        "customer_user_agent",
        "note",
    }
)
"""Names of personal values in the data of customers, orders and order notes, at any depth."""

_OF_CUSTOMER = (
    select(EVENTS.c.position, EVENTS.c.data)
    .where(EVENTS.c.customer_id == bindparam("customer"))
    .order_by(EVENTS.c.position)
    .limit(BATCH)
    .with_for_update()
)
_BLANK = (
    update(EVENTS)
    .where(EVENTS.c.position == bindparam("this"))
    .values(data=bindparam("blanked"), customer_id=None)
)


def erase_customer(session: Session, customer_id: int) -> None:
    """Remove the personal data from the events of a customer and of the customer's orders.

    Names, addresses, notes and technical data become empty. IDs, times, amounts and statistics
    stay, so that the events still report what changed.
    """
    while events := session.execute(_OF_CUSTOMER, {"customer": customer_id}).all():
        blanked = [
            {"this": position, "blanked": orjson.dumps(_blanked(orjson.loads(data))).decode()}
            for position, data in events
        ]
        session.execute(_BLANK, blanked)
        if len(events) < BATCH:
            break


def without_deleted_customers(session: Session, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Return events of a plugin, without the personal data of customers that no longer exist."""
    held = hold_accounts(session, [event.customer_id or 0 for event in events])
    return [
        event
        if event.customer_id is None or event.customer_id in held
        else replace(event, data=_blanked(event.data), customer_id=None)
        for event in events
    ]


def _blanked(value: Any, *, personal: bool = False) -> Any:
    """Return a JSON value without personal data.

    Args:
        value: the value.
        personal: whether all texts in it are personal.
    """
    if isinstance(value, Mapping):
        return {
            name: _blanked(inner, personal=personal or name in PERSONAL)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_blanked(inner, personal=personal) for inner in value]
    return "" if personal and isinstance(value, str) else value
