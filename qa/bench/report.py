"""Format the rows for the terminal and for docs/performance.md."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from qa.bench.measuring import Row
from tests.serving import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_HEAD = ("Workload", "Target", "Measured", "Range", "Result", "Details")
_MEASURED = re.compile(r"(?<=<!-- make bench -->\n).*(?=<!-- end -->)", re.DOTALL)


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    goal, figure = row.goal, median(row.samples)
    return (
        row.name,
        f"{'≥' if goal.at_least else '≤'} {goal.target:,.4g} {goal.unit}",
        shown(figure),
        f"{shown(min(row.samples))} to {shown(max(row.samples))}",
        "met" if goal.is_met(figure) else "**missed**",
        row.details,
    )


def line(row: Row) -> str:
    """Return the terminal output of a row."""
    name, target, figure, spread, result, details = cells(row)
    return f"{name}\n    {figure} ({spread}), {target}: {result}; {details}\n"


def shown(figure: float) -> str:
    """Return a figure with three significant digits."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def machine() -> str:
    """Return a description of this machine."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def write(rows: Sequence[Row], minutes: float) -> None:
    """Replace the rows in the document."""
    table = [_HEAD, ("---",) * len(_HEAD), *map(cells, rows)]
    lines = "\n".join(f"| {' | '.join(line)} |" for line in table)
    run = f"{datetime.now(UTC):%Y-%m-%d}, {machine()}, in {minutes:.0f} minutes"
    text = f"\n{run}:\n\n{lines}\n\n"
    DOCUMENT.write_text(_MEASURED.sub(lambda _: text, DOCUMENT.read_text()))
