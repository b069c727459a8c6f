"""The database part of a worker: one transaction for each cycle."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from app.db.read_pool import on_postgresql, read_engine
from app.db.session import run_in_transaction
from app.models.webhook_delivery import DeliveryState
from app.services.events.sequence import number_events
from app.services.webhooks.deliveries import queue as delivery_queue
from app.services.webhooks.deliveries.collection import collect
from app.services.webhooks.deliveries.results import Attempt, record_attempts

CHECK_SECONDS = 1.0
"""Interval in seconds at which SQLite is searched for due retries. Changes need no search."""


@dataclass(frozen=True, slots=True)
class CycleInput:
    """The state of a worker in memory.

    Attributes:
        attempts: attempts that are not stored yet.
        released: webhooks without further deliveries in memory.
        known: the other leased webhooks, with their deliveries in memory.
        expiring: those of them whose lease ends soon.
        stops: whether the worker is stopping and takes no more deliveries.
    """

    attempts: Sequence[Attempt]
    released: Sequence[int]
    known: Mapping[int, Collection[int]]
    expiring: Collection[int] = ()
    stops: bool = False


@dataclass(frozen=True, slots=True)
class CycleResult:
    """The result of a cycle.

    Attributes:
        states: the state of the delivery after each attempt.
        renewed: webhooks whose lease has been renewed.
        batches: the deliveries to send.
        versions: ``version_of`` each known webhook that is still active.
    """

    states: Sequence[DeliveryState]
    renewed: Sequence[int]
    batches: Sequence[delivery_queue.Batch]
    versions: Mapping[int, delivery_queue.Version]


def run_cycle(owner: str, given: CycleInput) -> CycleResult:
    """Store attempts, number events, create deliveries and lease webhooks with due deliveries."""

    def work(session: Session) -> CycleResult:
        states: Sequence[DeliveryState] = ()
        if given.attempts or given.released:
            states = record_attempts(session, owner, given.attempts, given.released)
        renewed: Sequence[int] = ()
        if given.expiring:
            renewed = delivery_queue.renew(session, owner, given.expiring)
        if given.stops:
            return CycleResult(states, renewed, (), {})
        collect(session)
        batches = delivery_queue.claim(session, owner, given.known)
        versions = delivery_queue.versions_of(session, given.known)
        return CycleResult(states, renewed, batches, versions)

    if not given.stops:
        number_events()
    return run_in_transaction(work)


class ChangeDetector:
    """Detects without a search whether a SQLite database may have changed. Use it in one thread.

    ``PRAGMA data_version`` changes with each commit of another connection and reads no table.
    PostgreSQL has no equivalent, so the result is always True.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._version: object = None

    def has_changed(self) -> bool:
        """Return whether a transaction may have been committed since the last call."""
        if self._connection is None:
            if on_postgresql():
                return True
            self._connection = read_engine().connect()
        version = self._connection.exec_driver_sql("PRAGMA data_version").scalar()
        changed, self._version = version != self._version, version
        return changed

    def close(self) -> None:
        """Release the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
