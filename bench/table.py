"""Define the rows of the table, with their comparisons and targets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from statistics import median
from typing import NamedTuple

from bench.servers import CONNECTIONS, Request, Server, Spent
from bench.shops import DATABASES, SECRET, Shop, Shops

SMALL, STREAMED, LARGE = 1_000, 100_000, 1_000_000
CUSTOMERS = "/customers?filter[limit]=100"
ORDERS = "/orders?filter[limit]=100"

_numbers = count(1)


class Work(NamedTuple):
    """A workload that is repeated.

    Args:
        server: the server to send the requests to.
        requests: returns the requests of one round.
        times: the number of repetitions per round.
        connections: the number of simultaneous connections.
    """

    server: Server
    requests: Callable[[], Sequence[Request]]
    times: int
    connections: int = CONNECTIONS


class Goal(NamedTuple):
    """A target and a stretch target, as upper or as lower limits."""

    target: float
    stretch: float
    at_least: bool = False
    unit: str = ""


class Row(NamedTuple):
    """A measured row, with a figure for each round and details."""

    name: str
    goal: Goal
    samples: Sequence[float]
    details: str


def read(server: Server, path: str, times: int) -> Work:
    """Return a workload of GET requests."""
    return Work(server, lambda: [Request(path)] * times, times)


def alternate(works: Sequence[Work], rounds: int) -> list[list[Spent]]:
    """Run workloads in turn. Return for each its cost per repetition in every round."""
    found: list[list[Spent]] = [[] for _ in works]
    for turn in range(-1, rounds):  # the first round is a warm-up
        for work, costs in zip(works, found, strict=True):
            spent = work.server.send(work.requests(), work.connections)
            if turn >= 0:
                costs.append(Spent(*(value / work.times for value in spent)))
    return found


def cpu(spent: Spent) -> float:
    """Return the CPU time of all server processes."""
    return spent.service + spent.database


def ratio(name: str, goal: Goal, work: Work, other: Work, rounds: int) -> Row:
    """Compare the CPU time of two workloads. If the goal is a lower limit, invert the ratio."""
    costs, others = alternate([work, other], rounds)
    samples = [
        cpu(there) / cpu(here) if goal.at_least else cpu(here) / cpu(there)
        for here, there in zip(costs, others, strict=True)
    ]
    return Row(name, goal, samples, f"{_details(costs)} vs. {_details(others)}")


def _details(costs: Sequence[Spent]) -> str:
    service = median(cost.service for cost in costs) * 1000
    database = median(cost.database for cost in costs) * 1000
    per_second = 1 / median(cost.wall for cost in costs)
    own = f" + {database:.2f}" if database else ""
    return f"{service:.2f}{own} ms, {per_second:,.0f}/s"


def single_reads(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare reads with the yardstick B, and a list with its plain view."""
    sqlite, postgresql = (shops.shop(database, SMALL) for database in DATABASES)
    with sqlite.serve() as server, sqlite.serve("bench.yardstick:app") as plain:
        bare = read(plain, "/ready", 500)
        coupon = read(server, "/coupons/7", 500)
        yield ratio("`GET /coupons/{id}`, SQLite", Goal(1.8, 1.4, unit="B"), coupon, bare, rounds)
        with postgresql.serve() as other:
            coupon = read(other, "/coupons/7", 500)
            name = "`GET /coupons/{id}`, PostgreSQL"
            yield ratio(name, Goal(2.8, 2.2, unit="B"), coupon, bare, rounds)
        customers = read(server, CUSTOMERS, 100)
        name = f"`GET {CUSTOMERS}`, SQLite"
        yield ratio(name, Goal(10, 7, unit="B"), customers, bare, rounds)
        if json.loads(server.get(CUSTOMERS)) != json.loads(plain.get("/customers")):
            raise RuntimeError("the plain view returns a different response")
        goal = Goal(6, 8, at_least=True, unit="times faster")
        name = "the same, compared with a plain ORM and marshmallow view"
        yield ratio(name, goal, customers, read(plain, "/customers", 40), rounds)
        name = f"`GET {ORDERS}` with their customers, SQLite"
        yield ratio(name, Goal(20, 12, unit="B"), read(server, ORDERS, 50), bare, rounds)


