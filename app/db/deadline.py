"""The time limit of a request for its queue and the database (``SHOP_REQUEST_TIMEOUT_SECONDS``).

The statement timeout is enforced by the server, and does not cover a commit. The deadline also ends
the wait for a server, a pooler or a synchronous standby that hangs. Commands and the worker have no
deadline.
"""

import math
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

LEAST_SECONDS = 0.5
"""How long a statement may take at least, so that a late request of a healthy server ends well.

A statement that begins later than this after the deadline fails, so that hundreds of short ones do
not exceed the deadline together."""

COMMIT_SECONDS = 2.0
"""How long a commit and the reads after it may take at least, because a commit that is given up has
an unknown outcome."""


@dataclass(slots=True)
class Clock:
    """Since when a request has been running, on the monotonic clock.

    gunicorn's worker measures this itself: its clocks include the time in the queue, and exclude
    the time in which the service waits for the client.
    """

    started: float


@dataclass(slots=True)
class _Deadline:
    clock: Clock
    seconds: float
    reserved: float = 0  # until when a commit and the reads after it may take


_current: ContextVar[_Deadline | None] = ContextVar("deadline", default=None)


class DeadlineExceeded(psycopg.OperationalError):
    """A request has reached its deadline, and its connection to the database was closed."""


def begin(seconds: float, clock: Clock | None = None) -> None:
    """Begin the time of a request. 0 seconds means no limit."""
    _current.set(_Deadline(clock or Clock(time.monotonic()), seconds or math.inf))


def end(_: object = None) -> None:
    """End the time of a request. For ``Flask.teardown_request``."""
    _current.set(None)


def shorten(seconds: float) -> None:
    """Let the time of the request end after some seconds from now at the latest."""
    if (current := _current.get()) is not None:
        elapsed = time.monotonic() - current.clock.started
        current.seconds = min(current.seconds, elapsed + seconds)
        current.reserved = 0


def restart() -> None:
    """Restart the time, for the next batch of a list."""
    if (current := _current.get()) is not None:
        current.clock.started, current.reserved = time.monotonic(), 0


def reserve(seconds: float) -> None:
    """Make sure that seconds are left for what should not be given up, or raise TimeoutError."""
    if (current := _current.get()) is not None:
        elapsed = time.monotonic() - current.clock.started
        if elapsed > current.seconds:
            raise PoolTimeoutError("the request took too long")
        # The next commit still has to begin within the limit, so that many do not extend it.
        current.reserved = max(current.reserved, elapsed + seconds)


def left() -> float:
    """Return the seconds until the deadline. They are infinite without a deadline."""
    current = _current.get()
    if current is None:
        return math.inf
    return current.clock.started + max(current.seconds, current.reserved) - time.monotonic()


def statement_seconds() -> float:
    """Return how many seconds the next statement may take: 0 if none may begin."""
    seconds = left()
    return 0 if seconds < -LEAST_SECONDS else max(seconds, LEAST_SECONDS)


def is_over() -> bool:
    """Return whether the deadline of the request has passed."""
    return left() <= 0


class DeadlineConnection(psycopg.Connection[object]):
    """A connection that is closed when the server has not responded by the deadline.

    All statements, fetches and commits of psycopg wait in this method. Closing a connection sends
    the server a message without waiting for it.
    """

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server until the deadline."""
        if left() == math.inf:
            return super().wait(gen, interval, timeout)
        try:
            if not (seconds := statement_seconds()):
                raise _WaitTimeout
            return super().wait(gen, interval, seconds)
        except _WaitTimeout:
            self.close()
            raise DeadlineExceeded("the database did not respond in time") from None


def connect(_: Any, __: Any, arguments: Any, options: dict[str, Any]) -> DeadlineConnection:
    """Connect to PostgreSQL within the deadline. For the event ``do_connect``."""
    seconds = left()
    if seconds < options["connect_timeout"]:
        options["connect_timeout"] = max(1, math.ceil(seconds))  # psycopg takes at least 2
    return DeadlineConnection.connect(*arguments, **options)
