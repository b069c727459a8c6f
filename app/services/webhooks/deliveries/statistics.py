"""Statistics of deliveries: counts of results, and pending work (events 2)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from app.db.bulk_inserts import insert_into
from app.db.read_pool import ReadRow, fetch
from app.db.session import precise_now
from app.db.sql.index_hints import has_constant
from app.models import DELIVERY_COUNTS, EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookStatus
from app.models.webhook_delivery import DeliveryState

RESULTS = "delivered", "retried", "failed", "webhook_disabled"
"""Results of attempts that are counted, and webhooks that the service has disabled."""


STUCK = timedelta(minutes=2)
"""Age after which due work is stuck, because a running worker would have processed it."""


class Queue(NamedTuple):
    """Pending work of the worker.

    Attributes:
        deliveries: number of pending deliveries of active webhooks.
        events: number of events for which deliveries must still be created.
        oldest: creation time of the oldest delivery or event, or None.
    """

    deliveries: int
    events: int
    oldest: datetime | None


def count_results(session: Session, results: Mapping[str, int]) -> None:
    """Add to the counts of results."""
    rows = [{"result": result, "count": number} for result, number in sorted(results.items())]
    statement = insert_into(session, DELIVERY_COUNTS)
    added = DELIVERY_COUNTS.c.count + statement.excluded.count
    session.execute(
        statement.on_conflict_do_update(index_elements=["result"], set_={"count": added}), rows
    )


def counts() -> dict[str, int]:
    """Return the number of each of RESULTS since the installation."""
    columns = DELIVERY_COUNTS.c.result, DELIVERY_COUNTS.c.count
    found: dict[str, int] = {row[0]: row[1] for row in fetch(select(*columns))}
    return {result: found.get(result, 0) for result in RESULTS}


_IS_ACTIVE = WEBHOOKS.c.status == WebhookStatus.ACTIVE
_PENDING = (
    select(WEBHOOK_DELIVERIES.c.created_at, WEBHOOK_DELIVERIES.c.next_attempt_at)
    .join(WEBHOOKS, WEBHOOKS.c.id == WEBHOOK_DELIVERIES.c.webhook_id)
    .where(has_constant(WEBHOOK_DELIVERIES.c.state, DeliveryState.PENDING), _IS_ACTIVE)
)
# Events behind the first active webhook, or without an ID while there is an active webhook.
_POSITION = select(func.min(WEBHOOKS.c.position)).where(_IS_ACTIVE).scalar_subquery()
_UNCOLLECTED = select(EVENTS.c.created_at).where(
    or_(EVENTS.c.id > _POSITION, and_(EVENTS.c.id.is_(None), _POSITION.is_not(None)))
)


def queue() -> Queue:
    """Return the pending work."""
    found: list[ReadRow] = []
    for waiting in (_PENDING.subquery(), _UNCOLLECTED.subquery()):
        found += fetch(select(func.count(), func.min(waiting.c.created_at)).select_from(waiting))
    (deliveries, first), (events, second) = found
    return Queue(deliveries, events, min(filter(None, (first, second)), default=None))


def overdue(before: datetime) -> Select[Any]:
    """Return the deliveries that could have been sent before a time, and that no worker has."""
    is_leased = and_(WEBHOOKS.c.lease_until.is_not(None), WEBHOOKS.c.lease_until > before)
    is_resting = and_(WEBHOOKS.c.resume_at.is_not(None), WEBHOOKS.c.resume_at > before)
    return _PENDING.where(WEBHOOK_DELIVERIES.c.next_attempt_at < before, ~is_leased, ~is_resting)


def stuck() -> int:
    """Return the number of deliveries and events that a worker would have processed by now."""
    before = precise_now() - STUCK
    due = overdue(before).subquery()
    events = _UNCOLLECTED.where(EVENTS.c.created_at < before).subquery()
    return sum(fetch(select(func.count()).select_from(waiting))[0][0] for waiting in (due, events))


def active_webhooks() -> int:
    """Return the number of active webhooks."""
    return int(fetch(select(func.count()).select_from(WEBHOOKS).where(_IS_ACTIVE))[0][0])


def gauges() -> dict[str, float]:
    """Return the gauges of the queue for ``/metrics``."""
    waiting = queue()
    age = (precise_now() - waiting.oldest).total_seconds() if waiting.oldest else 0.0
    return {
        "pending_deliveries": waiting.deliveries,
        "pending_events": waiting.events,
        "oldest_pending_seconds": max(age, 0.0),
    }
