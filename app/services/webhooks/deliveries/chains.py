"""The deliveries that may be sent to a webhook, in order per resource (events 2)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NotRequired, cast

from sqlalchemy import Result, and_, exists, or_, select
from sqlalchemy.orm import Session

from app.catalog import WebhookForm
from app.db.records import Record, row_dicts
from app.db.session import reading_own_writes
from app.db.sql.index_hints import has_constant
from app.models import EVENTS, WEBHOOK_DELIVERIES
from app.models.webhook_delivery import DeliveryState, WebhookDeliveryRow
from app.services.common.erased import IS_HIDDEN
from app.services.events.erasure import blank, converted
from app.services.webhooks.deliveries.requests import Sender, SentEvent


class ClaimedDelivery(WebhookDeliveryRow):
    """A delivery with its event, whose columns are None for a ping."""

    event_type: str | None
    event_created_at: datetime | None
    event_data: str | None
    event_request_id: str | None
    body: NotRequired[bytes]


MAX_HEADS = 300
MAX_FOLLOWERS = 300
"""Maximum number of deliveries of a webhook in the memory of a worker: the first delivery of each
resource, and later deliveries of the same resources."""


_PENDING = has_constant(WEBHOOK_DELIVERIES.c.state, DeliveryState.PENDING)
_earlier = WEBHOOK_DELIVERIES.alias("earlier")
_IS_FIRST = ~exists(
    select(1).where(
        _earlier.c.webhook_id == WEBHOOK_DELIVERIES.c.webhook_id,
        has_constant(_earlier.c.state, DeliveryState.PENDING),
        _earlier.c.resource == WEBHOOK_DELIVERIES.c.resource,
        _earlier.c.resource_id == WEBHOOK_DELIVERIES.c.resource_id,
        _earlier.c.event_id < WEBHOOK_DELIVERIES.c.event_id,
    )
)

_WITH_EVENTS: Any = select(
    WEBHOOK_DELIVERIES,
    *(
        EVENTS.c[name].label(f"event_{name}")
        for name in ("type", "created_at", "data", "request_id")
    ),
    IS_HIDDEN.label("event_is_hidden"),
).outerjoin(EVENTS, EVENTS.c.id == WEBHOOK_DELIVERIES.c.event_id)


def chains_of(
    session: Session, sender: Sender, known: Collection[int], timestamp: datetime, *, limit: int
) -> list[list[ClaimedDelivery]]:
    """Return due deliveries beyond the known ones with their events: a list for each resource."""
    if len(known) > limit // 2:  # reads several at once, if there is room for them
        return []
    room = limit - len(known)
    of_webhook = and_(WEBHOOK_DELIVERIES.c.webhook_id == sender.webhook_id, _PENDING)
    due = WEBHOOK_DELIVERIES.c.next_attempt_at <= timestamp
    heads = _shown(
        session.execute(
            _WITH_EVENTS.where(
                of_webhook, due, WEBHOOK_DELIVERIES.c.id.not_in(known) if known else True, _IS_FIRST
            )
            .order_by(WEBHOOK_DELIVERIES.c.next_attempt_at, WEBHOOK_DELIVERIES.c.event_id)
            .limit(room)
        )
    )
    if pings := [[head] for head in heads if head["event_id"] is None]:
        return pings  # the first request to a receiver (events 3)
    chains = [[head] for head in heads]
    by_resource: dict[tuple[str, int | None], list[ClaimedDelivery]] = {
        (head["resource"], head["resource_id"]): chain
        for head, chain in zip(heads, chains, strict=True)
        if head["resource_id"] is not None
    }
    if limit > 1 and by_resource:
        is_follower = WEBHOOK_DELIVERIES.c.id.not_in([head["id"] for head in heads])
        of_chains = _WITH_EVENTS.where(of_webhook, is_follower)
        _add_followers(session, of_chains, by_resource, timestamp)
    return chains


def _shown(rows: Result[object]) -> list[ClaimedDelivery]:
    """Return deliveries with the data of their events that readers show."""
    found: list[Any] = row_dicts(rows)
    for each in found:
        if each.pop("event_is_hidden"):
            each["event_data"] = converted(each["event_data"], blank)
    return found


def add_bodies(form: WebhookForm, chains: Sequence[Sequence[ClaimedDelivery]]) -> None:
    """Add the bodies of deliveries in the form of a plugin."""
    deliveries = [each for chain in chains for each in chain if each["event_id"] is not None]
    with reading_own_writes():
        bodies = form.bodies([event_of(each) for each in deliveries])
        for delivery, body in zip(deliveries, bodies, strict=True):
            delivery["body"] = body


def event_of(delivery: ClaimedDelivery) -> SentEvent:
    """Return the event of a delivery that is not a ping."""
    event: Record = {
        "id": delivery["event_id"],
        "type": delivery["event_type"],
        "created_at": delivery["event_created_at"],
        "data": delivery["event_data"],
        "resource_id": delivery["resource_id"],
    }
    if "body" in delivery:
        event["body"] = delivery["body"]
    return cast("SentEvent", event)  # only the columns of a ping are None


def _add_followers(
    session: Session,
    with_events: Any,
    by_resource: Mapping[tuple[str, int | None], list[ClaimedDelivery]],
    timestamp: datetime,
) -> None:
    """Add the later deliveries of each resource to its chain, up to one that is not due."""
    resources: dict[str, list[int | None]] = {}
    for resource, resource_id in by_resource:
        resources.setdefault(resource, []).append(resource_id)
    of_resources = or_(
        *(
            and_(WEBHOOK_DELIVERIES.c.resource == name, WEBHOOK_DELIVERIES.c.resource_id.in_(ids))
            for name, ids in resources.items()
        )
    )
    later = with_events.where(of_resources).order_by(WEBHOOK_DELIVERIES.c.event_id)
    followers = _shown(session.execute(later.limit(MAX_FOLLOWERS)))
    blocked = set()
    for follower in followers:
        key = follower["resource"], follower["resource_id"]
        due_at = follower["next_attempt_at"]
        if due_at and due_at > timestamp:
            blocked.add(key)  # the later ones of this resource wait for it
        if key not in blocked:
            by_resource[key].append(follower)
