"""JSON logs: one line per request on standard output, and errors on standard error.

Log lines never contain secrets, passwords or bodies. A request line contains the route instead of
the path, and no headers except the request ID and the trace context.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import orjson
import structlog
from flask import Flask, Response, g, has_app_context, request
from structlog.typing import EventDict, FilteringBoundLogger, Processor

LIBRARIES = "psycopg", "sqlalchemy"
"""Libraries whose logs are also written as JSON, because database messages can contain values."""

Observe = Callable[[Mapping[str, object], float], None]

_VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")  # decisions 13
# W3C Trace Context: rejects version ff, extra fields in version 00 and IDs of only zeros.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}"
    r"-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

_DETAIL = re.compile(r"DETAIL:.*?(?=\n\[SQL|\n\n|\Z)", re.DOTALL)


def _add_request(_: object, __: str, line: EventDict) -> EventDict:
    """Add the IDs of the current request, if there is a request."""
    start: RequestStart | None = g.get("request_start") if has_app_context() else None
    return {**line, **start.ids} if start else line


_HEAD: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
]


def init_app(app: Flask, observe: Observe | None = None) -> None:
    """Log every request of an app, and write the logs of the app and its libraries as JSON.

    Configures only the loggers of this package and of the database libraries. The root logger
    is left to the process that runs the app.

    Args:
        observe: called with the log line and the duration in seconds of each request.
    """
    # Standard output is for request lines, and for the results of commands.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                _add_request,
                *_HEAD,
                structlog.processors.format_exc_info,
                _hide_values,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_tail()],
        )
    )
    for name in (app.name, *LIBRARIES):
        logger = logging.getLogger(name)
        logger.handlers = [handler, *(h for h in logger.handlers if not _is_ours(h))]
    log = line_logger()
    slow = app.config["SHOP_SLOW_REQUEST_SECONDS"] or float("inf")
    app.before_request(_begin)
    app.after_request(partial(_end, _RequestLogger(log.bind(), slow, observe)))


def _tail() -> list[Processor]:
    return [structlog.processors.EventRenamer("message"), _render]


def line_logger() -> FilteringBoundLogger:
    """Return a logger that writes JSON lines to standard output."""
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(sys.stdout),  # writes each line at once, for threads and workers
        processors=[*_HEAD, *_tail()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return logger


class RequestStart(NamedTuple):
    """The start time of a request on the monotonic clock, and its IDs."""

    seconds: float
    ids: dict[str, str]


def _begin() -> None:
    environ = request.environ
    given = environ.get("HTTP_X_REQUEST_ID", "")
    ids = {"request_id": given if _VALID_REQUEST_ID.fullmatch(given) else os.urandom(16).hex()}
    if trace := _TRACEPARENT.fullmatch(environ.get("HTTP_TRACEPARENT", "")):
        ids |= {"trace_id": trace[1], "parent_id": trace[2]}
    g.request_start = RequestStart(time.perf_counter(), ids)


def _end(logger: _RequestLogger, response: Response) -> Response:
    start: RequestStart = g.request_start
    response.headers["X-Request-Id"] = start.ids["request_id"]
    principal, method, rule = g.get("principal"), request.method, request.url_rule
    line = {
        **start.ids,
        "method": method if method in _METHODS else "other",
        "route": rule.rule if rule else None,
        "status": response.status_code,
        "key_id": principal.key_id if principal else None,
    }
    # Log a streamed response at its end. The server sends files itself and gives no notice.
    if response.is_streamed and not response.direct_passthrough:
        response.call_on_close(partial(logger.write, start.seconds, line))
    else:
        logger.write(start.seconds, line)
    return response


@dataclass(frozen=True, slots=True)
class _RequestLogger:
    """Writes the request lines of an app.

    Args:
        slow: the duration in seconds from which a request is logged as a warning.
        observe: called with each line and the duration in seconds.
    """

    log: FilteringBoundLogger
    slow: float
    observe: Observe | None

    def write(self, started: float, line: dict[str, object]) -> None:
        """Write the log line of a request."""
        seconds = time.perf_counter() - started
        line["duration_ms"] = round(seconds * 1000, 2)
        if seconds >= self.slow:
            self.log.warning("request", slow=True, **line)
        else:
            self.log.info("request", **line)
        if self.observe:
            self.observe(line, seconds)


def _hide_values(_: object, __: str, line: EventDict) -> EventDict:
    """Remove values from a traceback, because PostgreSQL includes the rejected row."""
    if "exception" in line:
        line["exception"] = _DETAIL.sub("DETAIL: hidden", line["exception"])
    return line


def _is_ours(handler: logging.Handler) -> bool:
    return isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)


def _render(_: object, __: str, line: object) -> str:
    """Return a line as JSON without unprintable characters.

    orjson escapes only the control characters of ASCII. Other characters can reverse or color the
    text in a terminal.
    """
    text = orjson.dumps(line, default=str).decode()
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
