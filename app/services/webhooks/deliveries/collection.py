"""Creating the deliveries of new events, and replaying those of earlier ones (events 2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.conversions.numbers import INT64_MAX
from app.conversions.webhooks import wants
from app.db.bulk_inserts import insert_into
from app.db.read_pool import ReadRow
from app.db.records import Record, row_dicts
from app.db.session import now, precise_now, run_in_transaction
from app.errors import Sentence, ShopError
from app.models import EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookStatus
from app.models.webhook_delivery import DeliveryState, WebhookDeliveryRow, new_delivery
from app.services.events.retention import HAS_DATA
from app.services.events.sequence import last_event_id, lock_sequence, removed_event_id
from app.services.webhooks.topics import can_read
from app.services.webhooks.writes import changed, locked

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
    groups: dict[int, list[ReadRow]] = {}
    for webhook in webhooks:
        groups.setdefault(webhook.position, []).append(webhook)
    for position, group in groups.items():
        _collect_from(session, position, group)


def _collect_from(session: Session, position: int, webhooks: Sequence[ReadRow]) -> None:
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


def redeliver(actor: Principal, webhook_id: int, delivery_id: int) -> Record:
    """Queue a delivery again and return it by its column names.

    Raises:
        ShopError: the webhook or the delivery does not exist, the capability is missing, the
            webhook is not active, or the event was removed because of its age.
    """

    def work(session: Session) -> Record:
        webhook = locked(session, actor, webhook_id)
        of_webhook = (
            WEBHOOK_DELIVERIES.c.id == min(delivery_id, INT64_MAX),
            WEBHOOK_DELIVERIES.c.webhook_id == webhook_id,
        )
        this = select(WEBHOOK_DELIVERIES).where(*of_webhook).with_for_update()
        deliveries: list[WebhookDeliveryRow] = row_dicts(session.execute(this))
        if not deliveries:
            raise ShopError("shop_api_invalid_webhook_delivery_id")
        (found,) = deliveries
        require_active(webhook)
        _require_event(session, found["event_id"])
        changes = {"state": DeliveryState.PENDING, "attempt_count": 0, "next_attempt_at": now()}
        session.execute(
            update(WEBHOOK_DELIVERIES).where(WEBHOOK_DELIVERIES.c.id == delivery_id).values(changes)
        )
        changed(session, webhook, {"resume_at": None, "failure_count": 0})
        hidden = {} if can_read(actor, webhook["topics"]) else {"response_body": ""}
        return {**found, **changes, **hidden}

    return run_in_transaction(work)


def replay(actor: Principal, webhook_id: int, after: int) -> dict[str, int]:
    """Send the retained events after an ID again, in their order. The worker queues them.

    Returns:
        The IDs ``after`` and ``through``, the last event of the replay.

    Raises:
        ShopError: events after the ID were removed, or the webhook is not active.
    """

    def work(session: Session) -> dict[str, int]:
        webhook = locked(session, actor, webhook_id)
        require_active(webhook)
        lock_sequence(session)  # no event is removed between the check and the commit
        if after < (removed_id := removed_event_id(session)):
            raise ShopError("shop_api_events_expired", removed_id=removed_id)
        through = last_event_id(session)
        position = min(after, through, webhook["position"])
        changed(session, webhook, {"position": position, "resume_at": None, "failure_count": 0})
        return {"after": after, "through": max(through, after)}

    return run_in_transaction(work)


def require_active(webhook: Mapping[str, object]) -> None:
    """Raise ShopError unless a webhook is active."""
    if webhook["status"] != WebhookStatus.ACTIVE:
        raise ShopError("shop_api_webhook_not_active", status=Sentence(str(webhook["status"])))


def _require_event(session: Session, event_id: int | None) -> None:
    """Raise ShopError unless an event is retained until the commit. A ping has none."""
    if event_id is None:
        return
    lock_sequence(session)
    if not session.scalar(select(exists().where(EVENTS.c.id == event_id, HAS_DATA))):
        raise ShopError("shop_api_events_expired", removed_id=removed_event_id(session))
