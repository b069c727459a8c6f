"""``python -m qa.histories.planted``: start each planted defect with several seeds.

A defect must be found with each seed. Runs are one after the other, each ends at its first violation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

from qa.histories import runs
from qa.histories.checkers import errors
from qa.histories.plants import PLANTS
from qa.histories.system import SHOPS, missing

SECONDS = 60
DATABASES = {
    "no-lock": "postgresql",
    "replica-without-position": "cluster",
    "lists-without-position": "cluster",
}
"""Databases of the defects that SQLite cannot have."""


def main() -> int:
    """Run what the command line names. Return 1 if a defect was not found with a seed."""
    parser = argparse.ArgumentParser(prog="python -m qa.histories.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds; default: 1")
    parser.add_argument("--first-seed", type=int, default=1, help="the others follow it")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of traffic; default: 60")
    parser.add_argument("--faults", action="store_true", help="also disturb the processes")
    parser.add_argument("--database", choices=list(SHOPS), help="default: that of each defect")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops all processes
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows: dict[str, list[str]] = {}
    for seed in seeds:
        for name in options.names or PLANTS:
            database = options.database or DATABASES.get(name, "sqlite")
            cell, told = find(database, name, seed, options.seconds, faults=options.faults)
            rows.setdefault(name, []).append(cell)
            _say(f"{time.strftime('%X')} {name}, seed {seed}: {cell} {told}")
    _say("")
    for line in table(rows, seeds):
        _say(line)
    return int(any("not" in cell for cells in rows.values() for cell in cells))


def find(
    database: str, name: str, seed: int, seconds: float, *, faults: bool = False
) -> tuple[str, str]:
    """Return the seconds of traffic until a defect was found or that it was not, and how."""
    if reason := missing(database):
        return "skipped", reason
    result = runs.run(database, seed, seconds, plant=name, faults=faults)
    if runs.INTERRUPTED in result.not_tested:
        raise KeyboardInterrupt
    traffic = f"{result.figures.get('seconds of traffic', 0)}"
    if not result.violations:
        return f"not in {traffic}", f"({result.figures.get('operations', 0)} operations)"
    first = result.violations[0]
    if first.checker == errors.NAME:
        return "not it", f"(the planted code fails) {first.text}"
    return traffic, f"({result.figures['operations']} operations) {first.checker}: {first.text}"


def table(rows: dict[str, list[str]], seeds: Any) -> list[str]:
    """Return a table of defects and seeds with the seconds of traffic, and the lowest and highest."""
    width = max(map(len, rows), default=0)
    head = " ".join(f"{seed:>9}" for seed in seeds)
    lines = [f"{'':{width}} {head}"]
    lines += [f"{name:{width}} " + " ".join(f"{cell:>9}" for cell in cells)
              for name, cells in rows.items()]  # fmt: skip
    cells = [cell for found in rows.values() for cell in found]
    missed = sum("not" in cell for cell in cells)
    return [*lines, f"{len(cells)} runs, {missed} did not find the defect"]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
