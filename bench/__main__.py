"""``python -m bench``: measure, print, and write docs/performance.md unless it is to be quick."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from bench import report, table
from bench.shops import Shops, open_shops


def measure(shops: Shops, *, quick: bool) -> Iterator[table.Row]:
    """Measure row after row."""
    rounds = 5 if quick else 11
    small = shops.shop("SQLite", table.SMALL)
    yield from table.single_reads(shops, rounds)
    yield from table.bulk_creates(shops, rounds)
    yield from table.whole_list(shops, 3, table.SMALL if quick else table.STREAMED)
    yield table.authentication(small, rounds)
    yield table.start(small, 3)
    if not quick:
        yield from table.large_lists(shops, rounds)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the service.")
    parser.add_argument("--quick", action="store_true", help="small shops only; write no document")
    quick = parser.parse_args().quick
    rows = []
    sys.stdout.write(f"{report.machine()}\n")
    with open_shops(os.environ.get("BENCH_DATA")) as shops:
        for row in measure(shops, quick=quick):
            rows.append(row)
            work, reach, _, figure, spread, verdict, beside = report.cells(row)
            sys.stdout.write(f"{work}\n    {figure} ({spread}), {reach}: {verdict}; {beside}\n")
            sys.stdout.flush()
    if not quick:
        report.write(rows)


main()
