"""``make histories``: record what concurrent clients see, with faults, and check every operation."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from qa.histories import report, runs
from qa.histories.checkers import check_recorded
from qa.histories.history import dump, load
from qa.histories.system import SHOPS, missing


def main() -> int:
    """Run the run that the command line describes. Return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="make histories", description=__doc__)
    parser.add_argument("--database", choices=[*SHOPS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1, help="of the operations and the faults")
    parser.add_argument("--seconds", type=float, default=60, help="of traffic; default: 60")
    parser.add_argument(
        "--plant", default="", help="start the service with planted defects, joined by +"
    )
    parser.add_argument("--no-faults", action="store_true", help="disturb no process")
    parser.add_argument("--accounts", action="store_true", help="mostly accounts and addresses")
    parser.add_argument("--html", type=Path, default=Path("history.html"), help="for a violation")
    parser.add_argument("--save", type=Path, help="write the recorded history, compressed")
    parser.add_argument("--check", type=Path, help="check a recorded history, without a run")
    options = parser.parse_args()
    if options.check:
        violations = list(check_recorded(load(options.check.read_bytes())))
        for violation in violations:
            _say(report.text(violation, options.seed))
        return int(bool(violations))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops all processes
    failed = False
    for database in SHOPS if options.database == "all" else [options.database]:
        if reason := missing(database):
            _say(f"{database}: skipped, {reason}")
            continue
        started = time.monotonic()
        result = runs.run(
            database, options.seed, options.seconds,
            plant=options.plant, faults=not options.no_faults, keep=bool(options.save),
            accounts=options.accounts, tell=_say,
        )  # fmt: skip
        if options.save:
            options.save.write_bytes(dump(result.segments))
        _say(f"{database}, seed {options.seed}, {time.monotonic() - started:.0f} s:")
        for name, value in result.figures.items():
            _say(f"    {name}: {value}")
        if result.violations:
            _say(report.text(result.violations[0], options.seed))
            for violation in result.violations[1:]:
                _say(f"and {violation.checker}: {violation.text}")
            _say(f"{len(result.violations)} violations. The first one is in {options.html}.")
            if result.kept:
                _say(f"The violations, the logs and the last segments are in {result.kept}.")
            options.html.write_text(report.html(result.violations[0], options.seed))
        elif result.not_tested and not options.plant:
            _say("NOT TESTED: " + "; ".join(result.not_tested))
        else:
            _say("no violation")
        failed = failed or bool(result.violations or result.not_tested)
    return int(failed)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


sys.exit(main())
