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
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, TextIO

import orjson
import structlog
from flask import Flask, Response, g, has_app_context, request

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


_SHARED: list[Any] = [
    _add_request,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
]


def init_app(app: Flask, observe: Observe | None = None) -> None:
    """Log every request of an app; send the loggers of the libraries the same way.

    Args:
        observe: is told each request's line and its seconds.
    """
    # Standard output is for requests; a command prints its result there.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.processors.format_exc_info, _hide_values],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(serializer=_json),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler, *(h for h in root.handlers if not _is_ours(h))]
    root.setLevel(logging.WARNING)
    slow = app.config["SHOP_SLOW_REQUEST_SECONDS"] or float("inf")
    app.before_request(_begin)
    app.after_request(partial(_end, _Output(sys.stdout, slow, observe)))


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
        "event": "request",
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
        stream: standard output, as it was when the app started.
        slow: the seconds from which a request is a warning.
        observe: is told each line and its seconds.
    """

    stream: TextIO
    slow: float
    observe: Observe | None

    def write(self, started: float, line: dict[str, Any]) -> None:
        """Write the line of a request. By hand: it is the only one that every request pays for."""
        seconds = time.perf_counter() - started
        line["milliseconds"] = round(seconds * 1000, 2)
        late = {"slow": True} if seconds >= self.slow else {}
        level = "warning" if late else "info"
        moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        # In one piece: threads and workers share the stream.
        self.stream.write(f"{_json({**line, **late, 'level': level, 'time': moment})}\n")
        self.stream.flush()
        if self.observe:
            self.observe(line, seconds)


def _hide_values(_: Any, __: str, line: Any) -> Any:
    """Take the values out of a traceback: PostgreSQL tells the row that it refused."""
    if "exception" in line:
        line["exception"] = _DETAIL.sub("DETAIL: hidden", line["exception"])
    return line


def _is_ours(handler: logging.Handler) -> bool:
    return isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)


def _json(line: Any, **_: Any) -> str:
    """Return a line in which a terminal and an eye find nothing but text.

    orjson escapes the control characters of ASCII only; others turn a line around or colour it.
    """
    text = orjson.dumps(line, default=str).decode()
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
