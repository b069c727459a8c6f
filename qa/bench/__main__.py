"""Measure and print. A complete run of ``python -m qa.bench`` writes docs/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from qa.bench import (
    beside,
    campaigns,
    clients,
    events,
    http_imports,
    imports,
    large_shops,
    persons,
    process,
    report,
    small_shops,
)
from qa.bench.measuring import Row
from qa.bench.shops import Shops, open_shops

Rows = Callable[[Shops, int], Iterator[Row]]

PARTS: dict[str, Rows] = {
    "process": process.rows,
    "small": small_shops.rows,
    "clients": clients.rows,
    "campaigns": campaigns.campaigns,
    "persons": persons.persons,
    "events": events.rows,
    "imports": imports.rows,
    "http_imports": http_imports.rows,
}
LARGE_PARTS: dict[str, Rows] = {
    "generate": imports.generated_codes,
    "large_campaigns": campaigns.large_campaigns,
    "sqlite": partial(large_shops.rows, database="SQLite"),
    "postgresql": partial(large_shops.rows, database="PostgreSQL"),
}
ROUNDS, QUICK_ROUNDS = 5, 3


def measure(shops: Shops, parts: Collection[str], rounds: int) -> Iterator[Row]:
    """Measure some parts and yield their rows."""
    for name, rows in {**PARTS, **LARGE_PARTS}.items():
        if name in parts:
            yield from rows(shops, rounds)


def main() -> None:
    """Run the command."""
    every = [*PARTS, *LARGE_PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m qa.bench", description="Measure the performance of the service."
    )
    parser.add_argument(
        "parts", nargs="*", help=f"parts to measure, of {', '.join(every)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="omit the large shops")
    other = "compare requests with another version, in a checkout that has its own .venv"
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help=other)
    given = parser.parse_args()
    if given.beside and not (given.beside / ".venv").is_dir():
        parser.error(f"{given.beside} has no .venv")
    parts = given.parts or [*PARTS] if given.quick else given.parts or every
    rounds = QUICK_ROUNDS if given.quick else ROUNDS
    sys.stdout.write(f"{report.machine()}\n")
    rows, started = [], time.monotonic()
    with open_shops(os.environ.get("BENCH_DATA"), os.environ.get("BENCH_POSTGRESQL")) as shops:
        measured = (
            beside.rows(shops, rounds, given.beside.resolve())
            if given.beside
            else measure(shops, parts, rounds)
        )
        for row in measured:
            rows.append(row)
            sys.stdout.write(report.line(row))
            sys.stdout.flush()
    if not (given.quick or given.parts or given.beside):
        report.write(rows, (time.monotonic() - started) / 60)


if __name__ == "__main__":
    main()
