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


def order_writes(shops: Shops, rounds: int) -> Iterator[Row]:
    """Measure writing orders beside creating coupons, and a bulk beside single creates."""
    for database in DATABASES:
        with shops.empty(database).serve() as server:
            coupons = Work(server, partial(_singles, "coupon", _new_coupon), 100, connections=1)
            orders = Work(server, partial(_singles, "order", _new_order), 100, connections=1)
            name = f"`POST /orders` with 3 lines beside creating a coupon, {database}"
            yield ratio(name, Goal(3, 2, unit="times"), orders, coupons, rounds)
            bulk = Work(server, partial(_bulk, "order", _new_order), 100, connections=1)
            name = f"`POST /orders/bulk` of 100 beside 100 single creates, {database}"
            goal = Goal(8, 15, at_least=True, unit="times faster")
            yield ratio(name, goal, bulk, orders, rounds)
            changes = Work(server, _status_changes, 100, connections=1)
            name = f"`PUT /orders/{{id}}` of a status beside creating a coupon, {database}"
            yield ratio(name, Goal(3, 2, unit="times"), changes, coupons, rounds)


def _new_order() -> dict[str, object]:
    line = {"product_id": 7, "name": "Mug", "sku": "SKU-007", "quantity": 2, "price": "4.00"}
    return {
        "currency": "EUR",
        "billing_address": {"first_name": "Ada", "email": f"bench-{next(_numbers)}@example.com"},
        "line_items": [line] * 3,
        "shipping_lines": [{"method_id": "flat_rate", "total": "4.90"}],
    }


def _status_changes() -> list[Request]:
    """Return changes of the first hundred orders, each to another status than it has."""
    status = ("completed", "processing")[next(_numbers) % 2]
    body = json.dumps({"order": {"status": status}}).encode()
    return [Request(f"/orders/{order_id}", "PUT", body) for order_id in range(1, 101)]


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


# What an operation on a full shop may cost, in milliseconds: the lists of the shop in their orders.
FULL_LISTS = (
    *(
        (f"customers by {name}", f"/customers?filter[orderby]={name}", 5)
        for name in ("id", "email", "login", "modified", "name", "first_name", "last_name")
    ),
    *(
        (f"customers by {name}, in the middle",
         f"/customers?filter[orderby]={name}&page={LARGE // 20}", 20)
        for name in ("id", "email", "modified", "name")
    ),
    *(
        (f"customers {name} in one month",
         f"/customers?filter[{name}_at_min]=2026-05-01&filter[{name}_at_max]=2026-06-01", 10)
        for name in ("created", "updated")
    ),
    *(
        (f"coupons by {name}", f"/coupons?filter[orderby]={name}", 5) for name in ("id", "code")
    ),
    ("coupons of a type", "/coupons?filter[type]=percent", 5),
    ("orders of guests", "/orders?filter[customer_id]=0", 5),
    *(
        (f"orders of a status by {name}",
         f"/orders?filter[status]=pending&filter[orderby]={name}", 5)
        for name in ("date", "total", "modified", "id")
    ),
)  # fmt: skip


def full_shop(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure lists in every order, and writes, in a full shop: milliseconds of CPU.

    PostgreSQL may cost twice as much. The writes come last: they add a few thousand records.
    """
    times = 2 if database == "PostgreSQL" else 1
    with shops.shop(database, LARGE).serve() as server:
        for name, path, reach in FULL_LISTS:
            yield _milliseconds(
                f"{name}, {database}", read(server, path, 10), reach * times, rounds
            )
    with shops.shop(database, LARGE).serve() as server:
        works = (
            ("`POST /coupons`", partial(_singles, "coupon", _new_coupon), 100, 5),
            ("`PUT /coupons/{id}`", _edits, 100, 5),
            ("`POST /coupons/bulk` of 100", partial(_bulk, "coupon", _new_coupon), 1, 12),
            ("`POST /customers`", partial(_singles, "customer", _new_customer), 100, 8),
            ("`POST /customers/bulk` of 100", partial(_bulk, "customer", _new_customer), 1, 25),
        )
        for name, make, number, reach in works:
            work = Work(server, make, number, connections=1)
            title = f"{name} in a shop of {LARGE:,}, {database}"
            yield _milliseconds(title, work, reach * times, rounds)


def writers_at_once(shops: Shops, rounds: int) -> Row:
    """Measure how long 16 clients wait that create coupons at once, on SQLite."""
    samples = []
    with shops.empty("SQLite").serve(workers=2, threads=8) as server:
        for _ in range(rounds):
            requests = [each for _ in range(5) for each in _singles("coupon", _new_coupon)]
            waits = sorted(server.waits(requests, connections=16))
            samples.append(waits[len(waits) * 99 // 100] * 1000)
    goal = Goal(450, 100, unit="ms")
    return Row("wait of 16 writers at once, p99, SQLite", goal, samples, "wall clock, two workers")


def _milliseconds(name: str, work: Work, reach: float, rounds: int) -> Row:
    (costs,) = alternate([work], rounds)
    goal = Goal(reach, reach / 2, unit="ms")
    return Row(name, goal, [cpu(cost) * 1000 for cost in costs], _details(costs))


def _edits() -> list[Request]:
    """Return edits of published coupons: every twentieth is in the trash."""
    numbers = [number for number in range(1, 106) if number % 20]
    body = json.dumps({"coupon": {"description": f"edit {next(_numbers)}"}}).encode()
    return [Request(f"/coupons/{number}", "PUT", body) for number in numbers]


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
    beside = f"by the clock; {median(spent[1:]):.2g} s CPU"
    return Row("start to first answer", Goal(1.5, 0.7, unit="s"), samples[1:], beside)


def redemptions(shops: Shops, rounds: int) -> Iterator[Row]:
    """Measure an evaluation beside reading a coupon, and 16 clients with one limited coupon."""
    for database in DATABASES:
        with shops.empty(database).serve() as server:
            coupons = [
                {"code": f"bench-{number}", "type": "percent", "amount": "10", "usage_limit": 10**9}
                for number in range(2)
            ]
            server.get("/coupons")
            made = json.dumps({"coupons": coupons}).encode()
            server.send([Request("/coupons/bulk", "POST", made)], 1)
            first = json.loads(server.get("/coupons/code/bench-0"))["coupon"]["id"]
            items = [{"product_id": number, "price": "13.95"} for number in range(1, 11)]
            cart = {"items": items, "coupons": ["bench-0", "bench-1"]}
            body = json.dumps({"cart": cart}).encode()
            requests = [Request("/coupons/evaluate", "POST", body)] * 200
            evaluate = Work(server, partial(list, requests), 200)
            name = f"`POST /coupons/evaluate` of 10 items and 2 coupons, {database}"
            reading = read(server, f"/coupons/{first}", 200)
            yield ratio(name, Goal(2.5, 2, unit="reads"), evaluate, reading, rounds)
            if database == "SQLite":  # one writer at a time
                continue
            reserve = Work(server, partial(_reserves, 400), 400, connections=16)
            (costs,) = alternate([reserve], rounds)
            name = f"`POST /redemptions` of one limited coupon by 16 clients, {database}"
            goal = Goal(500, 1000, at_least=True, unit="a second")
            yield Row(name, goal, [1 / cost.wall for cost in costs], _details(costs))


def _reserves(number: int) -> list[Request]:
    bodies = (
        {"redemption": {"code": "bench-0", "reference": f"cart-{next(_numbers)}"}}
        for _ in range(number)
    )
    return [Request("/redemptions", "POST", json.dumps(body).encode()) for body in bodies]
