"""Selection of the cases of a run (CONTRIBUTING.md, Tests)."""

import gc
import os
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import settings

DESELECTED = pytest.StashKey[Counter]()
POOLED = "pgbouncer"
"""The database behind PgBouncer, among the parameters of ``database_url``, and its user."""
REASONS = pytest.StashKey[dict]()
IS_COUNTED = pytest.StashKey[bool]()
ON_BOTH = {"both_databases", "pooler"}
"""Markers of tests that a default run also runs on PostgreSQL."""

FEW_EXAMPLES = 20
"""Number of random examples that a default run tries; another run tries 100."""

SLOW = "slow cases"
FURTHER = "further cases of tests of which a sample ran"
MORE_EXAMPLES = "tests with more random examples"
OTHER_DATABASE = "copies on PostgreSQL of cases that ran on SQLite"
WITH_POOLER = "copies behind PgBouncer of cases that ran without it"


def pytest_addoption(parser):
    group = parser.getgroup("shop", "selection of cases (CONTRIBUTING.md, Tests)")
    group.addoption("--all", action="store_true", help="run every case, on both databases")
    group.addoption("--rest", action="store_true", help="run only what a default run deselects")
    group.addoption(
        "--list-rest",
        action="store_true",
        help="run nothing; list what a default run deselects, and why; -v lists each test",
    )
    group.addoption("--pooler", action="store_true", help="run every test through PgBouncer only")


def pytest_configure(config):
    config.stash[DESELECTED] = Counter()
    if not config.getoption("--hypothesis-profile"):
        # The same examples in every run, and no limit for the time of an example: how long the
        # machine takes is no finding. `--hypothesis-profile=default` tries other examples.
        few = settings(settings.get_profile("ci"), max_examples=FEW_EXAMPLES)
        settings.register_profile("few", few)
        settings.load_profile("ci" if _needs_every_copy(config) else "few")


