"""Rows about creates, updates and bulk requests, and about writers at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from qa.bench.measuring import Goal, Row, Work, ratio, read
from qa.bench.shops import DATABASES, Shops
from qa.bench.workloads import (
    bulk,
    cart,
    limited_coupons,
    new_coupon,
    new_customer,
    new_order,
    new_order_with_coupon,
    singles,
    status_changes,
)


def bulk_creates(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare bulk requests of 100 creates with 100 single creates."""
    goal = Goal(8, 15, at_least=True, unit="times faster")
    for database in DATABASES:
        with shops.empty(database).serve() as server:
            for noun, make in (("coupon", new_coupon), ("customer", new_customer)):
                bulks = Work(server, partial(bulk, noun, make), 1, connections=1)
                creates = Work(server, partial(singles, noun, make), 1, connections=1)
                name = f"`POST /{noun}s/bulk` of 100, compared with 100 single creates, {database}"
                yield ratio(name, goal, bulks, creates, rounds)


def order_writes(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare order writes with creating coupons, and bulk requests with single creates."""
    for database in DATABASES:
        with shops.empty(database).serve() as server:
            coupons = Work(server, partial(singles, "coupon", new_coupon), 100, connections=1)
            orders = Work(server, partial(singles, "order", new_order), 100, connections=1)
            name = f"`POST /orders` with 3 lines, compared with creating a coupon, {database}"
            yield ratio(name, Goal(3, 2, unit="times"), orders, coupons, rounds)
            server.send([limited_coupons(1)], 1)
            with_coupon = partial(new_order_with_coupon, "limited-0")
            applied = Work(server, partial(singles, "order", with_coupon), 100, connections=1)
            name = (
                "`POST /orders` with 3 lines and an applied coupon, compared with creating a "
                f"coupon, {database}"
            )
            yield ratio(name, Goal(3, 2, unit="times"), applied, coupons, rounds)
            bulks = Work(server, partial(bulk, "order", new_order), 100, connections=1)
            name = f"`POST /orders/bulk` of 100, compared with 100 single creates, {database}"
            goal = Goal(8, 15, at_least=True, unit="times faster")
            yield ratio(name, goal, bulks, orders, rounds)
            changes = Work(server, status_changes, 100, connections=1)
            name = f"`PUT /orders/{{id}}` of a status, compared with creating a coupon, {database}"
            yield ratio(name, Goal(3, 2, unit="times"), changes, coupons, rounds)


def orders_and_bare_views(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare an evaluation and an order with an applied coupon with the yardstick B."""
    shop = shops.empty("SQLite", "requests")
    with shop.serve() as server, shop.serve("qa.bench.yardstick:app", stock=True) as stock:
        bare = read(stock, "/ready", 300)
        server.send([limited_coupons(2)], 1)
        evaluate = Work(server, lambda: [cart(10, 2)] * 100, 100)
        name = "`POST /coupons/evaluate` of 10 items and 2 coupons, compared with B, SQLite"
        yield ratio(name, Goal(4, 3, unit="B"), evaluate, bare, rounds)
        with_coupon = partial(new_order_with_coupon, "limited-0")
        orders = Work(server, partial(singles, "order", with_coupon), 100, connections=1)
        name = "`POST /orders` with 3 lines and an applied coupon, compared with B, SQLite"
        yield ratio(name, Goal(14, 10, unit="B"), orders, bare, rounds)


def writers_at_once(shops: Shops, rounds: int) -> Row:
    """Measure the waiting time of 16 clients that create coupons at the same time, on SQLite."""
    samples = []
    with shops.empty("SQLite").serve(workers=2, threads=8) as server:
        for _ in range(rounds):
            requests = [each for _ in range(5) for each in singles("coupon", new_coupon)]
            waits = sorted(server.waits(requests, connections=16))
            samples.append(waits[len(waits) * 99 // 100] * 1000)
    goal = Goal(450, 100, unit="ms")
    return Row("wait of 16 writers at once, p99, SQLite", goal, samples, "wall clock, two workers")
