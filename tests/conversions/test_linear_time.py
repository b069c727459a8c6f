"""The conversions take linear time, even for malicious input."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.conversions import emails, numbers, text
from tests.conversions.inputs import steps

ROOT = Path(__file__).parents[2]

BAITS = [
    "<",
    "<a",
    "<!--",
    "</",
    "<a<b>",
    ">",
    "<>",
    "&",
    "&#",
    "&lt",
    " ",
    "\t\x01",
    "a@",
    "@",
    ".",
]
BAITS += [
    "&amp;",
    "amp;",
    "&l",
    "t;b>",
    "&am<b>p;",
    "9",
    "0",
    "+",
    "e",
    "-9",
    "9.",
    "a ",
    "é",
    "\u0301\u0323",
    "\u0f73",
    "-",
]


@pytest.mark.parametrize(
    "function", [text.coupon_code, text.clean, emails.sanitize_email, numbers.money, text.nfc]
)
@pytest.mark.parametrize("bait", BAITS)
def test_work_grows_no_faster_than_the_text(function, bait):
    small, large = (steps(function, bait * times) for times in (200, 2000))
    assert large <= 10 * small


CONVERSIONS = [
    "text.nfc",
    "text.coupon_code",
    "text.clean",
    "text.searchable",
    "emails.comparable_email",
    "text.is_username",
    "numbers.integer",
    "numbers.money",
    "emails.sanitize_email",
    "emails.is_email",
    "dates.parse_date",
    "dates.parse_timestamp",
]
CPU_SECONDS = 60  # for what takes two
SCRIPT = """
import resource
import sys
from datetime import date
from app.conversions import dates
from app.conversions import emails
from app.conversions import numbers
from app.conversions import text

limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
names, baits = (argument.split("|") for argument in sys.argv[1:3])
for name in names:
    module, function = name.split(".")
    more = [date(2026, 11, 20)] if function == "parse_date" else []
    for bait in baits:
        try:
            getattr(globals()[module], function)(bait * (100_000 // len(bait)) + "x", *more)
        except ValueError:
            pass
    print(name, flush=True)
"""


@pytest.mark.slow
def test_large_inputs_finish():
    # Counting lines does not detect quadratic work inside a regular expression, which would run for
    # minutes. Use a process that is killed then. The first missing name is the function that hung.
    command = [sys.executable, "-c", SCRIPT, "|".join(CONVERSIONS), "|".join(BAITS)]
    command.append(str(CPU_SECONDS))
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout.split() == CONVERSIONS
    assert done.returncode == 0
