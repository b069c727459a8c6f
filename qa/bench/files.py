"""Commands that write or read many records: generated coupons, exports, imports and restores."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from qa.bench.measuring import Goal, Row
from qa.bench.shops import DATABASES, LARGE, Shops, run_command

QUICK_CODES = 50_000
RECORDS, QUICK_RECORDS = 20_000, 2_000
"""Customers, coupons and orders of the shop that is exported."""

_numbers = count(1)


def _run(url: str, *arguments: str) -> tuple[float, float]:
    """Run a command, and return its wall-clock seconds and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    run_command(url, *arguments)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _rate(name: str, target: float, records: int, url: str, *arguments: str) -> Row:
    """Measure how many records a command processes per second of its CPU, including its start."""
    seconds, cpu = _run(url, *arguments)
    goal = Goal(target, 2 * target, at_least=True, unit="records/s of CPU")
    return Row(name, goal, [records / cpu], f"{records:,} in {seconds:.1f} s by the clock")


def rows(shops: Shops, *, quick: bool) -> Iterator[Row]:
    """Measure all of these commands."""
    yield from _generated_codes(shops, quick=quick)
    yield from _exports(shops, quick=quick)


def _generated_codes(shops: Shops, *, quick: bool) -> Iterator[Row]:
    """Measure generating a million coupons."""
    number = QUICK_CODES if quick else LARGE
    fields = '{"type": "percent", "amount": "10", "usage_limit": 1, "description": "Spring"}'
    # A million in 120 wall-clock seconds.
    goal = Goal(LARGE / 120, LARGE / 60, at_least=True, unit="codes/s")
    for database in DATABASES:
        url = shops.new(database, f"generated_{next(_numbers)}")
        seconds, cpu = _run(
            url, "coupons", "generate", f"--count={number}", "--prefix=SPRING-",
            f"--coupon={fields}",
        )  # fmt: skip
        name = f"`shop-api coupons generate` of {number:,} codes, {database}"
        yield Row(
            name, goal, [number / seconds], f"{seconds:.0f} s; {cpu:.0f} s CPU of the command"
        )


def _exports(shops: Shops, *, quick: bool) -> Iterator[Row]:
    """Measure exporting, restoring and importing a shop."""
    size = QUICK_RECORDS if quick else RECORDS
    with tempfile.TemporaryDirectory(prefix="shop-bench-") as folder:
        every, coupons = Path(folder, "all.ndjson"), Path(folder, "coupons.csv")
        for database in DATABASES:
            url = shops.shop(database, size).url
            name = f"`shop-api export all` of {size:,} customers, coupons and orders, {database}"
            yield _rate(name, 4000, 3 * size, url, "export", "all", str(every))
            run_command(url, "export", "coupons", str(coupons), "--filter=status=published")
            empty = shops.new(database, f"restored_{next(_numbers)}")
            name = f"`shop-api import restore` of them, {database}"
            yield _rate(name, 1500, 3 * size, empty, "import", "restore", str(every))
            empty = shops.new(database, f"imported_{next(_numbers)}")
            number = len(coupons.read_text(encoding="utf-8").splitlines()) - 1
            name = f"`shop-api import coupons` of {number:,} rows of CSV, {database}"
            yield _rate(name, 1000, number, empty, "import", "coupons", str(coupons))
