"""Storage of delivery attempts, and webhooks that are disabled because of them (events 2)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.db.records import Record, row_dicts
from app.models import EVENTS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookRow, WebhookStatus
from app.models.webhook_delivery import DeliveryState
from app.outbound.client import Outcome
from app.services.webhooks.deliveries.chains import ClaimedDelivery
from app.services.webhooks.deliveries.retries import next_attempt, resume_time
from app.services.webhooks.deliveries.statistics import count_results
from app.services.webhooks.states import FAILING, GONE, MAX_FAILING, disable

GONE_STATUS = 410
KEPT_ATTEMPTS = 50
"""Maximum number of stored attempts of a delivery. Older attempts are removed."""

UNEXPECTED = "unexpected status"
"""The error of an attempt whose response has another status than 2xx."""

_SCHEDULE = "state", "attempt_count", "next_attempt_at"
"""Columns that a redelivery or a replay resets."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a delivery, with the response of the receiver and the headers of the request.

    Attributes:
        delivery: the delivery by column name, as it was claimed.
        delivered: whether the receiver has the event.
    """

    delivery: ClaimedDelivery
    at: datetime
    outcome: Outcome
    delivered: bool
    headers: Mapping[str, str]

    @property
    def is_gone(self) -> bool:
        """Return whether the receiver permanently rejects deliveries (410 Gone)."""
        return self.outcome.status == GONE_STATUS and not self.delivered

    @property
    def next_attempt_at(self) -> datetime | None:
        """Return the time of the next attempt, or None if there is none."""
        if self.delivered or self.is_gone:
            return None
        return next_attempt(self.delivery["attempt_count"] + 1, self.outcome, self.at)

    @property
    def entry(self) -> Record:
        """Return the attempt as the API returns it."""
        error = None if self.delivered else self.outcome.error or UNEXPECTED
        return {
            "at": f"{self.at:%Y-%m-%dT%H:%M:%S}Z",
            "status": self.outcome.status,
            "duration_ms": self.outcome.duration_ms,
            "error": error,
        }


def record_attempts(
    session: Session, owner: str, attempts: Sequence[Attempt], released: Sequence[int] = ()
) -> list[DeliveryState]:
    """Store attempts in the order in which they ended, and return the state after each.

    A failure is ignored if the lease has ended, because another worker may have delivered since. If
    the delivery was queued again during the attempt, the failure does not change its schedule.

    Args:
        released: webhooks without further deliveries in memory. Their leases end.
    """
    webhooks = _locked(
        session, {attempt.delivery["webhook_id"] for attempt in attempts}.union(released)
    )
    schedules = _schedules(session, attempts)
    states: list[DeliveryState] = []
    erased = _erased(session, attempts)
    changes: list[Record] = []
    pings: list[int] = []
    gone: set[int] = set()
    for attempt in attempts:
        webhook = webhooks.get(attempt.delivery["webhook_id"])
        changed = _changes(attempt, schedules.get(attempt.delivery["id"]))
        states.append(changed["state"])
        if webhook is None or not (attempt.delivered or webhook["lease_owner"] == owner):
            continue
        if attempt.delivery["event_id"] is None:
            pings.append(attempt.delivery["id"])  # its result is ignored (events 3)
            continue
        if attempt.delivery["event_id"] in erased:
            changed |= {"response_body": "", "response_headers": {}}
        changes.append(changed)
        _add_to(webhook, attempt)
        if attempt.is_gone:
            gone.add(webhook["id"])
    if changes:
        session.execute(
            update(WEBHOOK_DELIVERIES).where(WEBHOOK_DELIVERIES.c.id == bindparam("this")), changes
        )
        count_results(session, Counter(_result(change["state"]) for change in changes))
    if pings:
        session.execute(delete(WEBHOOK_DELIVERIES).where(WEBHOOK_DELIVERIES.c.id.in_(pings)))
    _write(session, owner, webhooks.values(), released)
    _disable_failing(session, webhooks.values(), gone)
    return states


def _locked(session: Session, ids: Collection[int]) -> dict[int, WebhookRow]:
    """Return webhooks by ID, locked until the commit."""
    found = select(WEBHOOKS).where(WEBHOOKS.c.id.in_(ids)).order_by(WEBHOOKS.c.id)
    rows: list[WebhookRow] = row_dicts(session.execute(found.with_for_update()))
    return {row["id"]: row for row in rows}


def _erased(session: Session, attempts: Iterable[Attempt]) -> set[int]:
    """Return the events whose personal data was erased during an attempt.

    The response of the receiver can repeat the data. The events stay locked, so that an erasure
    waits and then also blanks the response that is stored now.
    """
    sent = {
        attempt.delivery["event_id"]: attempt.delivery["event_data"]
        for attempt in attempts
        # Events of coupons contain no personal data.
        if attempt.delivery["event_id"] and attempt.delivery["resource"] != "coupon"
    }
    if not sent:
        return set()
    rows = session.execute(
        select(EVENTS.c.id, EVENTS.c.data)
        .where(EVENTS.c.id.in_(sent))
        .order_by(EVENTS.c.position)
        .with_for_update(read=True)
    )
    return {row.id for row in rows if row.data != sent[row.id]}


def _schedules(session: Session, attempts: Iterable[Attempt]) -> dict[int, Record]:
    """Return the schedules of the deliveries that failed, by ID.

    A request that queues a delivery again waits for the webhook, which this transaction has locked.
    """
    failed = [attempt.delivery["id"] for attempt in attempts if not attempt.delivered]
    if not failed:
        return {}
    columns = (WEBHOOK_DELIVERIES.c[name] for name in _SCHEDULE)
    rows = session.execute(
        select(WEBHOOK_DELIVERIES.c.id, *columns).where(WEBHOOK_DELIVERIES.c.id.in_(failed))
    )
    return {row.id: {name: row._mapping[name] for name in _SCHEDULE} for row in rows}


def _changes(attempt: Attempt, schedule: Record | None) -> Record:
    """Return the columns of a delivery after an attempt."""
    claimed, next_attempt_at = attempt.delivery, attempt.next_attempt_at
    if attempt.delivered:
        state = DeliveryState.DELIVERED
    else:
        state = DeliveryState.PENDING if next_attempt_at else DeliveryState.FAILED
    changes = {
        "this": claimed["id"],
        "state": state,
        "next_attempt_at": next_attempt_at,
        "attempt_count": claimed["attempt_count"] + 1,
        "attempts": [*claimed["attempts"], attempt.entry][-KEPT_ATTEMPTS:],
        "request_headers": dict(attempt.headers),
        "response_headers": dict(attempt.outcome.headers),
        "response_body": attempt.outcome.body,
    }
    if schedule and schedule["next_attempt_at"] != claimed["next_attempt_at"]:
        # The delivery was queued again, or given up, while it was in memory.
        changes |= {**schedule, "state": DeliveryState(schedule["state"])}
    return changes


def _result(state: DeliveryState) -> str:
    return "retried" if state == DeliveryState.PENDING else str(state)


def _add_to(webhook: WebhookRow, attempt: Attempt) -> None:
    """Update the counts of a webhook with an attempt."""
    webhook["last_delivery_at"] = attempt.at.replace(microsecond=0)
    if attempt.delivered:
        webhook |= {"failing_since": None, "failure_count": 0, "resume_at": None}
        return
    webhook["failing_since"] = webhook["failing_since"] or attempt.at.replace(microsecond=0)
    webhook["failure_count"] += 1
    webhook["resume_at"] = resume_time(webhook["failure_count"], attempt.outcome, attempt.at)


def _write(
    session: Session, owner: str, webhooks: Iterable[WebhookRow], released: Sequence[int]
) -> None:
    changes = []
    for webhook in webhooks:
        if webhook["id"] in released and webhook["lease_owner"] == owner:
            webhook |= {"lease_owner": None, "lease_until": None}
        changes.append(
            {
                "this": webhook["id"],
                "last_delivery_at": webhook["last_delivery_at"],
                "failing_since": webhook["failing_since"],
                "failure_count": webhook["failure_count"],
                "resume_at": webhook["resume_at"],
                "lease_owner": webhook["lease_owner"],
                "lease_until": webhook["lease_until"],
            }
        )
    if changes:
        session.execute(update(WEBHOOKS).where(WEBHOOKS.c.id == bindparam("this")), changes)


def _disable_failing(session: Session, webhooks: Iterable[WebhookRow], gone: set[int]) -> None:
    enabled = [each for each in webhooks if each["status"] != WebhookStatus.DISABLED]
    disable(session, [webhook for webhook in enabled if webhook["id"] in gone], GONE)
    failing = [
        webhook
        for webhook in enabled
        if webhook["id"] not in gone
        and (since := webhook["failing_since"])
        and (last := webhook["last_delivery_at"])
        and last - since >= MAX_FAILING
    ]
    disable(session, failing, FAILING)
