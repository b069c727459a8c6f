"""``make cluster`` and ``make cluster-test``: run a cluster, or the demonstrations on one."""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from qa import failed_runs
from qa.cluster import programs, report
from qa.cluster.cluster import running_cluster
from qa.cluster.demonstrations import (
    costs,
    failover,
    large_tables,
    own_writes,
    patroni,
    throughput,
    two_machines,
    upgrade,
)
from qa.cluster.patroni import running_patroni


def _own_writes(options):
    with running_cluster(logs=options.logs) as cluster:
        return own_writes.run(cluster, options.seed, options.pairs)


def _two_machines(options):
    with running_cluster(replicas=0, logs=options.logs) as cluster:
        return two_machines.run(cluster, options.seed)


def _failover(options):
    with running_cluster(logs=options.logs) as cluster:
        return failover.run(cluster, options.seed, options.order)


def _throughput(options):
    with running_cluster(logs=options.logs) as cluster:
        return throughput.run(cluster, options.seed)


def _costs(options):
    with running_cluster(replicas=0, logs=options.logs) as cluster:
        return costs.run(cluster, options.seed)


def _patroni(options):
    if reason := programs.missing("postgres", *programs.PATRONI):
        _say(f"patroni: skipped, {reason}")
        return [], {}
    with running_patroni(logs=options.logs) as cluster:
        if not cluster.network.has_namespaces:
            _say("patroni: no partitions, because network namespaces are not permitted")
        return patroni.run(cluster, options.seed, options.failures)


DEMONSTRATIONS = {
    "own_writes": _own_writes,
    "two_machines": _two_machines,
    "upgrade": lambda options: upgrade.run(options.seed, logs=options.logs),
    "failover": _failover,
    "throughput": _throughput,
    "costs": _costs,
    "patroni": _patroni,
    "large_tables": lambda options: large_tables.run(options.rows, _say, options.logs),
}
BY_DEFAULT = [name for name in DEMONSTRATIONS if name != "large_tables"]


def main():
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(prog="python -m qa.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("start", help="run a cluster until Ctrl-C")
    test = commands.add_parser("test", help="run the demonstrations")
    test.add_argument(
        "--seed", type=int, default=1, help="another seed changes the pauses and kills"
    )
    test.add_argument(
        "--order",
        type=_targets,
        default=failover.TARGETS,
        help=f"components that failover kills, separated by commas; default: {','.join(failover.TARGETS)}",
    )
    test.add_argument(
        "--failures",
        type=lambda text: text.split(","),
        default=patroni.BY_DEFAULT,
        help=f"what happens in patroni, of {','.join(patroni.TARGETS)}; "
        f"default: {','.join(patroni.BY_DEFAULT)}",
    )
    test.add_argument("--pairs", type=int, default=10_000, help="pairs of own_writes")
    test.add_argument("--rows", type=int, default=large_tables.ROWS, help="rows of large_tables")
    test.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=BY_DEFAULT,
        help=f"of {','.join(DEMONSTRATIONS)}; default: all but large_tables, which takes half an "
        "hour and 40 GB",
    )
    test.add_argument("--dry-run", action="store_true", help="do not write docs/demonstrations.md")
    options = parser.parse_args()
    if reason := programs.missing():
        sys.exit(
            f"A cluster cannot be started: {reason}. Install: apt install postgresql pgbouncer"
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A background process can inherit that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.command == "start":
        _start()
    else:
        sys.exit(_test(options))


def _targets(text):
    targets = text.split(",")
    if unknown := set(targets) - set(failover.TARGETS):
        raise argparse.ArgumentTypeError(f"{unknown.pop()} is none of {failover.TARGETS}")
    return targets


def _start():
    _say("Starting PostgreSQL with two standbys, PgBouncer, two services and a worker …")
    with running_cluster() as cluster:
        cluster.start_bouncer()
        settings = {
            "DATABASE_URL": cluster.bouncer.url("shop"),
            "DATABASE_POOLER": "transaction",
            "DATABASE_REPLICA_URLS": cluster.replica_urls(),
            "SHOP_METRICS": "1",
        }
        services = [cluster.serve(f"machine-{number}", **settings) for number in (1, 2)]
        worker = cluster.work("machine-1", **settings)
        for service in services:
            service.wait_until_ready()
        _say(f"""
primary      {cluster.primary.url()}
replicas     {cluster.replica_urls().replace(" ", f"{chr(10)}             ")}
PgBouncer    {cluster.bouncer.url("shop")}
             {cluster.bouncer.url("pgbouncer", "bouncer")}   (admin console)
services     {services[0].url}/docs
             {services[1].url}/docs
worker       process {worker.pid}
logs, data   {cluster.folder}

export KEY={cluster.key.consumer_key}:{cluster.key.consumer_secret}
curl -i -u $KEY {services[0].url}/coupons -d '{{"coupon": {{"code": "spring"}}}}'
curl -u $KEY -H 'X-Shop-Position: <of the response above>' {services[1].url}/coupons/1
curl {services[0].url}/readyz

Press Ctrl-C to stop everything and remove the data.""")
        try:
            signal.pause()
        except KeyboardInterrupt:
            _say("\nStopping …")


def _test(options):
    failed, found = False, {}
    for name in options.only:
        if name not in DEMONSTRATIONS:
            sys.exit(f"{name} is none of {', '.join(DEMONSTRATIONS)}")
        started = time.monotonic()
        _say(f"{name}, seed {options.seed} …")
        problems, figures = demonstrate(name, options)
        for problem in problems[:20]:
            _say(f"PROBLEM {str(problem)[:1000]}")
        for line in report.lines(figures):
            _say(f"    {line}")
        _say(f"{name}: {len(problems)} problems, {time.monotonic() - started:.0f} s")
        failed = failed or bool(problems)
        found[name] = figures
    if not options.dry_run and not failed:
        for name, figures in found.items():
            if figures:  # of what was not skipped
                report.write(name, figures, " ".join(["make cluster-test", *_arguments(name)]))
        _say("The figures are in docs/demonstrations.md.")
    return int(failed)


def demonstrate(name, options):
    """Run a demonstration, and return its problems and figures.

    An exception and each response with the status 500 are problems, too. The logs and the problems are
    kept as files if there are any.
    """
    with tempfile.TemporaryDirectory(prefix="shop-logs-") as folder:
        options.logs = Path(folder)
        try:
            problems, figures = DEMONSTRATIONS[name](options)
        except Exception:  # noqa: BLE001  # the others run
            problems, figures = [traceback.format_exc()], {}
        logs = sorted(options.logs.iterdir())
        problems = [*problems, *failed_runs.internal_errors(logs)]
        if problems:
            found = {"found.txt": "\n\n".join(map(str, problems)).encode()}
            kept = failed_runs.keep(f"cluster-{name}-{options.seed}", logs, found)
            _say(f"    The problems and the logs are in {kept}.")
        return problems, figures


def _arguments(name):
    """Return the arguments of this run that a demonstration reads."""
    given = sys.argv[2:]
    if name != "patroni" and "--failures" in given:
        position = given.index("--failures")
        del given[position : position + 2]
    return [f'ARGS="{" ".join(given)}"'] if given else []


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
