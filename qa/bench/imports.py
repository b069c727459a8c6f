"""Rows about commands: imports of WooCommerce, and a million generated coupons (migration).

``python -m qa.bench.imports FILE DATABASE_URL`` is the process that is measured.
"""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from qa.bench.measuring import Goal, Row
from qa.bench.shops import DATABASES, LARGE, Shops, run_command

CUSTOMERS, ORDERS, ROUNDS = 20_000, 8_000, 3
METADATA = 46
"""Metadata of plugins of an order, which then has 83 rows of metadata in all."""


def rows(_shops: Shops, _rounds: int) -> Iterator[Row]:
    """Measure imports of a dump of WooCommerce 3.5 into SQLite: CPU time, and memory."""
    customers, orders = CUSTOMERS, ORDERS
    with tempfile.TemporaryDirectory(prefix="bench-import-") as name:
        folder = Path(name)
        only_customers = folder / "customers.sql"
        _write(only_customers, customers=customers, coupons=0, orders=0)
        samples = [customers / _import(only_customers, folder)["cpu"] for _ in range(ROUNDS)]
        goal = Goal(3000, "a second of CPU", at_least=True)
        yield Row(
            "`shop-api import woocommerce`: customers", goal, samples, f"{customers:,} from a dump"
        )
        few, many = folder / "few.sql", folder / "many.sql"
        for file, number in ((few, orders // 10), (many, orders)):
            _write(file, customers=100, coupons=20, orders=number, plugin_keys=METADATA)
        found = [(_import(few, folder), _import(many, folder)) for _ in range(ROUNDS)]
        goal = Goal(1200, "a second of CPU", at_least=True)
        samples = [orders / large["cpu"] for _, large in found]
        details = f"{orders:,} with items, notes, uses and 83 rows of metadata each"
        yield Row("`shop-api import woocommerce`: orders", goal, samples, details)
        goal = Goal(1.25)
        samples = [large["rss"] / small["rss"] for small, large in found]
        peaks = " vs. ".join(f"{each['rss'] / 1024:,.0f} MiB" for each in reversed(found[0]))
        yield Row("its peak memory with ten times the orders", goal, samples, peaks)


def generated_codes(shops: Shops, _rounds: int) -> Iterator[Row]:
    """Measure generating a million coupons."""
    fields = '{"type": "percent", "amount": "10", "usage_limit": 1, "description": "Spring"}'
    options = f"--count={LARGE}", "--prefix=SPRING-", f"--coupon={fields}"
    for database in DATABASES:
        url = shops.new(database, "generated")
        started = time.perf_counter()
        run_command(url, "coupons", "generate", *options)
        seconds = time.perf_counter() - started
        name = f"`shop-api coupons generate` of {LARGE:,} codes, {database}"
        yield Row(name, Goal(120, "s"), [seconds], "clock")


def _write(file: Path, **numbers: int) -> None:
    """Write a dump of a generated shop."""
    options = [f"--{name.replace('_', '-')}={number}" for name, number in numbers.items()]
    subprocess.run([sys.executable, "-m", "tests.dumps", str(file), *options], check=True)  # noqa: S603  # ours


def _import(file: Path, folder: Path) -> dict[str, float]:
    """Import a dump into an empty shop in its own process, and return its CPU time and memory."""
    database = folder / "shop.db"
    for path in folder.glob("shop.db*"):
        path.unlink()
    command = [sys.executable, "-m", "qa.bench.imports", str(file), f"sqlite:///{database}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # ours
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main(file: str, database: str) -> None:
    """Import a file and print the CPU time and memory as JSON."""
    from flask_migrate import upgrade  # noqa: PLC0415  # only in the measured process

    from app import create_app  # noqa: PLC0415  # see above
    from app.cli.progress import showing_progress  # noqa: PLC0415  # see above
    from app.plugins.woocommerce.importer.importer import Location, Options, import_shop  # noqa: PLC0415  # see above
    from app.plugins.woocommerce.importer.report import ImportReport  # noqa: PLC0415  # see above

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            {"DATABASE_URL": database, "SECRET_KEY": "x" * 40, "INSTANCE_PATH": folder}
        )
        with app.app_context():
            upgrade()
            started = time.process_time()
            location, report = Location(file), ImportReport()
            import_shop(location, Options(), report, progress=showing_progress, say=lambda _: None)
            spent = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({"cpu": spent, "rss": peak}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
