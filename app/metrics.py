"""What Prometheus reads at ``/metrics``, when ``SHOP_METRICS`` is on (operations.md).

Each worker counts in files of its own, in the folder that ``gunicorn.conf.py`` makes; the worker
that is asked adds up all of them. Without that folder, as in tests, the process counts for itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy import Engine, ExceptionContext, event
from sqlalchemy.exc import DBAPIError

from app.db.read_pool import Reader
from app.db.session import is_retryable, is_unavailable
from app.db.timeouts import is_statement_timeout
from app.logging import Observe

SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


def init_app(app: Flask, engines: Mapping[str, Engine], reader: Reader) -> Observe:
    """Answer ``/metrics`` and count what the database does.

    Args:
        engines: the engines of the app, by the names that they get in the metrics.
        reader: uses one of them.

    Returns:
        What counts a request, for its line in the log.
    """
    registry = CollectorRegistry()
    _count_connections(registry, engines, reader)
    app.add_url_rule("/metrics", "metrics", lambda: _answer(registry))
    return _request_counter(registry)


def _answer(registry: CollectorRegistry) -> Response:
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # prometheus-client's
    write, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(write(registry), content_type=content_type)


def _request_counter(registry: CollectorRegistry) -> Observe:
    requests = Counter(
        "shop_http_requests",
        "Requests answered, by route pattern; unmatched: no route.",
        ["method", "route", "status"],
        registry=registry,
    )
    durations = Histogram(
        "shop_http_request_duration_seconds",
        "Time to the end of the answer.",
        ["method", "route"],
        buckets=SECONDS,
        registry=registry,
    )
    failures = Counter(
        "shop_authentication_failures",
        "Requests without valid credentials, by answer: 401, and 429 after too many of them.",
        ["status"],
        registry=registry,
    )

    def observe(line: Mapping[str, Any], seconds: float) -> None:
        method, route, status = line["method"], line["route"] or "unmatched", line["status"]
        requests.labels(method, route, status).inc()
        durations.labels(method, route).observe(seconds)
        if status in {401, 429} and line["key_id"] is None:
            failures.labels(status).inc()

    return observe


def _count_connections(
    registry: CollectorRegistry, engines: Mapping[str, Engine], reader: Reader
) -> None:
    connections = Gauge(
        "shop_database_connections",
        "Connections to the database: open, and those of them in use.",
        ["engine", "state"],
        multiprocess_mode="livesum",
        registry=registry,
    )
    errors = Counter(
        "shop_database_errors",
        "Errors of the database. conflict: another transaction came first, which is tried again.",
        ["engine", "kind"],
        registry=registry,
    )

    def watch(name: str, engine: Engine) -> None:
        opened, in_use = (connections.labels(name, state) for state in ("open", "in_use"))
        event.listen(engine, "connect", lambda *_: opened.inc())
        event.listen(engine, "close", lambda *_: opened.dec())
        if engine is reader.engine:  # which keeps connections that it has no use for
            reader.in_use = in_use.inc
            reader.failed = lambda error: errors.labels(name, _kind(error)).inc()
        else:
            event.listen(engine, "checkout", lambda *_: in_use.inc())
            event.listen(engine, "checkin", lambda *_: in_use.dec())

        @event.listens_for(engine, "handle_error")
        def count(context: ExceptionContext) -> None:
            errors.labels(name, _kind(context.sqlalchemy_exception)).inc()

    for name, engine in engines.items():
        watch(name, engine)


def _kind(error: BaseException | None) -> str:
    if not isinstance(error, DBAPIError):
        return "other"
    if is_statement_timeout(error):
        return "timeout"
    if is_retryable(error):
        return "conflict"
    return "unreachable" if is_unavailable(error) else "other"
