"""Which cases each run has, and what it says about the others."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = """
import pytest
from hypothesis import given
from hypothesis.strategies import integers

@pytest.fixture
def database_url(request):
    return request.param

def test_plain(database_url):
    pass

@pytest.mark.both_databases
def test_both(database_url):
    pass

@pytest.mark.pooler
def test_pooled(database_url):
    pass

@pytest.mark.slow
def test_slow(database_url):
    pass

@pytest.mark.parametrize("value", [1, pytest.param(2, marks=pytest.mark.both_databases)])
def test_values(database_url, value):
    pass

@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_named(database_url):
    pass

@pytest.mark.one_database
class TestOne:
    def test_once(self, database_url):
        pass

    @pytest.mark.both_databases
    def test_twice(self, database_url):
        pass

@pytest.mark.both_databases
@pytest.mark.sample(1)
@pytest.mark.parametrize("value", [pytest.param(0, marks=pytest.mark.slow), 1, 2])
def test_sampled(database_url, value):
    pass

@given(integers())
def test_random(value):
    pass

def test_without_database():
    pass
"""
QUICK = {
    "plain[sqlite]",
    "both[sqlite]", "both[postgresql]",
    "pooled[sqlite]", "pooled[postgresql]",
    "values[sqlite-1]", "values[sqlite-2]", "values[postgresql-2]",
    "named[sqlite]", "named[postgresql]",
    "once[sqlite]", "twice[sqlite]", "twice[postgresql]",
    "sampled[sqlite-1]", "sampled[postgresql-1]",
    "random", "without_database",
}  # fmt: skip
REST = {
    "plain[postgresql]", "pooled[pgbouncer]", "slow[sqlite]", "slow[postgresql]",
    "values[postgresql-1]", "random",
    "sampled[sqlite-0]", "sampled[postgresql-0]", "sampled[sqlite-2]", "sampled[postgresql-2]",
}  # fmt: skip
NOT_RUN = (
    "Not run: 1 copies behind PgBouncer of cases that ran without it, 2 copies on PostgreSQL of "
    "cases that ran on SQLite, 2 further cases of tests of which a sample ran, 4 slow cases. `make test-rest` runs them."
)


ON_A_DATABASE = """
import pytest
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"])

def test_j(database_url):
    pass

@pytest.mark.slow
def test_k(database_url):
    pass
"""
MARKERS = "[pytest]\nmarkers =\n  slow\n  sample\n  pooler\n  one_database\n  both_databases"
PLUGINS = "-p", "tests.selection", "-p", "no:cacheprovider", "-p", "no:xdist"


@pytest.fixture
def run_cases(pytester):
    """Return a function: run the cases above with options; return their names and the last line."""
    pytester.makeini(MARKERS)
    pytester.makepyfile(CASES)

    def run(*options):
        result = pytester.inline_run("-v", *PLUGINS, *options)
        assert result.ret == 0
        return {
            report.nodeid.partition("::test_")[2]
            for report in result.getreports("pytest_runtest_logreport")
        }

    return run


@pytest.mark.parametrize(
    ("options", "cases"), [((), QUICK), (("--rest",), REST), (("--all",), QUICK | REST)]
)
def test_cases_of_each_run(run_cases, options, cases):
    assert run_cases(*options) == cases


@pytest.mark.parametrize(
    ("processes", "order"), [("1", "abghcdeifkj"), ("2", "abghcdefikj"), ("3", "ghabcidefkj")]
)
def test_files_of_slow_cases_without_a_database_are_spread_among_the_others(
    pytester, monkeypatch, processes, order
):
    """Their processes wait for servers, so the others have the CPUs meanwhile, and at the end.

    Of those on a database, each process runs the slow ones first.
    """
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", processes)
    pytester.makeini(MARKERS)
    slow = "import pytest\npytestmark = pytest.mark.slow\n"
    for file, mark, names in (("a", "", "abcdef"), ("b", slow, "gh"), ("c", slow, "i")):
        cases = "".join(f"def test_{name}(): pass\n" for name in names)
        pytester.makepyfile(**{f"test_{file}": mark + cases})
    pytester.makepyfile(test_d=ON_A_DATABASE)
    reports = pytester.inline_run("--all", *PLUGINS).getreports("pytest_runtest_logreport")
    called = [report.nodeid.partition("::test_")[2] for report in reports if report.when == "call"]
    assert "".join(name[0] for name in called) == order


def test_last_line_says_what_did_not_run(run_cases, capsys):
    run_cases()
    assert capsys.readouterr().out.splitlines()[-1] == NOT_RUN
    run_cases("--all")
    assert " passed in " in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_list_has_the_number_and_the_reason_of_each_file():
    files = "tests/project/test_selection.py", "tests/project/test_deploy.py"
    command = [sys.executable, "-m", "pytest", "--list-rest", "--no-header", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, *files], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[lines.index("slow cases: 1") + 1].split() == ["1", files[0]]
    copies = "copies on PostgreSQL of cases that ran on SQLite: "
    (other,) = (each for each in lines if each.startswith(copies))
    assert lines[lines.index(other) + 1].split() == [other.removeprefix(copies), files[1]]
