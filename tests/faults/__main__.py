"""``make faults``: kill the service and its database, and compare the data."""

import argparse
import sys
import time

from tests.faults import campaign
from tests.faults.databases import DATABASES


def main():
    """Run the campaign that the command line describes. The exit status is 1 if there are problems."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--kills", type=int, default=200, help="on each database; default: 200")
    parser.add_argument(
        "--seed", type=int, default=1, help="another seed changes the times of the kills"
    )
    parser.add_argument(
        "--load",
        type=float,
        default=0,
        help="seconds of traffic without a kill before the first kill; default: 0",
    )
    options = parser.parse_args()
    databases = list(DATABASES) if options.database == "both" else [options.database]
    failed = False
    for database in databases:
        started = time.monotonic()
        problems, figures = campaign.run(
            database, options.kills, options.seed, _say, load=options.load, deliveries=True
        )  # fmt: skip
        _say(f"{database}, seed {options.seed}: {len(problems)} problems, {figures}, "
             f"{time.monotonic() - started:.0f} s")  # fmt: skip
        for problem in problems[:20]:
            _say(problem[:1000])
        failed = failed or bool(problems)
    sys.exit(failed)


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


main()