def bulk_creates(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare bulk requests of 100 creates with 100 single creates."""
    goal = Goal(8, 15, at_least=True, unit="times faster")
    for database in DATABASES:
        with shops.empty(database).serve() as server:
            for noun, make in (("coupon", _new_coupon), ("customer", _new_customer)):
                bulk = Work(server, partial(_bulk, noun, make), 1, connections=1)
                singles = Work(server, partial(_singles, noun, make), 1, connections=1)
                name = f"`POST /{noun}s/bulk` of 100, compared with 100 single creates, {database}"
                yield ratio(name, goal, bulk, singles, rounds)


Make = Callable[[], dict[str, object]]


def _new_coupon() -> dict[str, object]:
    return {"code": f"bench-{next(_numbers)}", "type": "percent", "amount": "15.00"}


def _new_customer() -> dict[str, object]:
    return {"email": f"bench-{next(_numbers)}@example.com", "first_name": "Ada"}


def _bulk(noun: str, make: Make) -> list[Request]:
    body = {f"{noun}s": [make() for _ in range(100)]}
    return [Request(f"/{noun}s/bulk", "POST", json.dumps(body).encode())]


def _singles(noun: str, make: Make) -> list[Request]:
    bodies = (json.dumps({noun: make()}).encode() for _ in range(100))
    return [Request(f"/{noun}s", "POST", body) for body in bodies]


def large_lists(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure pages and searches of a million rows."""
    small, large = shops.shop(database, SMALL), shops.shop(database, LARGE)
    with small.serve() as few, large.serve() as many:
        for noun in ("customers", "coupons"):
            for where, page_of_many, page_of_few in (
                ("page 1", 1, 1),
                ("the middle page", LARGE // 20, SMALL // 20),
            ):
                name = f"{where} of {LARGE:,} {noun}, compared with {SMALL:,}, {database}"
                work = read(many, f"/{noun}?page={page_of_many}", 50)
                other = read(few, f"/{noun}?page={page_of_few}", 50)
                yield ratio(name, Goal(1.5, 1.15, unit="times"), work, other, rounds)
        for text in ("ada", "hopper", "zoe.turing77"):
            path = f"/customers?filter[q]={text}"
            (costs,) = alternate([read(many, path, 10)], rounds)
            name = f"search of {LARGE:,} customers for `{text}`, {database}"
            goal = Goal(30, 5, unit="ms")
            yield Row(name, goal, [cpu(cost) * 1000 for cost in costs], _details(costs))


def whole_list(shops: Shops, rounds: int, size: int) -> Iterator[Row]:
    """Measure a list of all customers: rows per second and memory."""
    with shops.shop("SQLite", size).serve() as server:
        work = Work(server, lambda: [Request("/customers?filter[limit]=-1")], 1, 1)
        server.get(CUSTOMERS)
        idle = server.reset_peak()
        (costs,) = alternate([work], rounds)
        above = (server.peak() - idle) / 2**20
        name = f"`filter[limit]=-1` over {size:,} customers, SQLite"
        yield Row(
            name,
            Goal(15_000, 40_000, at_least=True, unit="rows/s per core"),
            [size / cpu(cost) for cost in costs],
            _details(costs),
        )
        yield Row("its memory above idle", Goal(60, 60, unit="MiB"), [above], "peak of the worker")


def authentication(shop: Shop, rounds: int) -> Row:
    """Measure the authentication and authorization that run before each view."""
    from app import create_app  # noqa: PLC0415  # the only use of the service in this process

    app = create_app({"DATABASE_URL": shop.url, "SECRET_KEY": SECRET})
    (before,) = app.before_request_funcs["coupons"]
    samples = []
    for _ in range(rounds + 1):
        contexts = [
            app.test_request_context("/coupons/7", headers=shop.headers) for _ in range(1000)
        ]
        spent = 0.0
        for context in contexts:
            with context:
                started = time.thread_time()
                before()
                spent += time.thread_time() - started
        samples.append(spent / len(contexts) * 1e6)
    return Row("authentication with a cached key", Goal(20, 5, unit="µs"), samples[1:], "CPU")


def start(shop: Shop, rounds: int) -> Row:
    """Measure the time from the start of gunicorn to its first response."""
    samples, spent = [], []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        with shop.serve() as server:
            samples.append(time.perf_counter() - started)
            spent.append(server.spent().service)
    details = f"wall-clock; {median(spent[1:]):.2g} s CPU"
    return Row("start to first response", Goal(1.5, 0.7, unit="s"), samples[1:], details)
