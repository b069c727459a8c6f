"""A failed run of ``make histories`` or ``make cluster-test`` keeps what is known about its failure."""

import json
from argparse import Namespace

import pytest

from qa import failed_runs
from qa.cluster import __main__ as cluster_command
from qa.histories import runs, system
from qa.histories.checkers import errors
from qa.histories.history import Segment, load

TRACEBACK = "Traceback (most recent call last):\nValueError: too large"


def line(message, **more):
    return json.dumps({"message": message, **more}, separators=(",", ":")) + "\n"


LOG = (
    line("request", status=200)
    + line("shop_api_unavailable", exception="OperationalError", level="error")
    + line("request", path="/orders?q=shop_api_internal_error")
    + line("shop_api_internal_error", exception=TRACEBACK, level="error")
    + line("Error handling request", exception=TRACEBACK, level="error")
    + '{"message":"shop_api_internal_error"'  # killed while it wrote
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def kept():
    (folder,) = failed_runs.FOLDER.iterdir()
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_internal_errors_are_read_from_logs(tmp_path):
    log = tmp_path / "service-0.log"
    log.write_text(LOG)
    assert (
        failed_runs.internal_errors([log, tmp_path / "missing.log"])
        == [f"service-0.log: {TRACEBACK}"] * 2
    )


def test_a_list_that_a_lost_database_aborts_is_no_internal_error(tmp_path):
    log = tmp_path / "service-0.log"
    text = (
        'responses.py", line 178, in _with_rest\nsqlalchemy.exc.OperationalError: connection lost'
    )
    log.write_text(json.dumps({"message": "Error handling request", "exception": text}))
    assert failed_runs.internal_errors([log]) == []


class Broken(system.Shop):
    """A shop whose database does not start."""

    def start_database(self):
        (self.folder / "service-0.log").write_text("no space")
        raise OSError("no space left")


def test_histories_keep_the_files_of_a_run_that_ends_by_an_exception(monkeypatch):
    monkeypatch.setitem(system.SHOPS, "broken", Broken)
    told = []
    with pytest.raises(OSError, match="no space left"):
        runs.run("broken", 7, 1.0, tell=told.append)
    (folder,) = failed_runs.FOLDER.iterdir()
    assert folder.name.startswith("histories-broken-7-")
    assert told == [f"The run has failed. Its files are in {folder}."]
    files = kept()
    assert set(files) == {"found.txt", "history.json.gz", "service-0.log"}
    assert b"OSError: no space left" in files["found.txt"]
    assert load(files["history.json.gz"]) == []
    assert files["service-0.log"] == b"no space"


def test_histories_end_with_violations_of_what_only_the_logs_show():
    shop = Broken(7)
    try:
        (shop.folder / "worker.log").write_text(LOG)
        result = runs.Result(segments=[Segment(3, 0.0, 0.0)])
        runs.conclude(shop, result, "broken", 7)
        assert [violation.checker for violation in result.violations] == [errors.NAME] * 2
    finally:
        shop.close()
    files = kept()
    assert TRACEBACK.encode() in files["found.txt"]
    assert [segment.number for segment in load(files["history.json.gz"])] == [3]
    assert files["worker.log"].decode() == LOG


def test_histories_keep_nothing_of_a_run_without_violations():
    shop = Broken(7)
    try:
        runs.conclude(shop, runs.Result(), "broken", 7)
    finally:
        shop.close()
    assert not failed_runs.FOLDER.exists()


def logged(options):
    (options.logs / "machine-1.log").write_text(LOG)
    return [], {"requests": 3}


def fails(_options):
    raise AssertionError("not within 60 seconds")


@pytest.mark.parametrize(("run", "problem"), [(logged, TRACEBACK), (fails, "not within 60 sec")])
def test_demonstrations_fail_and_keep_their_logs(run, problem, monkeypatch):
    monkeypatch.setitem(cluster_command.DEMONSTRATIONS, "new", run)
    problems, _ = cluster_command.demonstrate("new", Namespace(seed=3))
    assert problem in problems[0]
    assert problem.encode() in kept()["found.txt"]
    assert ("machine-1.log" in kept()) == (run is logged)


def test_demonstrations_without_problems_keep_nothing(monkeypatch):
    monkeypatch.setitem(cluster_command.DEMONSTRATIONS, "new", lambda _: ([], {"requests": 3}))
    assert cluster_command.demonstrate("new", Namespace(seed=3)) == ([], {"requests": 3})
    assert not failed_runs.FOLDER.exists()
