"""Measure and print. A complete run of ``python -m qa.bench`` writes docs/performance.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterator

from qa.bench import (
    campaigns,
    events,
    files,
    http_imports,
    imports,
    large_shops,
    persons,
    process,
    reads,
    redemptions,
    report,
    writes,
)
from qa.bench.measuring import Row
from qa.bench.shops import DATABASES, SMALL, STREAMED, Shops, open_shops

PARTS = (
    "reads", "metadata", "bulk", "redemptions", "campaigns", "persons", "orders", "requests",
    "events", "imports", "files", "process", "writers", "whole", "full",
    "large_campaigns",
)  # fmt: skip
LARGE_PARTS = {"full", "large_campaigns"}

_REQUESTS = {
    "reads": reads.single_reads,
    "metadata": reads.metadata,
    "bulk": writes.bulk_creates,
    "orders": writes.order_writes,
    "requests": writes.orders_and_bare_views,
    "redemptions": redemptions.redemptions,
    "campaigns": campaigns.campaigns,
    "persons": persons.persons,
}


def measure(shops: Shops, parts: Collection[str], *, quick: bool) -> Iterator[Row]:
    """Measure some parts and yield their rows."""
    rounds = 3 if quick else 7
    for name, rows in _REQUESTS.items():
        if name in parts:
            yield from rows(shops, rounds)
    if "events" in parts:
        yield from events.rows(shops, rounds, quick=quick)
    if "imports" in parts:
        yield from imports.imports(3, quick=quick)
        yield from http_imports.rows(shops, 3, quick=quick)
    if "files" in parts:
        yield from files.rows(shops, quick=quick)
    if "process" in parts:
        small = shops.shop("SQLite", SMALL)
        yield process.authentication(small, rounds)
        yield process.start(small, rounds)
        yield process.list_of_commands(rounds)
        yield from process.serve(small, 3)
    if "writers" in parts:
        yield writes.writers_at_once(shops, 3)
    if "whole" in parts:
        yield from reads.whole_list(shops, 3, SMALL if quick else STREAMED)
    if "full" in parts:
        for database in DATABASES:
            yield from large_shops.first_pages(shops, rounds, database)
            yield from large_shops.full_shop(shops, 3, database)
    if "large_campaigns" in parts:
        yield from campaigns.large_campaigns(shops, rounds)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m qa.bench", description="Measure the performance of the service."
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
