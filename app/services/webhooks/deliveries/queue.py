"""The queue of deliveries: how workers lease webhooks and take their deliveries (events 2).

A worker leases a webhook, not a delivery. Only the holder of the lease sends to the webhook, so the
limits per webhook and the order per resource hold for any number of workers without further locks.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Interval, and_, exists, func, literal, or_, select, update
from sqlalchemy.orm import Session

from app.db.read_pool import fetch
from app.db.records import row_dicts
from app.db.session import precise_now
from app.db.sql.functions import shared_clock
from app.db.sql.index_hints import has_constant
from app.models import EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookRow, WebhookStatus
from app.models.webhook_delivery import DeliveryState
from app.services.events.sequence import has_unnumbered
from app.services.webhooks.deliveries.chains import (
    MAX_HEADS,
    ClaimedDelivery,
    add_bodies,
    chains_of,
)
from app.services.webhooks.deliveries.requests import Sender, sender_of
from app.services.webhooks.deliveries.retries import BREAKER
from app.services.webhooks.queries import has_form
from app.services.webhooks.states import NOT_READABLE, disable

Version = tuple[object, ...]

LEASE = timedelta(seconds=10)
"""Time for which a worker leases a webhook. It renews the lease while it sends."""

MAX_WEBHOOKS = 64
"""Maximum number of webhooks that one worker leases."""
_PENDING = has_constant(WEBHOOK_DELIVERIES.c.state, DeliveryState.PENDING)


@dataclass(slots=True)
class Batch:
    """Deliveries to a webhook that a worker may send now.

    Attributes:
        sender: the webhook.
        version: ``version_of`` the webhook.
        chains: deliveries with their events; those of a chain belong to one resource and are sent
            one after the other.
        one_at_a_time: whether to send one delivery at a time, because recent attempts have failed.
    """

    sender: Sender
    version: Version
    chains: list[list[ClaimedDelivery]] = field(default_factory=list)
    one_at_a_time: bool = False


def claim(session: Session, owner: str, held: Mapping[int, Collection[int]]) -> list[Batch]:
    """Lease webhooks with due deliveries, and return the deliveries.

    A webhook whose secret cannot be read is disabled.

    Args:
        held: the webhooks that the worker has leased, with the IDs of their deliveries in memory.
    """
    timestamp = precise_now()
    is_available = _is_available(owner)
    found: list[WebhookRow] = row_dicts(
        session.execute(
            select(WEBHOOKS)
            .where(is_due(timestamp), is_available)
            .order_by(WEBHOOKS.c.lease_until, WEBHOOKS.c.id)
            .limit(MAX_WEBHOOKS)
            .with_for_update(skip_locked=True)
        )
    )
    batches: list[Batch] = []
    for webhook in found:
        known = held.get(webhook["id"], ())
        if webhook["id"] not in held and len(held) + len(batches) >= MAX_WEBHOOKS:
            continue
        sender = sender_of(webhook)
        if sender is None:
            disable(session, [webhook], NOT_READABLE)
            continue
        is_failing = webhook["failure_count"] >= BREAKER
        chains = chains_of(session, sender, known, timestamp, limit=1 if is_failing else MAX_HEADS)
        if chains:
            if sender.form:
                add_bodies(sender.form, chains)
            if webhook["id"] not in held:
                _lease(session, owner, WEBHOOKS.c.id == webhook["id"])
            batches.append(Batch(sender, version_of(webhook), chains, one_at_a_time=is_failing))
    return batches


def renew(session: Session, owner: str, webhook_ids: Collection[int]) -> list[int]:
    """Renew the leases of these webhooks that the worker still has, and return their IDs.

    A webhook that another transaction has locked is left to the next cycle.
    """
    found = session.scalars(
        select(WEBHOOKS.c.id)
        .where(WEBHOOKS.c.id.in_(webhook_ids), WEBHOOKS.c.lease_owner == owner)
        .order_by(WEBHOOKS.c.id)
        .with_for_update(skip_locked=True)
    ).all()
    if found:
        _lease(session, owner, WEBHOOKS.c.id.in_(found))
    return list(found)


def _lease_time(after: timedelta = timedelta(0)) -> ColumnElement[datetime]:
    """Return the current time by the clock that all workers share, or a time after it.

    The clocks of machines with workers may differ by more than the length of a lease.
    """
    time = literal(precise_now() + after, WEBHOOKS.c.lease_until.type)
    return shared_clock(time, literal(after, Interval()))


def _is_available(owner: str) -> ColumnElement[bool]:
    """Return the condition that the worker has leased a webhook, or that no other worker has."""
    until = WEBHOOKS.c.lease_until
    return or_(until.is_(None), until <= _lease_time(), WEBHOOKS.c.lease_owner == owner)


def is_due(timestamp: datetime) -> ColumnElement[bool]:
    """Return the condition that a delivery may be sent to a webhook now."""
    return and_(
        WEBHOOKS.c.status == WebhookStatus.ACTIVE,
        has_form(),
        or_(WEBHOOKS.c.resume_at.is_(None), WEBHOOKS.c.resume_at <= timestamp),
        exists(
            select(1).where(
                WEBHOOK_DELIVERIES.c.webhook_id == WEBHOOKS.c.id,
                _PENDING,
                WEBHOOK_DELIVERIES.c.next_attempt_at <= timestamp,
            )
        ),
    )


def has_work(owner: str, held: Collection[int], known: Mapping[int, Collection[int]]) -> bool:
    """Return whether there are events to number, deliveries to create or deliveries to send.

    This is a read, so an idle worker writes nothing.

    Args:
        held: webhooks that the worker has leased.
        known: the leased webhooks with room for more deliveries, with their deliveries in memory.
    """
    timestamp = precise_now()
    is_available = _is_available(owner)
    head = select(func.coalesce(func.max(EVENTS.c.id), 0)).scalar_subquery()
    conditions = [
        has_unnumbered(),
        exists(
            select(1).where(WEBHOOKS.c.status == WebhookStatus.ACTIVE, WEBHOOKS.c.position < head)
        ),
        exists(select(1).where(is_due(timestamp), is_available, WEBHOOKS.c.id.not_in(list(held)))),
        *(
            exists(
                select(1).where(
                    WEBHOOK_DELIVERIES.c.webhook_id == webhook_id,
                    _PENDING,
                    WEBHOOK_DELIVERIES.c.next_attempt_at <= timestamp,
                    WEBHOOK_DELIVERIES.c.id.not_in(list(ids)),
                )
            )
            for webhook_id, ids in known.items()
        ),
    ]
    return bool(fetch(select(or_(*conditions)))[0][0])


_VERSION = "updated_at", "delivery_url", "secret_encrypted"
"""Columns that identify a version. ``updated_at`` alone does not, because it has no fractions."""


def version_of(webhook: Mapping[str, object]) -> Version:
    """Return a value that differs after an update of a webhook that concerns its deliveries."""
    return tuple(webhook[name] for name in _VERSION)


def versions_of(session: Session, webhook_ids: Collection[int]) -> dict[int, Version]:
    """Return ``version_of`` each of these webhooks that is still active."""
    rows = session.execute(
        select(WEBHOOKS.c.id, *(WEBHOOKS.c[name] for name in _VERSION)).where(
            WEBHOOKS.c.id.in_(webhook_ids), WEBHOOKS.c.status == WebhookStatus.ACTIVE
        )
    )
    return {row["id"]: version_of(dict(row)) for row in rows.mappings()}


def _lease(session: Session, owner: str, condition: ColumnElement[bool]) -> None:
    """Take or renew the leases of locked webhooks."""
    session.execute(
        update(WEBHOOKS).where(condition).values(lease_owner=owner, lease_until=_lease_time(LEASE))
    )
