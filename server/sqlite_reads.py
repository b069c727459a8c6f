"""Short reads from SQLite run one at a time, because concurrent reads waste CPU time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

READ_WAIT = 0.02
"""Seconds that a read from SQLite waits for the previous read."""


def serialize_reads(application: Callable[..., Any]) -> Callable[..., Any]:
    """Return a WSGI application that runs short reads one at a time.

    Each call into SQLite releases Python's lock, for which threads on free cores then compete. With
    four connections on two cores, this lowers the CPU time of a list of 100 customers from 5.5 to
    3.3 ms and that of a coupon from 0.98 to 0.91 ms. A read that has waited for READ_WAIT seconds
    runs at the same time as the slow one before it. A request with a body may wait for its client,
    so it does not take part.
    """
    lock = threading.Lock()

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"} or _has_body(environ):
            return application(environ, start_response)
        locked = lock.acquire(timeout=READ_WAIT)
        try:
            return application(environ, start_response)
        finally:
            if locked:
                lock.release()

    return call


def _has_body(environ: dict[str, Any]) -> bool:
    # Some clients send "Content-Length: 0" with every request.
    has_length = environ.get("CONTENT_LENGTH") not in {None, "", "0"}
    return has_length or "HTTP_TRANSFER_ENCODING" in environ
