"""Selection of the cases of a run (CONTRIBUTING.md, Tests)."""

import gc
from collections import Counter
from types import SimpleNamespace

import pytest

DESELECTED = pytest.StashKey[Counter]()
POOLED = "pgbouncer"
"""The database behind PgBouncer, among the parameters of ``database_url``, and its user."""
IS_COUNTED = pytest.StashKey[bool]()

SLOW = "slow cases"
OTHER_DATABASE = "PostgreSQL cases that also run on SQLite"
WITH_POOLER = "PgBouncer cases that also run without it"


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


def is_worker(config):
    """Whether this process runs a part of the cases for xdist."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector: nothing becomes garbage, and it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # the database is first in the ID of a case
def pytest_generate_tests(metafunc):
    """Run a test that uses a database on each one, unless it names its databases itself."""
    markers = list(metafunc.definition.iter_markers())
    if "database_url" not in metafunc.fixturenames or _names_its_databases(markers):
        return
    engines = ["sqlite", "postgresql"]
    if metafunc.config.getoption("pooler"):
        engines = [POOLED]
    elif any(mark.name == "pooler" for mark in markers):
        engines.append(POOLED)
    metafunc.parametrize("database_url", engines, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)  # after pytest has grouped the cases of a database
def pytest_collection_modifyitems(config, items):
    """Select the cases that the options ask for."""
    if config.getoption("pooler"):
        items[:] = [item for item in items if _is_pooled(item)]
        return
    if config.getoption("all"):
        return
    reasons = {item: _reason_to_deselect(item) for item in items}
    if config.getoption("rest") or config.getoption("list_rest"):
        deselected = [item for item in items if not reasons[item]]
    else:
        deselected = [item for item in items if reasons[item]]
        config.stash[DESELECTED] = Counter(filter(None, reasons.values()))
    if not deselected:
        return
    gone = set(deselected)
    items[:] = [item for item in items if item not in gone]
    if is_worker(config):
        config.workeroutput["deselected"] = len(deselected), dict(config.stash[DESELECTED])
    else:
        config.hook.pytest_deselected(items=deselected)


def _reason_to_deselect(item):
    """Return why a default run deselects a case, or None."""
    if item.get_closest_marker("slow"):
        return SLOW
    # A test that names its databases itself runs on all of them.
    if not _has_parameters(item) or _names_its_databases(item.iter_markers()):
        return None
    database = item.callspec.params.get("database_url")
    if database == POOLED:
        return WITH_POOLER
    if database == "postgresql" and item.get_closest_marker("one_database"):
        return OTHER_DATABASE
    return None


def _has_parameters(item):
    return hasattr(item, "callspec")


def _names_its_databases(markers):
    return any(mark.name == "parametrize" and "database_url" in mark.args[0] for mark in markers)


def _is_pooled(item):
    return _has_parameters(item) and item.callspec.params.get("database_url") == POOLED


def pytest_report_collectionfinish(config, items):
    """List what a default run deselects, by reason and file, or by test with ``-v``."""
    if not config.getoption("list_rest"):
        return []
    names = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if config.get_verbosity() < 1:
            name = name.partition("::")[0]
        names.setdefault(_reason_to_deselect(item), Counter())[name] += 1
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


def pytest_terminal_summary(terminalreporter, config):
    for reason, number in config.stash[DESELECTED].items():
        terminalreporter.write_line(f"Deselected, run by `make test-all`: {number} {reason}")
