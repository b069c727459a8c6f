"""Sending the deliveries of one webhook, a few at a time and in order per resource."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from app.db.session import precise_now
from app.outbound.client import FAILED, Outcome, ReceiverClient
from app.services.webhooks.deliveries.chains import MAX_HEADS, ClaimedDelivery, event_of
from app.services.webhooks.deliveries.queue import Batch, Version
from app.services.webhooks.deliveries.requests import DeliveryRequest, event_request, ping_request
from app.services.webhooks.deliveries.results import Attempt

CONCURRENCY = 4
"""Maximum number of concurrent deliveries to one webhook (events 2)."""

RENEW_SECONDS = 5.0
"""Remaining time of a lease in seconds below which it is renewed."""

_log = logging.getLogger(__name__)


class Runner:
    """Deliveries to one webhook that this worker has in memory.

    Args:
        public_url: the address of the shop, for the forms of plugins.
        done: called with each attempt.
    """

    def __init__(
        self, client: ReceiverClient, public_url: str, done: Callable[[Attempt], None]
    ) -> None:
        self._client = client
        self._public_url = public_url
        self._done = done
        self._chains: deque[list[ClaimedDelivery]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._batch: Batch | None = None
        self._loop = asyncio.get_running_loop()
        self._lease_until = 0.0
        self._lease_end: asyncio.TimerHandle | None = None
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

    @property
    def needs_lease(self) -> bool:
        """Return whether the lease ends soon."""
        return self._lease_until - self._loop.time() < RENEW_SECONDS

    def lease(self, until: float) -> None:
        """Set the end of the lease, as a time of the event loop.

        Attempts end with the lease, because another worker continues. Their deliveries remain
        pending, and each of them may be sent twice.
        """
        self._lease_until = until
        if self._lease_end:
            self._lease_end.cancel()
        self._lease_end = self._loop.call_at(until, self._abort)

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

    def _abort(self) -> None:
        """End the attempts in flight without a result, because the lease has ended."""
        if not self.is_idle:
            _log.warning("The lease of a webhook has ended during its deliveries.")
        self.stop()
        for task in self._tasks:
            task.cancel()

    def _start(self) -> None:
        limit = 1 if self._batch and self._batch.one_at_a_time else CONCURRENCY
        while self._chains and len(self._tasks) < limit:
            task = asyncio.create_task(self._run(self._chains.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _run(self, chain: list[ClaimedDelivery]) -> None:
        """Send the deliveries of a resource until one fails."""
        for position, delivery in enumerate(chain):
            batch = self._batch
            if batch is None:
                self._forget(chain[position:])
                return
            try:
                attempt = await self._attempt(batch, delivery)
            except asyncio.CancelledError:
                self._forget(chain[position:])
                raise
            if not attempt.delivered:
                self._forget(chain[position + 1 :])
                self._done(attempt)
                if batch.one_at_a_time:
                    self.stop()
                return
            self._done(attempt)

    async def _attempt(self, batch: Batch, delivery: ClaimedDelivery) -> Attempt:
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

    def _request(self, batch: Batch, delivery: ClaimedDelivery) -> DeliveryRequest:
        if delivery["event_id"] is None:
            return ping_request(batch.sender, f"ping_{delivery['id']}")
        return event_request(batch.sender, delivery["id"], event_of(delivery), self._public_url)

    def _forget(self, chain: list[ClaimedDelivery]) -> None:
        self.known -= {delivery["id"] for delivery in chain}
