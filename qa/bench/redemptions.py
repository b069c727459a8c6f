"""Rows about the evaluation and the redemption of coupons."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from statistics import median

import psycopg

from qa.bench.measuring import Goal, Row, Work, alternate, details, ratio
from qa.bench.servers import Request
from qa.bench.shops import DATABASES, Shops
from qa.bench.workloads import cart, limited_coupons, reservations

_TAKE_SLOT = """
BEGIN;
UPDATE bench_slots SET taken = taken + 1 WHERE id = 1;
INSERT INTO bench_uses VALUES (gen_random_uuid(), now());
COMMIT;
"""


def redemptions(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare an evaluation with reading a coupon, and measure 16 clients of one limited coupon."""
    for database in DATABASES:
        # The target of the reservations is for two cores, which need a process each.
        workers = 1 if database == "SQLite" else 2
        shop = shops.empty(database)
        with shop.serve(workers=workers) as server:
            server.get("/coupons")
            server.send([limited_coupons(2)], 1)
            first = json.loads(server.get("/coupons/code/limited-0"))["coupon"]["id"]
            evaluate = Work(server, partial(list, [cart(10, 2)] * 200), 200)
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
            yield from _compared_with_pgbench(reserve, shop.url, rounds)


def _compared_with_pgbench(reserve: Work, url: str, rounds: int) -> Iterator[Row]:
    """Compare the reservations with transactions that PostgreSQL's own client sends.

    Each transaction takes a slot of the same row and inserts a use. Both run in turn, with as many
    clients. Without pgbench, the row is omitted.
    """
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bench_slots (id int PRIMARY KEY, taken bigint)")
        connection.execute("CREATE TABLE bench_uses (id uuid PRIMARY KEY, created_at timestamptz)")
        connection.execute("INSERT INTO bench_slots VALUES (1, 0)")
    ratios, rates = [], []
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_TAKE_SLOT)
        script.flush()
        command = [pgbench, "-n", "-c16", "-j1", "-T2", "-f", script.name, url]
        for _ in range(rounds):
            ((cost,),) = alternate([reserve], 1)
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # a known program, no shell
            (rate,) = re.findall(r"tps = ([\d.]+)", done.stdout)
            rates.append(float(rate))
            ratios.append(1 / cost.wall / rates[-1])
    text = f"pgbench: {median(rates):,.0f} transactions per second"
    name = "the same, compared with pgbench, which takes a slot and inserts a use"
    yield Row(name, Goal(0.5, 0.8, at_least=True, unit="of its rate"), ratios, text)
