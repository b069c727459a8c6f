"""Creating the deliveries of new events (events 2)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.conversions.webhooks import wants
from app.db.bulk_inserts import insert_into
from app.db.session import precise_now
from app.models import EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookStatus
from app.models.webhook_delivery import new_delivery
from app.services.events.retention import HAS_DATA

BATCH = 500
"""Events for which deliveries are created in one transaction."""


def collect(session: Session) -> None:
    """Create the deliveries of new events for every active webhook.

    Webhooks at the same position are served together, so that a replay delays no other webhook.
    """
    head = session.scalar(select(func.max(EVENTS.c.id))) or 0
    webhooks = session.execute(
        select(WEBHOOKS.c.id, WEBHOOKS.c.topics, WEBHOOKS.c.position)
        .where(WEBHOOKS.c.status == WebhookStatus.ACTIVE, WEBHOOKS.c.position < head)
        .order_by(WEBHOOKS.c.id)
        .with_for_update(skip_locked=True)
    ).all()
    groups: dict[int, list[Any]] = {}
    for webhook in webhooks:
        groups.setdefault(webhook.position, []).append(webhook)
    for position, group in groups.items():
        _collect_from(session, position, group)


def _collect_from(session: Session, position: int, webhooks: Sequence[Any]) -> None:
    events = session.execute(
        select(EVENTS.c.id, EVENTS.c.type, EVENTS.c.resource, EVENTS.c.resource_id)
        .where(EVENTS.c.id > position, HAS_DATA)
        .order_by(EVENTS.c.id)
        .limit(BATCH)
    ).all()
    timestamp = precise_now()
    rows = [
        {
            **new_delivery(webhook.id, timestamp),
            "event_id": event.id,
            "resource": event.resource,
            "resource_id": event.resource_id,
        }
        for event in events
        for webhook in webhooks
        if wants(webhook.topics, event.type)
    ]
    if rows:
        session.execute(_upsert(session), rows)
    if events:
        session.execute(
            update(WEBHOOKS)
            .where(WEBHOOKS.c.id.in_([webhook.id for webhook in webhooks]))
            .values(position=events[-1].id)
        )


def _upsert(session: Session) -> Any:
    """Return an insert that queues an existing delivery again, as a replay does."""
    statement = insert_into(session, WEBHOOK_DELIVERIES)
    names = "state", "attempt_count", "next_attempt_at"
    again = {name: statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=["webhook_id", "event_id"], set_=again)
