"""The figures of the demonstrations in docs/demonstrations.md, with the command and the machine."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from qa.cluster.programs import version
from tests.serving import ROOT

DOCUMENT = ROOT / "docs" / "demonstrations.md"


def lines(figures):
    """Return the figures as lines of text, those of a nested table below its name."""
    found = []
    for name, value in figures.items():
        if isinstance(value, dict):
            found += [f"{name}:", *(f"  {line}" for line in lines(value))]
        else:
            found.append(
                f"{name}: {value:,}" if isinstance(value, int | float) else f"{name}: {value}"
            )
    return found


def machine():
    """Return a description of this machine and its programs."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores shared with other "
        f"processes (load {os.getloadavg()[1]:.0f}), Python {platform.python_version()}, "
        f"{version('postgres')}, {version('pgbouncer')}"
    )


def table(figures):
    """Return the figures as a Markdown table. Nested tables are its columns."""
    columns = [name for name, value in figures.items() if isinstance(value, dict)]
    if not columns:
        rows = [
            ("Figure", "Measured"),
            ("---", "---"),
            *((k, _shown(v)) for k, v in figures.items()),
        ]
    else:
        names = list(dict.fromkeys(name for column in columns for name in figures[column]))
        rows = [("Figure", *map(_heading, columns)), ("---",) * (len(columns) + 1)]
        rows += [
            (name, *(_shown(figures[column].get(name, "")) for column in columns)) for name in names
        ]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def write(name, figures, command):
    """Replace the figures of a demonstration in the document."""
    text = DOCUMENT.read_text()
    start, end = f"<!-- cluster-test {name} -->", f"<!-- end {name} -->"
    assert start in text, f"{DOCUMENT.name} has no place for {name}"
    assert end in text, f"{DOCUMENT.name} has no place for {name}"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    body = f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}:\n\n{table(figures)}"
    DOCUMENT.write_text(f"{before}{start}\n\n{body}\n\n{end}{after}")


def _heading(column):
    return f"{column:,} rows" if isinstance(column, int) else column


def _shown(value):
    return f"{value:,}" if isinstance(value, int | float) else str(value)
