"""Rows about the evaluation and the redemption of coupons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from bench.measuring import Goal, Row, Work, alternate, details, ratio
from bench.servers import Request
from bench.shops import DATABASES, Shops
from bench.workloads import limited_coupons, reservations


def redemptions(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare an evaluation with reading a coupon, and measure 16 clients of one limited coupon."""
    for database in DATABASES:
        # The target of the reservations is for two cores, which need a process each.
        workers = 1 if database == "SQLite" else 2
        with shops.empty(database).serve(workers=workers) as server:
            server.get("/coupons")
            server.send([limited_coupons(2)], 1)
            first = json.loads(server.get("/coupons/code/limited-0"))["coupon"]["id"]
            items = [{"product_id": number, "price": "13.95"} for number in range(1, 11)]
            cart = {"items": items, "coupons": ["limited-0", "limited-1"]}
            body = json.dumps({"cart": cart}).encode()
            requests = [Request("/coupons/evaluate", "POST", body)] * 200
            evaluate = Work(server, partial(list, requests), 200)
            name = f"`POST /coupons/evaluate` of 10 items and 2 coupons, {database}"
            reads = [Request(f"/coupons/{first}")] * 200
            reading = Work(server, partial(list, reads), 200)
            yield ratio(name, Goal(2.5, 2, unit="reads"), evaluate, reading, rounds)
            if database == "SQLite":  # one writer at a time
                continue
            reserve = Work(server, partial(reservations, 400), 400, connections=16)
            (costs,) = alternate([reserve], rounds)
            name = f"`POST /redemptions` of one limited coupon by 16 clients, {database}"
            goal = Goal(500, 1000, at_least=True, unit="a second")
            yield Row(name, goal, [1 / cost.wall for cost in costs], details(costs))