def is_worker(config):
    """Whether this process runs a part of the cases for xdist."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector: nothing becomes garbage, and it takes a fifth of the time.

    What was collected stays until the end. Afterwards the collector does not examine it again and again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 100)  # a full collection takes a third of a second
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # the database is first in the ID of a case
def pytest_generate_tests(metafunc):
    """Run a test that uses a database on each one, unless it names its databases itself."""
    markers = list(metafunc.definition.iter_markers())
    if "database_url" not in metafunc.fixturenames or _names_its_databases(markers):
        return
    engines = _engines(markers)
    if metafunc.config.getoption("pooler"):
        engines = [POOLED]
    elif not _needs_every_copy(metafunc.config):
        engines = engines[: 2 if _may_run_on_both(markers) else 1]
    metafunc.parametrize("database_url", engines, indirect=True, scope="session")


def _engines(markers):
    """Return the engines of a test in a run of all cases."""
    names = {mark.name for mark in markers}
    if "one_database" in names and not _may_run_on_both(markers):
        return ["sqlite"]
    return ["sqlite", "postgresql", *([POOLED] if "pooler" in names else [])]


def _needs_every_copy(config):
    return any(config.getoption(name) for name in ("all", "rest", "list_rest"))


def _may_run_on_both(markers):
    """Whether a default run has a case of this test on PostgreSQL."""
    names = {mark.name for mark in markers}
    for mark in markers:
        if mark.name == "parametrize" and isinstance(mark.args[1], list):
            names |= {each.name for value in mark.args[1] for each in getattr(value, "marks", ())}
    return bool(names & ON_BOTH)


@pytest.hookimpl(trylast=True)  # after pytest has grouped the cases of a database
def pytest_collection_modifyitems(config, items):
    """Select the cases that the options ask for."""
    if config.getoption("pooler"):
        items[:] = [item for item in items if _is_pooled(item)]
        return
    if config.getoption("all"):
        items[:] = _spread(items)
        return
    reasons = config.stash[REASONS] = _reasons_to_deselect(items)
    if config.getoption("rest") or config.getoption("list_rest"):
        deselected = [item for item in items if not reasons[item] and not _is_random(item)]
    else:
        deselected = [item for item in items if reasons[item]]
        config.stash[DESELECTED] = Counter(filter(None, reasons.values())) + _missing_copies(items)
    if is_worker(config):
        config.workeroutput["deselected"] = len(deselected), dict(config.stash[DESELECTED])
    elif deselected:
        config.hook.pytest_deselected(items=deselected)
    gone = set(deselected)
    items[:] = _spread([item for item in items if item not in gone])


def _spread(items):
    """Spread slow cases without a database evenly among the others, each file as a whole.

    They start servers and browsers and wait for them. At the end of a run, where pytest puts them,
    all processes would wait at the same time, and the last long ones would run alone. Each process
    begins with an equal part of the cases, the files with most cases first, and has no such file in the
    last third of its part. There, the slow cases on a database come before its others, so that no long
    case is the last one.
    """
    files, others = {}, []
    for item in items:
        waits = _database(item) is None and item.get_closest_marker("slow")
        (files.setdefault(item.path, []) if waits else others).append(item)
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    spread = []
    for number in range(processes):
        own = sorted(files.values(), key=len, reverse=True)[number::processes]
        until = len(items) * (number + 1) // processes - len(spread) - sum(map(len, own))
        part, others = _slow_first(others[: max(0, until)]), others[max(0, until) :]
        position = 0
        for place, cases in enumerate(own, 1):
            end = 2 * len(part) * place // (3 * len(own))
            spread += [*part[position:end], *cases]
            position = end
        spread += part[position:]
    return spread + others


def _slow_first(items):
    """Let the slow cases on each database be the first on it: the last ones should not run alone."""
    databases = list(dict.fromkeys(map(_database, items)))
    return sorted(
        items,
        key=lambda item: (databases.index(_database(item)), not item.get_closest_marker("slow")),
    )


def _missing_copies(items):
    """Count the cases that a default run did not even collect, by reason."""
    missing = Counter()
    for item in items:
        markers = list(item.iter_markers())
        if _database(item) == "sqlite" and not _names_its_databases(markers):
            copies = _engines(markers)[2 if _may_run_on_both(markers) else 1 :]
            missing.update(_reason(markers, database) for database in copies)
    return missing


def _is_random(item):
    """Whether a test generates its examples. A default run tries a few, the other run many."""
    return item.get_closest_marker("hypothesis") is not None


def _reasons_to_deselect(items):
    """Return why a default run deselects each case, or None.

    Of a test with the marker ``sample(n)``, it runs the first n cases on each database.
    """
    reasons = {item: _reason(list(item.iter_markers()), _database(item)) for item in items}
    sampled = Counter()
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark is None or reasons[item]:
            continue
        test = item.nodeid.partition("[")[0], _database(item)
        sampled[test] += 1
        if sampled[test] > mark.args[0]:
            reasons[item] = FURTHER
    return reasons


def _reason(markers, database):
    names = {mark.name for mark in markers}
    if "slow" in names:
        return SLOW
    # A test that names its databases itself runs on all of them.
    if _names_its_databases(markers):
        return None
    if database == POOLED:
        return WITH_POOLER
    if database == "postgresql" and not names & ON_BOTH:
        return OTHER_DATABASE
    return None


def _database(item):
    return item.callspec.params.get("database_url") if _has_parameters(item) else None


def _has_parameters(item):
    return hasattr(item, "callspec")


def _names_its_databases(markers):
    return any(mark.name == "parametrize" and "database_url" in mark.args[0] for mark in markers)


def _is_pooled(item):
    return _database(item) == POOLED


def pytest_report_collectionfinish(config, items):
    """List what a default run deselects, by reason and file, or by test with ``-v``."""
    if not config.getoption("list_rest"):
        return []
    names, reasons = {}, config.stash[REASONS]
    for item in items:
        name = item.nodeid.partition("[")[0]
        if config.get_verbosity() < 1:
            name = name.partition("::")[0]
        names.setdefault(reasons[item] or MORE_EXAMPLES, Counter())[name] += 1
    lines = []
    for reason, numbers in names.items():
        lines += ["", f"{reason}: {numbers.total()}"]
        lines += [f"{number:6} {name}" for name, number in sorted(numbers.items())]
    return lines


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Run nothing if the cases are only listed."""
    return True if session.config.getoption("list_rest") else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Count what an xdist worker deselected. All workers deselect the same."""
    config = node.config
    if not config.stash.get(IS_COUNTED, False) and "deselected" in getattr(
        node, "workeroutput", ()
    ):
        config.stash[IS_COUNTED] = True
        number, reasons = node.workeroutput["deselected"]
        config.stash[DESELECTED] = Counter(reasons)
        config.hook.pytest_deselected(items=[SimpleNamespace()] * number)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after the line with the numbers of results
def pytest_sessionfinish(session):
    """Say in the last line what a default run did not run, and which command does."""
    result = yield
    reasons = session.config.stash[DESELECTED]
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and reasons:
        parts = [f"{number} {reason}" for reason, number in sorted(reasons.items())]
        terminal.write_line(f"Not run: {', '.join(parts)}. `make test-rest` runs them.")
    return result
