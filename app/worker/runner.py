"""Sending the deliveries of one webhook, a few at a time and in order per resource."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from app.db.session import precise_now
from app.outbound.client import FAILED, TOTAL_SECONDS, Outcome, ReceiverClient
from app.services.delivery_chains import MAX_HEADS
from app.services.delivery_queue import Batch, Version
from app.services.delivery_requests import DeliveryRequest, event_request, ping_request
from app.services.delivery_results import Attempt

CONCURRENCY = 4
"""Maximum number of concurrent deliveries to one webhook (events 2)."""

LEASE_MARGIN = timedelta(seconds=TOTAL_SECONDS + 5)
"""Remaining time of the lease below which no attempt starts, because another worker could begin."""

Record = dict[str, Any]

_log = logging.getLogger(__name__)


class Runner:
    """Deliveries to one webhook that this worker has in memory.

    Args:
        client: sends requests.
        public_url: the address of the shop, for legacy receivers.
        done: called with each attempt.
    """

    def __init__(
        self, client: ReceiverClient, public_url: str, done: Callable[[Attempt], None]
    ) -> None:
        self._client = client
        self._public_url = public_url
        self._done = done
        self._chains: deque[list[Record]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._batch: Batch | None = None
        self.known: set[int] = set()
        """Deliveries that are waiting, in flight, or whose result is not stored yet."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is waiting or in flight."""
        return not self._tasks and not self._chains

    @property
    def has_room(self) -> bool:
        """Return whether more deliveries could be sent soon."""
        return len(self.known) < MAX_HEADS // 2 and not (self._batch and self._batch.one_at_a_time)

    @property
    def version(self) -> Version | None:
        """Return the version of the webhook as it was leased."""
        return self._batch.version if self._batch else None

    def add(self, batch: Batch) -> None:
        """Add deliveries to send."""
        self._batch = batch
        self._chains.extend(batch.chains)
        self.known |= {delivery["id"] for chain in batch.chains for delivery in chain}
        self._start()

    def stop(self) -> None:
        """Drop the deliveries that are not in flight. They remain pending in the database."""
        for chain in self._chains:
            self._forget(chain)
        self._chains.clear()
        self._batch = None

    def wait(self) -> Awaitable[Any]:
        """Wait until no delivery is in flight."""
        return asyncio.gather(*self._tasks)

    def _start(self) -> None:
        limit = 1 if self._batch and self._batch.one_at_a_time else CONCURRENCY
        while self._chains and len(self._tasks) < limit:
            task = asyncio.create_task(self._run(self._chains.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _run(self, chain: list[Record]) -> None:
        """Send the deliveries of a resource until one fails."""
        for position, delivery in enumerate(chain):
            batch = self._batch
            if batch is None or batch.lease_until - precise_now() < LEASE_MARGIN:
                self._forget(chain[position:])
                return
            attempt = await self._attempt(batch, delivery)
            if not attempt.delivered:
                self._forget(chain[position + 1 :])
                self._done(attempt)
                if batch.one_at_a_time:
                    self.stop()
                return
            self._done(attempt)

    async def _attempt(self, batch: Batch, delivery: Record) -> Attempt:
        at = precise_now()
        request = DeliveryRequest({}, b"")
        try:
            request = self._request(batch, delivery)
            outcome = await self._client.post(batch.sender.url, request.headers, request.body)
        except Exception:  # noqa: BLE001  # a bug must not stop the other deliveries
            _log.exception("Delivery %d could not be sent", delivery["id"])
            outcome = Outcome(None, 0, FAILED)
        delivered = batch.sender.is_success(outcome.status)
        return Attempt(delivery, at, outcome, delivered, request.headers)

    def _request(self, batch: Batch, delivery: Record) -> DeliveryRequest:
        if delivery["event_id"] is None:
            return ping_request(batch.sender, f"ping_{delivery['id']}")
        event = {
            "id": delivery["event_id"],
            "type": delivery["event_type"],
            "created_at": delivery["event_created_at"],
            "data": delivery["event_data"],
            "resource_id": delivery["resource_id"],
            "customer_updated_at": delivery.get("customer_updated_at"),
        }
        return event_request(batch.sender, delivery["id"], event, self._public_url)

    def _forget(self, chain: list[Record]) -> None:
        self.known -= {delivery["id"] for delivery in chain}
