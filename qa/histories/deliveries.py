"""A receiver of a webhook, whose deliveries are compared with the feed."""

from __future__ import annotations

import time
from random import Random
from typing import Any

from standardwebhooks.webhooks import WebhookVerificationError

from qa.histories.checkers.feed import impersonal
from qa.histories.client import LOST, Client
from qa.histories.history import Event, Violation
from tests.webhooks.receivers import Receiver

FAILURES = 0.002
"""Share of attempts that the receiver rejects. Each holds up the events of its record for 5 s."""
DISABLED = "disabled"
PATIENCE = 90  # seconds without a delivery; the second retry comes after a minute


class Deliveries:
    """A webhook for all events and its receiver."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"deliveries-{seed}")
        self._receiver = Receiver(self._respond)
        self._webhook: Any = None
        self._taken = 0
        self._first = 0
        self._unverified: list[str] = []
        self._accepted: set[int] = set()
        self._contents: dict[int, Any] = {}  # (type, record) of deliveries that were not compared
        self._events: dict[int, Any] = {}  # the same of events without a delivery so far
        self._cursor = 0

    def create_webhook(self, client: Client) -> None:
        """Create the webhook, before the first event that is compared."""
        new = {"topics": ["*"], "delivery_url": self._receiver.url}
        status, body = client.exchange("POST", "/webhooks", {"webhook": new})
        assert status == 201, body
        self._webhook = body["webhook"]
        unwanted = {"topics": ["*"], "delivery_url": f"{self._receiver.url}/{DISABLED}"}
        unwanted |= {"status": DISABLED}
        status, body = client.exchange("POST", "/webhooks", {"webhook": unwanted})
        assert status == 201, body

    def begin(self, cursor: int) -> None:
        """Compare the deliveries of events after a position."""
        self._first = cursor

    def _respond(self, received: Any) -> int:
        """Verify a delivery on arrival, because its timestamp is valid for five minutes."""
        if received.path.endswith(DISABLED):
            self._unverified.append("an event was delivered to a disabled webhook")
            return 204
        if self._webhook is None:
            return 500
        try:
            received.verify(self._webhook["secret"])
        except WebhookVerificationError as error:
            self._unverified.append(f"event {received.event_id}: {error}")
            return 400
        return 500 if self._random.random() < FAILURES else 204

    def take(self) -> list[tuple[int, str, int]]:
        """Return the deliveries that were accepted since the last call, in their order."""
        received = list(self._receiver.received)
        new, self._taken = received[self._taken :], len(received)
        found = []
        for each in new:
            if each.path.endswith(DISABLED):
                continue
            if each.status == 204 and each.event_id > self._first:
                data = each.json
                resource = data["type"].partition(".")[0]
                if each.event_id not in self._accepted:
                    self._contents[each.event_id] = data["type"], data["data"][resource]
                self._accepted.add(each.event_id)
                found.append((each.event_id, resource, data["data"][resource]["id"]))
        return found

    def wrong(self, events: list[Event]) -> list[Violation]:
        """Return deliveries of no event, or that differ from their event.

        Args:
            events: those that were read from the feed since the last call, until its end.
        """
        for event in events:
            self._events[event.id] = event.type, event.record
            self._cursor = event.id
        texts = []
        for id_ in sorted(self._contents):
            if id_ > self._cursor:
                continue
            (type_, record), event = self._contents.pop(id_), self._events.pop(id_, None)
            if event is None:
                texts.append(f"{type_} was delivered as event {id_}, which is not in the feed")
            elif event[0] != type_ or impersonal(record) != impersonal(event[1]):
                texts.append(f"event {id_} is {event}, and {type_} {record} was delivered")
        return [Violation("feed and deliveries", text) for text in texts + self._unverified]

    def missing(self, client: Client, feed: Any) -> list[Violation]:
        """Wait for all deliveries. Return those that are missing, wrong or late.

        Args:
            feed: the checker of the feed, which knows all events.
        """
        end, number = time.monotonic() + PATIENCE, -1
        while time.monotonic() < end:
            late = feed.deliveries(self.take()) + self.wrong([])
            if late:
                return list(late)
            if feed.ids <= self._accepted:
                break
            if len(self._accepted) > number:
                end, number = time.monotonic() + PATIENCE, len(self._accepted)
            time.sleep(0.5)
            try:
                client.exchange("GET", "/healthz")
            except LOST:
                client.close()
        lost = sorted(feed.ids - self._accepted)
        texts = [f"{len(lost)} events were not delivered: {lost[:10]}"] if lost else []
        return [Violation("deliveries", text) for text in texts + self._unverified]

    def close(self) -> None:
        """Stop the receiver."""
        self._receiver.close()
