"""The race: all clients redeem one coupon at the same time."""

import http.client
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError

from adapters.base import Adapter
from connection import Connection, HTTPError, RaceError

LOST = OSError, http.client.HTTPException  # there is no response


def is_rejection(error: Exception) -> bool:
    """Return whether the shop has decided not to grant the coupon."""
    if isinstance(error, HTTPError):
        return error.status < 500 and error.status not in {408, 429}
    return not isinstance(error, LOST)


@dataclass
class Result:
    """What the clients saw. Appending to a list is atomic, so that threads need no lock."""

    outcomes: list[Exception | None] = field(default_factory=list)  # None: granted
    times: list[tuple[float, int]] = field(default_factory=list)  # 1: sent, -1: response received

    @property
    def acknowledged(self) -> int:
        """The number of uses that the shop granted in a response."""
        return self.outcomes.count(None)

    def failures(self, *, rejected: bool) -> Counter[str]:
        """Return the reasons of requests that were rejected, or that have an unknown result."""
        failures = (error for error in self.outcomes if error)
        return Counter(str(error) for error in failures if is_rejection(error) == rejected)

    def overlap(self) -> int:
        """Return the largest number of clients that waited for a response at the same time."""
        waiting = most = 0
        for _, change in sorted(self.times):
            waiting += change
            most = max(most, waiting)
        return most


def run(adapter: Adapter, url: str, clients: int) -> Result:
    """Prepare all clients, open their connections, then redeem the coupon with all at once.

    Raises:
        Exception: a client could not be prepared or not connect.
    """
    result = Result()
    prepared, connected = Barrier(clients), Barrier(clients)

    def client(number: int) -> None:
        connection = Connection(url)
        try:
            cart = adapter.prepare(connection, f"client-{number}@{adapter.email_domain}")
            prepared.wait()
            connection.reconnect()
            connected.wait()
        except BaseException:
            prepared.abort()
            connected.abort()
            raise
        redeem(adapter, connection, cart, result)
        connection.close()

    with ThreadPoolExecutor(clients) as pool:
        errors = [each.exception() for each in [pool.submit(client, n) for n in range(clients)]]
    for error in errors:
        if error and not isinstance(error, BrokenBarrierError):
            raise error
    return result


def redeem(adapter: Adapter, connection: Connection, cart: object, result: Result) -> None:
    """Redeem the coupon and record the outcome."""
    outcome: Exception | None = None
    result.times.append((time.monotonic(), 1))
    try:
        adapter.redeem(connection, cart)
    except (RaceError, *LOST) as error:
        outcome = error
    result.times.append((time.monotonic(), -1))
    result.outcomes.append(outcome)
