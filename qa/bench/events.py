"""Rows about events: what webhooks cost a request, and deliveries (events)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from statistics import median

from app import create_app
from qa.bench import deliveries
from qa.bench.measuring import Goal, Row, Work, alternate, details, ratio
from qa.bench.shops import DATABASES, SECRET, Shop, Shops
from qa.bench.workloads import new_coupon, singles

WEBHOOKS = 3
WRITERS = 16
MEDIAN_MS = {"SQLite": 1000, "PostgreSQL": 300}
"""Targets for the time from a commit to the receiver."""


def rows(shops: Shops, rounds: int) -> Iterator[Row]:
    """Measure creates with webhooks, and deliveries."""
    for database in DATABASES:
        yield from _creates_with_webhooks(shops, rounds, database)
        yield from _deliveries(shops, database)


def _creates_with_webhooks(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Compare creating coupons in a shop with webhooks and in one without.

    No worker runs, because its work in PostgreSQL could not be told from that of the request.
    """
    plain, busy = shops.empty(database, "without"), shops.empty(database, "webhooks")
    with tempfile.TemporaryDirectory(prefix="shop-bench-") as folder:
        settings = {"DATABASE_URL": busy.url, "SECRET_KEY": SECRET, "INSTANCE_PATH": folder}
        deliveries.add_webhooks(create_app(settings), 1, "https://receiver.example/", WEBHOOKS)
    make = partial(singles, "coupon", new_coupon)
    with plain.serve() as server_without, busy.serve() as server:
        work, other = (Work(each, make, 100, connections=1) for each in (server, server_without))
        name = f"`POST /coupons` with {WEBHOOKS} webhooks, compared with none, {database}"
        yield ratio(name, Goal(1.25), work, other, rounds)
    if database != "PostgreSQL":
        return
    serve = partial(Shop.serve, workers=2, threads=WRITERS // 2)
    with serve(plain) as server_without, serve(busy) as server:
        work, other = (
            Work(each, lambda: [*make(), *make(), *make()], 300, connections=WRITERS)
            for each in (server, server_without)
        )
        costs, others = alternate([work, other], rounds)
        samples = [there.wall / here.wall for here, there in zip(costs, others, strict=True)]
        name = f"rate of {WRITERS} writers with {WEBHOOKS} webhooks, compared with none, {database}"
        goal = Goal(0.9, "times", at_least=True)
        yield Row(name, goal, samples, f"{details(costs)} vs. {details(others)}")


def _deliveries(shops: Shops, database: str) -> Iterator[Row]:
    """Measure one worker with one webhook and a local receiver."""
    figures = deliveries.measure(shops.new(database, "deliveries"))
    target = MEDIAN_MS[database]
    waits = [1000 * wait for wait in figures.waits]
    yield Row(
        f"commit to receiver, median, {database}",
        Goal(target, "ms"),
        [median(waits)],
        f"wall clock; 95 % within {waits[int(len(waits) * 0.95)]:.0f} ms",
    )
    yield Row(
        f"deliveries per CPU second of one worker, {database}",
        Goal(300, "deliveries", at_least=True),
        [figures.per_cpu_second],
        f"{deliveries.QUEUED:,} deliveries, {figures.per_second:,.0f}/s by the clock",
    )
