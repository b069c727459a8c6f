"""Rows about events: what webhooks cost a request, the feed, and deliveries (events 4)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from statistics import median

from sqlalchemy import create_engine, text

from app import create_app
from qa.bench import deliveries
from qa.bench.measuring import Goal, Row, Work, alternate, details, ratio, read
from qa.bench.shops import DATABASES, LARGE, SECRET, SMALL, Shop, Shops
from qa.bench.workloads import new_coupon, singles

WEBHOOKS = 3
WRITERS = 16
MEDIAN_MS = {"SQLite": 1000, "PostgreSQL": 300}
"""Targets for the time from a commit to the receiver."""

# Events as long as those of coupons. On SQLite, the position of an event is its ID.
_EVENTS = """
INSERT INTO events (position, id, type, resource, resource_id, created_at, data)
SELECT n, n, 'coupon.updated', 'coupon', n % 1000, CURRENT_TIMESTAMP, :data FROM numbers
"""
_NUMBERS = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :number)
"""
_DATA = '{"coupon": {"description": "' + "x" * 500 + '"}}'


def rows(shops: Shops, rounds: int, *, quick: bool) -> Iterator[Row]:
    """Measure creates with webhooks, pages of the feed, and deliveries."""
    for database in DATABASES:
        yield from _creates_with_webhooks(shops, rounds, database)
        yield _feed(shops, rounds, database, SMALL * 100 if quick else LARGE)
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
        yield ratio(name, Goal(1.25, 1.1, unit="times"), work, other, rounds)
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
        goal = Goal(0.9, 1, at_least=True, unit="times")
        yield Row(name, goal, samples, f"{details(costs)} vs. {details(others)}")


def _feed(shops: Shops, rounds: int, database: str, number: int) -> Row:
    """Compare a page in the middle of a long feed with one of a short feed."""
    few, many = shops.empty(database, "short_feed"), shops.empty(database, "long_feed")
    for shop, length in ((few, SMALL), (many, number)):
        _fill(shop.url, length)
    with few.serve() as short, many.serve() as long:
        page = "/events?limit=100&after="
        name = f"100 events in the middle of {number:,}, compared with {SMALL:,}, {database}"
        work, other = (
            read(server, f"{page}{length // 2}", 50)
            for server, length in ((long, number), (short, SMALL))
        )
        return ratio(name, Goal(1.5, 1.15, unit="times"), work, other, rounds)


def _fill(url: str, number: int) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM events"))
        insert = _EVENTS.replace("SELECT", f"{_NUMBERS} SELECT", 1)
        connection.execute(text(insert), {"number": number, "data": _DATA})
        if engine.dialect.name == "postgresql":
            connection.execute(text("DELETE FROM event_feed"))
            feed = "INSERT INTO event_feed (id, last_id, removed_id) VALUES (1, :number, 0)"
            connection.execute(text(feed), {"number": number})
            sequence = "SELECT setval(pg_get_serial_sequence('events', 'position'), :number)"
            connection.execute(text(sequence), {"number": number})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    engine.dispose()


def _deliveries(shops: Shops, database: str) -> Iterator[Row]:
    """Measure one worker with one webhook and a local receiver."""
    figures = deliveries.measure(shops.new(database, "deliveries"))
    target = MEDIAN_MS[database]
    waits = [1000 * wait for wait in figures.waits]
    yield Row(
        f"commit to receiver, median, {database}",
        Goal(target, target / 2, unit="ms"),
        [median(waits)],
        f"wall clock; 95 % within {waits[int(len(waits) * 0.95)]:.0f} ms",
    )
    yield Row(
        f"deliveries per CPU second of one worker, {database}",
        Goal(300, 600, at_least=True, unit="deliveries"),
        [figures.per_cpu_second],
        f"{deliveries.QUEUED:,} deliveries, {figures.per_second:,.0f}/s by the clock",
    )
