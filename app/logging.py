"""JSON logs: one line a request on standard output, what went wrong on standard error.

A line never holds a secret, a password or a body: of the request it names the route, not the
path, and no header but the names by which requests are found again.
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
from typing import Any, NamedTuple

import orjson
import structlog
from flask import Flask, Response, g, has_app_context, request

LIBRARIES = "psycopg", "sqlalchemy"
"""Loggers whose lines are JSON as ours are: what they say of a database may hold values."""

Observe = Callable[[Mapping[str, Any], float], None]

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")  # decisions 13
# W3C Trace Context: no version ff, nothing more in version 00, no id of zeros.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}"
    r"-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

_DETAIL = re.compile(r"DETAIL:.*?(?=\n\[SQL|\n\n|\Z)", re.DOTALL)


def _add_request(_: Any, __: str, line: Any) -> Any:
    """Name the request that a line is about, if it is about one."""
    begun: Begun | None = g.get("begun") if has_app_context() else None
    return line | begun.names if begun else line


_HEAD: list[Any] = [
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
]


def init_app(app: Flask, observe: Observe | None = None) -> None:
    """Log every request of an app, and write what its loggers say as JSON, too.

    Only the loggers of this package and of the libraries that talk to the database are set up:
    the root logger belongs to whoever runs the process.

    Args:
        observe: is told each request's line and its seconds.
    """
    tail: list[Any] = [structlog.processors.EventRenamer("message"), _render]
    # Standard output is for requests; a command prints its result there.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                _add_request,
                *_HEAD,
                structlog.processors.format_exc_info,
                _hide_values,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tail],
        )
    )
    for name in (app.name, *LIBRARIES):
        logger = logging.getLogger(name)
        logger.handlers = [handler, *(h for h in logger.handlers if not _is_ours(h))]
    log = structlog.wrap_logger(
        structlog.WriteLogger(sys.stdout),  # as it is now; in one piece, for threads and workers
        processors=[*_HEAD, *tail],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    slow = app.config["SHOP_SLOW_REQUEST_SECONDS"] or float("inf")
    app.before_request(_begin)
    app.after_request(partial(_end, _Output(log.bind(), slow, observe)))


class Begun(NamedTuple):
    """When a request began, by a clock of its own, and the names by which it is found again."""

    moment: float
    names: dict[str, str]


def _begin() -> None:
    environ = request.environ
    given = environ.get("HTTP_X_REQUEST_ID", "")
    names = {"request_id": given if _SANE_REQUEST_ID.fullmatch(given) else os.urandom(16).hex()}
    if trace := _TRACEPARENT.fullmatch(environ.get("HTTP_TRACEPARENT", "")):
        names |= {"trace_id": trace[1], "parent_id": trace[2]}
    g.begun = Begun(time.perf_counter(), names)


def _end(output: _Output, response: Response) -> Response:
    begun: Begun = g.begun
    response.headers["X-Request-Id"] = begun.names["request_id"]
    principal, method, rule = g.get("principal"), request.method, request.url_rule
    line = {
        **begun.names,
        "method": method if method in _METHODS else "other",
        "route": rule.rule if rule else None,
        "status": response.status_code,
        "key_id": principal.key_id if principal else None,
    }
    # A long list takes its time after this; a file is passed on to the server, which tells nobody.
    if response.is_streamed and not response.direct_passthrough:
        response.call_on_close(partial(output.write, begun.moment, line))
    else:
        output.write(begun.moment, line)
    return response


@dataclass(frozen=True, slots=True)
class _Output:
    """Where the lines of an app go.

    Args:
        log: writes a line.
        slow: the seconds from which a request is a warning.
        observe: is told each line and its seconds.
    """

    log: Any
    slow: float
    observe: Observe | None

    def write(self, started: float, line: dict[str, Any]) -> None:
        """Write the line of a request."""
        seconds = time.perf_counter() - started
        line["duration_ms"] = round(seconds * 1000, 2)
        if seconds >= self.slow:
            self.log.warning("request", slow=True, **line)
        else:
            self.log.info("request", **line)
        if self.observe:
            self.observe(line, seconds)


def _hide_values(_: Any, __: str, line: Any) -> Any:
    """Take the values out of a traceback: PostgreSQL tells the row that it refused."""
    if "exception" in line:
        line["exception"] = _DETAIL.sub("DETAIL: hidden", line["exception"])
    return line


def _is_ours(handler: logging.Handler) -> bool:
    return isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)


def _render(_: Any, __: str, line: Any) -> str:
    """Return the JSON of a line, in which a terminal and an eye find nothing but text.

    orjson escapes the control characters of ASCII only; others turn a line around or colour it.
    """
    text = orjson.dumps(line, default=str).decode()
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
