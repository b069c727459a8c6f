"""Measure and print. A complete run of ``python -m bench`` writes docs/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterator

from bench import report, table
from bench.shops import DATABASES, Shops, open_shops

PARTS = ("reads", "bulk", "redemptions", "orders", "process", "writers", "whole", "large", "full")
LARGE_PARTS = {"large", "full"}


def measure(shops: Shops, parts: Collection[str], *, quick: bool) -> Iterator[table.Row]:
    """Measure some parts and yield their rows."""
    rounds = 3 if quick else 11
    if "reads" in parts:
        yield from table.single_reads(shops, rounds)
    if "bulk" in parts:
        yield from table.bulk_creates(shops, rounds)
    if "orders" in parts:
        yield from table.order_writes(shops, rounds)
    if "redemptions" in parts:
        yield from table.redemptions(shops, rounds)
    if "process" in parts:
        small = shops.shop("SQLite", table.SMALL)
        yield table.authentication(small, rounds)
        yield table.start(small, rounds)
    if "writers" in parts:
        yield table.writers_at_once(shops, 3)
    if "whole" in parts:
        yield from table.whole_list(shops, 3, table.SMALL if quick else table.STREAMED)
    if "large" in parts:
        for database in DATABASES:
            yield from table.large_lists(shops, rounds, database)
    if "full" in parts:
        for database in DATABASES:
            yield from table.full_shop(shops, rounds, database)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the performance of the service."
    )
    parser.add_argument(
        "parts", nargs="*", help=f"parts to measure, of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="omit the large shops")
    given = parser.parse_args()
    parts = given.parts or [part for part in PARTS if part not in LARGE_PARTS or not given.quick]
    sys.stdout.write(f"{report.machine()}\n")
    rows = []
    with open_shops(os.environ.get("BENCH_DATA"), os.environ.get("BENCH_POSTGRESQL")) as shops:
        for row in measure(shops, parts, quick=given.quick):
            rows.append(row)
            sys.stdout.write(report.line(row))
            sys.stdout.flush()
    if not given.quick and not given.parts:
        report.write(rows)


main()
