"""The conversions take linear time, also for input that is made to take long."""

import subprocess
import sys
from pathlib import Path

import pytest

from app import emails, numbers, text
from tests.conversions import steps

ROOT = Path(__file__).parent.parent

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
BAITS += ["9", "0", "+", "e", "-9", "9.", "a ", "é", "\u0301\u0323", "\u0f73", "-"]


@pytest.mark.parametrize(
    "function", [text.coupon_code, emails.sanitize_email, numbers.money, text.nfc]
)
@pytest.mark.parametrize("bait", BAITS)
def test_work_grows_no_faster_than_the_text(function, bait):
    small, large = (steps(function, bait * times) for times in (200, 2000))
    assert large <= 10 * small


CONVERSIONS = [
    "text.nfc",
    "text.coupon_code",
    "text.is_username",
    "numbers.integer",
    "numbers.money",
    "emails.sanitize_email",
    "emails.is_email",
    "dates.parse_date",
    "dates.parse_timestamp",
]
SCRIPT = """
import sys
from datetime import date
from app import dates, emails, numbers, text

names, baits = (argument.split("|") for argument in sys.argv[1:])
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


def test_large_inputs_finish():
    # Counting lines does not detect quadratic work inside a regular expression, which would run for
    # minutes. Use a process that can be killed. The first missing name is the function that hung.
    command = [sys.executable, "-c", SCRIPT, "|".join(CONVERSIONS), "|".join(BAITS)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
    assert printed.split() == CONVERSIONS
