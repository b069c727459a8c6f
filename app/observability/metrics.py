"""Prometheus metrics at ``/metrics``, if ``SHOP_METRICS`` is on (docs/monitoring.md).

Each worker writes its metrics to files in the folder that ``gunicorn.conf.py`` creates. The worker
that serves ``/metrics`` adds up the files of all workers. Without that folder, as in tests, each
process reports its own metrics.
"""

import os
import platform
from collections.abc import Callable, Iterable, Mapping

from flask import Flask, Response, request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import Engine, ExceptionContext, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.config import VERSION
from app.db.errors import is_retryable, is_unavailable
from app.db.migrations import migration_head
from app.db.read_pool import STREAM
from app.db.replicas.monitor import State
from app.db.replicas.routing import Replicas
from app.db.timeouts import is_statement_timeout
from app.observability.logs import Observe

DURATION_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


Measure = Callable[[], Iterable[tuple[str, str, str | None, Mapping[str, float], bool]]]
"""Function that reads the figures of the shop from the database, as tuples like ``Figure``
(``services/maintenance/figures.py``)."""


def init_app(
    app: Flask, engines: Mapping[str | None, Engine], replicas: Replicas | None, measure: Measure
) -> Observe:
    """Serve ``/metrics`` and count database connections, errors and reads from replicas.

    Args:
        engines: the engines of the app by name. The name of the write engine is None.
        replicas: the replicas of the app, if it has any.
        measure: reads the figures of the shop from the database.

    Returns:
        A function that counts a request, given its log line and duration.
    """
    registry = CollectorRegistry()
    _count_connections(registry, engines)
    _watch_replicas(registry, replicas)
    figures = ShopFigures(measure)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics_response(registry, figures))
    return _request_counter(registry)


class ShopFigures(Collector):
    """Reads the figures of the shop from the database, when metrics are requested.

    Workers can run on other machines, so the numbers of a process would not be enough.
    """

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics, or only the version while the database is unavailable."""
        yield InfoMetricFamily(
            "shop_build",
            "Version of the service, of its migrations and of Python.",
            {"version": VERSION, "schema": migration_head(), "python": platform.python_version()},
        )
        try:
            figures = list(self._measure())
        except SQLAlchemyError:
            return
        for name, meaning, label, values, is_counter in figures:
            family = CounterMetricFamily if is_counter else GaugeMetricFamily
            metric = family(name, meaning, labels=[label] if label else [])
            for value, number in values.items():
                metric.add_metric([value] if label else [], number)
            yield metric


def _metrics_response(registry: CollectorRegistry, figures: Collector) -> Response:
    page = CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(page)  # type: ignore[no-untyped-call] # prometheus-client's
    else:
        page.register(registry)
    page.register(figures)
    write, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(write(page), content_type=content_type)


def _request_counter(registry: CollectorRegistry) -> Observe:
    requests = Counter(
        "shop_http_requests",
        "Requests by route pattern. The route of requests without a match is unmatched.",
        ["method", "route", "status"],
        registry=registry,
    )
    durations = Histogram(
        "shop_http_request_duration_seconds",
        "Time until the response is complete.",
        ["method", "route"],
        buckets=DURATION_BUCKETS,
        registry=registry,
    )
    failures = Counter(
        "shop_authentication_failures",
        "Requests with missing or invalid credentials, by response status: 401 or 429.",
        ["status"],
        registry=registry,
    )

    def observe(line: Mapping[str, object], seconds: float) -> None:
        method, route, status = line["method"], line["route"] or "unmatched", line["status"]
        requests.labels(method, route, status).inc()
        durations.labels(method, route).observe(seconds)
        if status in {401, 429} and line["key_id"] is None:
            failures.labels(status).inc()

    return observe


def _count_connections(registry: CollectorRegistry, engines: Mapping[str | None, Engine]) -> None:
    connections = Gauge(
        "shop_database_connections",
        "Connections to the database. Connections in use are also counted as open.",
        ["engine", "state"],
        multiprocess_mode="livesum",
        registry=registry,
    )
    errors = Counter(
        "shop_database_errors",
        "Database errors. A conflict with another transaction is retried.",
        ["engine", "kind"],
        registry=registry,
    )

    def instrument(name: str, engine: Engine) -> None:
        opened, in_use = (connections.labels(name, state) for state in ("open", "in_use"))
        event.listen(engine, "connect", lambda *_: opened.inc())
        event.listen(engine, "close", lambda *_: opened.dec())
        event.listen(engine, "checkout", lambda *_: in_use.inc())
        event.listen(engine, "checkin", lambda *_: in_use.dec())

        @event.listens_for(engine, "handle_error")
        def count(context: ExceptionContext) -> None:
            errors.labels(name, _kind(context.sqlalchemy_exception)).inc()

    for name, engine in engines.items():
        instrument("read" if name == STREAM else name or "write", engine)


def _watch_replicas(registry: CollectorRegistry, replicas: Replicas | None) -> None:
    lag = Gauge(
        "shop_replica_lag_seconds",
        "Upper limit of the replication lag in seconds.",
        ["replica"],
        multiprocess_mode="livemax",
        registry=registry,
    )
    usable = Gauge(
        "shop_replica_usable",
        "1 if a replica is used for reads, otherwise 0.",
        ["replica"],
        multiprocess_mode="livemin",
        registry=registry,
    )
    reads = Counter(
        "shop_replica_reads",
        "Reads that could use a replica. Without a usable replica, the primary serves them.",
        ["replica", "outcome"],
        registry=registry,
    )
    if replicas is None:
        return
    replicas.observe = lambda replica, outcome: reads.labels(replica, outcome).inc()
    for replica in replicas.all:
        name = str(replica.number)
        replica.monitor.observe = _observer(usable.labels(name), lag.labels(name))


def _observer(usable: Gauge, lag: Gauge) -> Callable[[State, float | None], None]:
    def observe(state: State, seconds: float | None) -> None:
        usable.set(state is State.OK)
        if seconds is not None:
            lag.set(seconds)

    return observe


def _kind(error: BaseException | None) -> str:
    if not isinstance(error, DBAPIError):
        return "other"
    if is_statement_timeout(error):
        return "timeout"
    if is_retryable(error):
        return "conflict"
    return "unreachable" if is_unavailable(error) else "other"
