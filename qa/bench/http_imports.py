"""Rows about imports over HTTP: their rate, and what they cost other writers (people 8)."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from qa.bench.deliveries import running_worker
from qa.bench.measuring import Goal, Row
from qa.bench.servers import Request, Server
from qa.bench.shops import DATABASES, SECRET, Shop, Shops, run_command
from qa.bench.workloads import coupon_updates, new_coupon, singles

CODES, ROUNDS = 20_000, 3
CONNECTIONS = 2
"""Writers at the same time as an import."""

WRITES = 600
"""Writes by which a percentile is measured."""

PATIENCE = 600


def rows(shops: Shops, _rounds: int) -> Iterator[Row]:
    """Compare imports over HTTP with the command, and writes meanwhile with writes alone."""
    for database in DATABASES:
        shop = shops.empty(database, "http_imports")
        worker = {"DATABASE_URL": shop.url, "SECRET_KEY": SECRET}
        with (
            tempfile.TemporaryDirectory(prefix="shop-bench-") as folder,
            shop.serve() as server,
            running_worker(worker, Path(folder)),
        ):
            yield _rates(shop, server, ROUNDS, CODES, database)
            yield _waits(server, ROUNDS, CODES, database)


def _file(number: int) -> bytes:
    prefix = time.monotonic_ns()
    lines = (f"{prefix}-{n},percent,10,Spring,1\n" for n in range(number))
    return ("code,type,amount,description,usage_limit\n" + "".join(lines)).encode()


def _start(server: Server, number: int) -> str:
    """Send a file to import, and return the path of the import."""
    query = "/imports?kind=coupons&on_conflict=fail"
    server.send([Request(query, "POST", _file(number), "text/csv")], 1)
    (newest,) = json.loads(server.get("/imports?filter[limit]=1&fields=id"))["imports"]
    return f"/imports/{newest['id']}"


def _is_finished(server: Server, path: str) -> bool:
    found = json.loads(server.get(path))["import"]
    return bool(found["status"] == "finished")


def _import(server: Server, number: int) -> float:
    """Import a file, and return the seconds."""
    started = time.perf_counter()
    path = _start(server, number)
    while not _is_finished(server, path):
        if time.perf_counter() > started + PATIENCE:
            raise RuntimeError(f"{path} is not finished after {PATIENCE} seconds")
        time.sleep(0.05)
    return time.perf_counter() - started


def _rates(shop: Shop, server: Server, rounds: int, number: int, database: str) -> Row:
    samples, figures = [], []
    with tempfile.TemporaryDirectory(prefix="shop-bench-") as folder:
        for _ in range(rounds):
            file = Path(folder, "coupons.csv")
            file.write_bytes(_file(number))
            started = time.perf_counter()
            run_command(shop.url, "import", "coupons", str(file))
            command = time.perf_counter() - started
            seconds = _import(server, number)
            samples.append(command / seconds)
            figures.append(f"{number / seconds:,.0f}/s vs. {number / command:,.0f}/s")
    name = f"rate of an import over HTTP, compared with the command, {database}"
    return Row(name, Goal(0.8, at_least=True), samples, figures[-1])


def _waits(server: Server, rounds: int, number: int, database: str) -> Row:
    """Compare the waiting time of writers during an import with that without one."""
    server.send([each for _ in range(2) for each in singles("coupon", new_coupon)], 1)
    samples, figures = [], []
    for _ in range(rounds):
        alone = _percentile(server.waits(_updates(), CONNECTIONS))
        path, found = _start(server, number), list[float]()
        while not found or not _is_finished(server, path):
            found += server.waits(_updates(), CONNECTIONS)
        among = _percentile(found)
        samples.append(among / alone)
        figures.append(f"{among * 1000:.1f} ms vs. {alone * 1000:.1f} ms")
    name = f"wait of {CONNECTIONS} writers during an import, p95, compared with none, {database}"
    return Row(name, Goal(3), samples, figures[-1])


def _updates() -> list[Request]:
    return [each for _ in range(WRITES // 100) for each in coupon_updates()]


def _percentile(waits: list[float]) -> float:
    return sorted(waits)[len(waits) * 95 // 100]
