"""Rows about reads in a small shop, and about a list of all customers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from qa.bench.measuring import Goal, Row, Work, alternate, cpu, details, ratio, read
from qa.bench.servers import Request
from qa.bench.shops import DATABASES, SMALL, Shops
from qa.bench.workloads import new_order

CUSTOMERS = "/customers?limit=100"
ORDERS = "/orders?limit=100"
WC_V3_ORDERS = "/wp-json/wc/v3/orders?per_page=100"


def single_reads(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare reads with the yardstick B, and a list with its plain view."""
    sqlite, postgresql = (shops.shop(database, SMALL) for database in DATABASES)
    views = "qa.bench.yardstick:app"
    with (
        sqlite.serve() as server,
        sqlite.serve(views) as plain,
        sqlite.serve(views, stock=True) as stock,
    ):
        bare = read(stock, "/ready", 500)
        coupon = read(server, "/coupons/7", 500)
        yield ratio("`GET /coupons/{id}`, SQLite", Goal(2, 1.4, unit="B"), coupon, bare, rounds)
        with postgresql.serve() as other:
            coupon = read(other, "/coupons/7", 500)
            name = "`GET /coupons/{id}`, PostgreSQL"
            yield ratio(name, Goal(2.8, 2.2, unit="B"), coupon, bare, rounds)
        page = read(server, "/coupons", 200)
        yield ratio(
            "`GET /coupons`, a page of ten, SQLite", Goal(4, 3, unit="B"), page, bare, rounds
        )
        document = read(server.accepting("gzip"), "/openapi.json", 200)
        yield ratio(
            "`GET /openapi.json`, compressed", Goal(2, 1.5, unit="B"), document, bare, rounds
        )
        customers = read(server, CUSTOMERS, 100)
        name = f"`GET {CUSTOMERS}`, SQLite"
        yield ratio(name, Goal(9, 7, unit="B"), customers, bare, rounds)
        if json.loads(server.get(CUSTOMERS)) != json.loads(plain.get("/customers")):
            raise RuntimeError("the plain view returns a different response")
        goal = Goal(6, 8, at_least=True, unit="times faster")
        name = "the same, compared with a plain ORM and marshmallow view"
        yield ratio(name, goal, customers, read(plain, "/customers", 40), rounds)
        name = f"`GET {ORDERS}` with their customers, SQLite"
        yield ratio(name, Goal(18, 12, unit="B"), read(server, ORDERS, 50), bare, rounds)
        native = read(server, ORDERS, 50)
        name = f"`GET {WC_V3_ORDERS}`, compared with the native page, SQLite"
        goal = Goal(1.3, 1.1, unit="times")
        yield ratio(name, goal, read(server, WC_V3_ORDERS, 50), native, rounds)


def metadata(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare a page of orders with 28 entries of metadata each with the page without them."""
    entries = {f"_plugin_{number}": f"value {number}" for number in range(28)}
    for database in DATABASES:
        with shops.empty(database, "metadata").serve() as server:
            orders = [new_order() | {"metadata": entries} for _ in range(100)]
            body = json.dumps({"orders": orders}).encode()
            server.send([Request("/orders/bulk", "POST", body)], 1)
            whole = read(server, f"{ORDERS}&meta=true", 50)
            name = f"`GET {ORDERS}&meta=true` with 28 entries each, {database}"
            title = f"{name}, compared with the page without them"
            yield ratio(title, Goal(2, 1.5, unit="times"), whole, read(server, ORDERS, 50), rounds)


def whole_list(shops: Shops, rounds: int, size: int) -> Iterator[Row]:
    """Measure a list of all customers: rows per second and memory."""
    with shops.shop("SQLite", size).serve() as server:
        work = Work(server, lambda: [Request("/customers?limit=-1")], 1, 1)
        server.get(CUSTOMERS)
        idle = server.reset_peak()
        (costs,) = alternate([work], rounds)
        above = (server.peak() - idle) / 2**20
        name = f"`limit=-1` over {size:,} customers, SQLite"
        yield Row(
            name,
            Goal(15_000, 40_000, at_least=True, unit="rows/s per core"),
            [size / cpu(cost) for cost in costs],
            details(costs),
        )
        yield Row("its memory above idle", Goal(60, 60, unit="MiB"), [above], "peak of the worker")
