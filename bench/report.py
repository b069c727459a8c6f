"""How the rows are shown: on the screen, and in docs/performance.md."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.table import Row
from tests.serving import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_HEAD = ("Work", "Reach", "Beyond", "Measured", "Spread", "", "CPU, requests by the clock")
_MEASURED = re.compile(r"(?<=<!-- make bench -->\n).*(?=<!-- end -->)", re.DOTALL)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as it is shown."""
    goal, figure = row.goal, median(row.samples)
    sign = "≥" if goal.at_least else "≤"

    def meets(limit: float) -> bool:
        return figure >= limit if goal.at_least else figure <= limit

    verdict = "beyond" if meets(goal.beyond) else "reached" if meets(goal.reach) else "**missed**"
    return (
        row.work,
        f"{sign} {goal.reach:,g} {goal.unit}",
        f"{sign} {goal.beyond:,g}",
        shown(figure),
        f"{shown(min(row.samples))} to {shown(max(row.samples))}",
        verdict,
        row.beside,
    )


def line(row: Row) -> str:
    """Return a row as it is printed."""
    work, reach, _, figure, spread, verdict, beside = cells(row)
    return f"{work}\n    {figure} ({spread}), {reach}: {verdict}; {beside}\n"


def shown(figure: float) -> str:
    """Return a figure with three digits that say something."""
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def machine() -> str:
    """Return what was measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def write(rows: Sequence[Row]) -> None:
    """Put the rows into the document, in the place of those of the last time."""
    table = [_HEAD, ("---",) * len(_HEAD), *map(cells, rows)]
    lines = "\n".join(f"| {' | '.join(line)} |" for line in table)
    text = f"\n{datetime.now(UTC):%Y-%m-%d}, {machine()}:\n\n{lines}\n\n"
    DOCUMENT.write_text(_MEASURED.sub(lambda _: text, DOCUMENT.read_text()))
