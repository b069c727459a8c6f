"""The list of the cases that a default run deselects."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_list_has_the_number_and_the_reason_of_each_file():
    files = "tests/project/test_selection.py", "tests/project/test_deploy.py"
    command = [sys.executable, "-m", "pytest", "--list-rest", "--no-header", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *files], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    position = lines.index("slow cases: 1")
    slow, blank, other, number = lines[position + 1 : position + 5]
    assert (slow.split(), blank) == (["1", files[0]], "")
    assert re.fullmatch(r"PostgreSQL cases that also run on SQLite: \d+", other)
    assert number.split() == [other.split()[-1], files[1]]
