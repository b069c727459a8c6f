"""JSON logs: one line a request on standard output, what went wrong on standard error.

A line never holds a secret, a password or a body: of the request it names the route, not the
path, and no header.
"""

from __future__ import annotations

import logging
import re
import sys
import time
import uuid
from typing import Any

import orjson
import structlog
from flask import Flask, Response, g, request

_SANE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")  # decisions 13

_DETAIL = re.compile(r"DETAIL:.*?(?=\n\[SQL|\n\n|\Z)", re.DOTALL)

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
]
_log = structlog.get_logger("shop")


def init_app(app: Flask) -> None:
    """Log every request of an app; send the loggers of the libraries the same way."""
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer(serializer=_json)],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )
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
    app.before_request(_begin)
    app.after_request(_end)


def _begin() -> None:
    g.started = time.perf_counter()
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _SANE_REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)


def _end(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.request_id
    principal = g.get("principal")
    _log.info(
        "request",
        method=request.method,
        route=request.url_rule.rule if request.url_rule else None,
        status=response.status_code,
        milliseconds=round((time.perf_counter() - g.started) * 1000, 2),
        key_id=principal.key_id if principal else None,
    )
    return response


def _hide_values(_: Any, __: str, line: Any) -> Any:
    """Take the values out of a traceback: PostgreSQL tells the row that it refused."""
    if "exception" in line:
        line["exception"] = _DETAIL.sub("DETAIL: hidden", line["exception"])
    return line


def _is_ours(handler: logging.Handler) -> bool:
    return isinstance(handler.formatter, structlog.stdlib.ProcessorFormatter)


def _json(line: Any, **_: Any) -> str:
    return orjson.dumps(line, default=str).decode()
