"""The main loop of a worker: one event loop that sends, and one thread that uses the database.

The thread runs one transaction for each cycle.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from flask import Flask
from sqlalchemy import Connection
from sqlalchemy.orm import Session
from structlog.typing import FilteringBoundLogger

from app.db.erased_rows import PAUSE_SECONDS, remove_copies
from app.db.locks import version_of_others
from app.db.read_pool import on_postgresql, read_engine
from app.db.session import run_in_transaction
from app.models.webhook_delivery import DeliveryState
from app.observability.logs import line_logger
from app.outbound.client import TOTAL_SECONDS, ReceiverClient
from app.outbound.network import parse_networks
from app.services.customers.traces import clear_next_batch
from app.services.events.sequence import number_events
from app.services.maintenance import cleanup
from app.services.webhooks.deliveries import queue as delivery_queue
from app.services.webhooks.deliveries.collection import collect
from app.services.webhooks.deliveries.requests import public_url
from app.services.webhooks.deliveries.results import Attempt, record_attempts
from app.worker.runner import Runner

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


POLL_SECONDS = 0.1
"""Interval in seconds at which an idle worker checks for new events (events 2)."""

BATCH_SECONDS = 0.03
"""How long results are collected before they are stored, in one transaction."""

RETRY_SECONDS = 1.0
"""Seconds to wait after a database error."""

FINISH_SECONDS = TOTAL_SECONDS + 5.0
"""Maximum time in seconds for finishing the deliveries in flight."""

SWEEP_SECONDS = 60.0
"""Interval in seconds between two removals of expired records."""

IMPORT_SECONDS = 0.5
"""Interval in seconds between two checks for files to import, and for erasures to complete."""

EXPIRY_SECONDS = 5.0
"""Interval in seconds between two checks for expired reservations."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class DeliveryWorker:
    """Delivers webhooks until it is stopped.

    Args:
        parent: ID of the parent process, to stop when it ends. Without it, the worker runs on.
        import_part: imports the next part of a file, and returns whether there was one.
    """

    def __init__(
        self,
        app: Flask,
        *,
        parent: int | None = None,
        import_part: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app = app
        self._import_part = import_part
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._parent = parent
        self._stopping = False
        self._attempts: list[Attempt] = []
        self._runners: dict[int, Runner] = {}
        self._changes = ChangeDetector()
        self._checked_at = 0.0
        self._swept_at = self._expired_at = self._imported_at = time.monotonic()
        self._erased_at = self._swept_at
        self._vacuum_at = self._swept_at + PAUSE_SECONDS
        self._version: int | None = None
        self._sweeps: deque[Callable[[], object]] = deque()
        self._delivery_log = line_logger()
        self.is_running = False

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, then finish the deliveries in flight."""
        asyncio.run(self._main())

    def stop(self) -> None:
        """Take no more deliveries. Safe to call from any thread."""
        self._stopping = True
        self._loop.call_soon_threadsafe(self._wake.set)

    async def _main(self) -> None:
        self._wake = asyncio.Event()
        self._database = ThreadPoolExecutor(1, thread_name_prefix="database")
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self.stop)
        self._client = ReceiverClient(
            parse_networks(self._app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"])
        )
        self.is_running = True
        _log.info("Worker %s started.", self._owner)
        try:
            while not self._stopping:
                await self._guarded(self._cycle)
                await self._guarded(self._sweep)
                await self._wait()
                if self._parent is not None and os.getppid() != self._parent:
                    break
            await self._finish()
        finally:
            await self._in_database(self._changes.close)
            self._database.shutdown()

    async def _guarded(self, step: Callable[[], object]) -> None:
        """Run a step. After an error, such as a lost database, try again later."""
        try:
            await step()  # type: ignore[misc] # a coroutine
        except Exception:  # noqa: BLE001  # the worker must survive the database
            _log.exception("The worker will try again in %g seconds.", RETRY_SECONDS)
            with suppress(TimeoutError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _cycle(self) -> None:
        attempts = list(self._attempts)
        stored = {attempt.delivery["id"] for attempt in attempts}
        released = [
            webhook_id
            for webhook_id, runner in self._runners.items()
            if runner.is_idle and runner.known <= stored
        ]
        expiring = [
            webhook_id
            for webhook_id, runner in self._runners.items()
            if runner.needs_lease and webhook_id not in released
        ]
        has_results = attempts or released or expiring
        if not has_results and (self._stopping or not await self._in_database(self._has_work)):
            return
        known = {
            webhook_id: runner.known - stored
            for webhook_id, runner in self._runners.items()
            if webhook_id not in released
        }
        given = CycleInput(attempts, released, known, expiring, stops=self._stopping)
        lease_until = self._loop.time() + delivery_queue.LEASE.total_seconds()
        result = await self._in_database(lambda: run_cycle(self._owner, given))
        self._note_stored(given, result)
        for webhook_id in released:
            del self._runners[webhook_id]
        for webhook_id, runner in self._runners.items():
            # Deliveries in memory are not sent to a webhook that was paused, deleted or changed.
            if webhook_id in known and result.versions.get(webhook_id) != runner.version:
                runner.stop()
        for webhook_id in result.renewed:
            self._runners[webhook_id].lease(lease_until)
        for batch in result.batches:
            runner = self._runner_of(batch.sender.webhook_id)
            if batch.sender.webhook_id not in known:
                runner.lease(lease_until)
            runner.add(batch)

    def _note_stored(self, given: CycleInput, result: CycleResult) -> None:
        """Remove stored attempts from memory, and log them."""
        del self._attempts[: len(given.attempts)]
        for attempt, state in zip(given.attempts, result.states, strict=True):
            if runner := self._runners.get(attempt.delivery["webhook_id"]):
                runner.known.discard(attempt.delivery["id"])
            _log_attempt(self._delivery_log, attempt, state)

    def _runner_of(self, webhook_id: int) -> Runner:
        if webhook_id not in self._runners:
            self._runners[webhook_id] = Runner(self._client, self._public_url(), self._done)
        return self._runners[webhook_id]

    def _public_url(self) -> str:
        with self._app.app_context():
            return public_url()

    def _done(self, attempt: Attempt) -> None:
        self._attempts.append(attempt)
        self._wake.set()

    def _has_work(self) -> bool:
        """Return whether a cycle would do anything. Runs in the database thread."""
        changed = self._changes.has_changed()
        current = time.monotonic()
        if not changed and current - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = current
        room = {
            webhook_id: runner.known
            for webhook_id, runner in self._runners.items()
            if runner.has_room
        }
        return delivery_queue.has_work(self._owner, list(self._runners), room)

    async def _wait(self) -> None:
        """Wait for a result, or until the next check for new events."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
        if self._attempts:
            await asyncio.sleep(BATCH_SECONDS)
        self._wake.clear()

    async def _sweep(self) -> None:
        current = time.monotonic()
        if current - self._expired_at >= EXPIRY_SECONDS:
            self._expired_at = current
            await self._in_database(cleanup.release_expired_reservations)
            await self._in_database(cleanup.refresh_totals)
        if current - self._imported_at >= IMPORT_SECONDS:
            has_more = await self._in_database(self._import_part)
            self._imported_at = 0 if has_more else time.monotonic()
            await self._hurry(has_more)
        if current - self._erased_at >= IMPORT_SECONDS:
            has_more = await self._in_database(clear_next_batch)
            self._erased_at = 0 if has_more else time.monotonic()
            await self._hurry(has_more)
        if current - self._swept_at >= SWEEP_SECONDS:
            self._swept_at = current
            self._sweeps.extend(cleanup.SWEEPS)
        if self._sweeps:  # one at a time, because leases are renewed between them
            await self._in_database(self._sweeps.popleft())
        if current >= self._vacuum_at:
            self._vacuum_at = current + PAUSE_SECONDS  # also after an error
            pause = await self._in_database(remove_copies)
            self._vacuum_at = time.monotonic() + pause

    async def _hurry(self, has_more: bool) -> None:
        """Let the next part follow at once, or after POLL_SECONDS if others write meanwhile.

        Then few of their writes wait for the transaction of a part.
        """
        if has_more:
            before, self._version = self._version, await self._in_database(version_of_others)
            if before == self._version:
                self._wake.set()

    async def _finish(self) -> None:
        """Finish the deliveries in flight, store the results and end the leases."""
        self._stopping = True
        for runner in self._runners.values():
            runner.stop()
        end = self._loop.time() + FINISH_SECONDS
        while (self._runners or self._attempts) and self._loop.time() < end:
            await self._guarded(self._cycle)
            if self._runners:
                await self._wait()
        _log.info("Worker %s stopped.", self._owner)

    async def _in_database(self, function: Callable[[], T]) -> T:
        def call() -> T:
            with self._app.app_context():
                return function()

        return await asyncio.get_running_loop().run_in_executor(self._database, call)


def _log_attempt(log: FilteringBoundLogger, attempt: Attempt, state: DeliveryState) -> None:
    """Write the log line of an attempt whose result is stored (events 2).

    ``request_id`` is the ID of the request that caused the event.
    """
    delivery, outcome = attempt.delivery, attempt.outcome
    write = log.info if attempt.delivered else log.warning
    write(
        "delivery",
        webhook_id=delivery["webhook_id"],
        delivery_id=delivery["id"],
        event_id=delivery["event_id"],
        event_type=delivery["event_type"] or "ping",
        request_id=delivery["event_request_id"],
        attempt=delivery["attempt_count"] + 1,
        status=outcome.status,
        error=attempt.entry["error"],
        detail=outcome.detail or None,
        duration_ms=outcome.duration_ms,
        state=str(state),
    )
