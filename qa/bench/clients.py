"""Rows about 16 clients of two workers: redemptions, waiting times, and the share of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from qa.bench.measuring import Goal, Row, Work, alternate, details
from qa.bench.servers import Request, Server
from qa.bench.shops import DATABASES, Shops
from qa.bench.workloads import limited_coupons, new_coupon, reservations, singles

CLIENTS = 16
REQUESTS, WRITES = 100 * CLIENTS, 50 * CLIENTS
RUNS = 10


def rows(shops: Shops, rounds: int) -> Iterator[Row]:
    """Measure them on each database."""
    for database in DATABASES:
        with shops.empty(database, "clients").serve(workers=2) as server:
            server.send([limited_coupons(1), *singles("coupon", new_coupon)], 1)
            if database == "PostgreSQL":  # SQLite has one writer at a time
                yield _redemptions(server, rounds)
            yield from _waits(server, rounds, database)
            yield _workers(server, database)


def _redemptions(server: Server, rounds: int) -> Row:
    """Measure 16 clients of one limited coupon: two thirds of the 539 a second of 1.0."""
    reserve = Work(server, partial(reservations, 400), 400, CLIENTS)
    (costs,) = alternate([reserve], rounds)
    name = f"`POST /redemptions` of one limited coupon by {CLIENTS} clients, PostgreSQL"
    goal = Goal(539 * 2 / 3, "a second", at_least=True)
    return Row(name, goal, [1 / cost.wall for cost in costs], details(costs))


def _waits(server: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare the longest waiting times of clients with the median."""
    kinds: dict[str, Callable[[], list[Request]]] = {
        "`GET /coupons`": lambda: [Request("/coupons")] * REQUESTS,
        "`POST /coupons`": lambda: singles("coupon", new_coupon, WRITES),
        "`POST /redemptions` of one coupon": lambda: reservations(WRITES),
    }
    for name, requests in kinds.items():
        samples, figures = [], []
        for _ in range(rounds):
            waits = sorted(server.waits(requests(), CLIENTS))
            longest, middle = waits[len(waits) * 99 // 100], median(waits)
            samples.append(longest / middle)
            figures.append(f"{longest * 1000:.0f} vs. {middle * 1000:.0f} ms")
        title = f"wait of {CLIENTS} clients for {name}, p99, compared with p50, {database}"
        yield Row(title, Goal(4), samples, f"clock; {figures[-1]}")


def _workers(server: Server, database: str) -> Row:
    """Compare the lowest rate of several runs with the others. Each opens its connections anew."""
    reads = [Request("/coupons/1")] * REQUESTS
    rates = sorted(REQUESTS / server.send(reads, CLIENTS).wall for _ in range(RUNS))
    name = f"lowest rate of {RUNS} runs of {CLIENTS} clients, compared with the others, {database}"
    goal = Goal(0.7, "times", at_least=True)
    return Row(name, goal, [rates[0] / median(rates[1:])], f"{rates[0]:,.0f} to {rates[-1]:,.0f}/s")
