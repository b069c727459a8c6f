"""Retries of requests: after lost connections, 429, 503 and 504."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator

import httpx

RETRIED = frozenset({429, 503})
"""Statuses of requests that have changed nothing."""

UNKNOWN = 504
"""Status of a request whose outcome is unknown. A PUT or DELETE could undo a later change."""

MAX_WAIT_SECONDS = 60.0


class RetryTransport(httpx.BaseTransport):
    """Sends a request again after a lost connection, 429 and 503, and a GET or POST after 504.

    Each POST has an ``Idempotency-Key``, so that a repeated request creates nothing twice. PUT and
    DELETE are idempotent.

    Args:
        attempts: how often a request is sent at most.
        transport: sends the requests.
    """

    def __init__(self, attempts: int, transport: httpx.BaseTransport | None = None) -> None:
        self._attempts = attempts
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the first response that is final, or the last one.

        Raises:
            httpx.TransportError: no attempt received a response.
        """
        if request.method == "POST":
            request.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        for wait in self._waits():
            try:
                response = self._transport.handle_request(request)
            except httpx.TransportError:
                time.sleep(wait)
                continue
            is_unknown = response.status_code == UNKNOWN and request.method in {"GET", "POST"}
            if response.status_code not in RETRIED and not is_unknown:
                return response
            response.close()
            time.sleep(_retry_after(response, wait))
        return self._transport.handle_request(request)

    def _waits(self) -> Iterator[float]:
        """Yield the seconds to wait after each attempt except the last one."""
        for number in range(self._attempts - 1):
            jitter = random.uniform(0.5, 1)  # noqa: S311  # no secret
            yield min(MAX_WAIT_SECONDS, 0.5 * 2**number) * jitter

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def _retry_after(response: httpx.Response, wait: float) -> float:
    sent = response.headers.get("Retry-After", "")
    return min(MAX_WAIT_SECONDS, float(sent)) if sent.isdecimal() else wait
