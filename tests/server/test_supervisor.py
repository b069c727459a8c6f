"""``serve`` stops all processes that it has started (events 2)."""

import os
import signal
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from server.supervisor import FORWARDED, Supervisor

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def supervisor():
    """A supervisor of two programs that do not end on their own."""
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
    yield Supervisor(SLEEP, SLEEP)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_stop_before_gunicorn_runs_is_not_lost(supervisor):
    supervisor._forward(signal.SIGTERM, None)  # as the signal does while gunicorn is started
    assert supervisor.run() == -signal.SIGTERM


@pytest.fixture
def reloaded(supervisor, monkeypatch):
    """Return a function: reload, stop when a condition is met, and return the processes before.

    ``code`` is run by the second gunicorn.
    """

    def run(code, is_done):
        program = f"import os, sys, time\nif 'SERVE_READY' in os.environ: {code}\ntime.sleep(60)"
        supervisor._commands = [*SLEEP[:2], program], SLEEP
        others = psutil.Process().children()  # of other tests
        before = []

        def sleep(_):
            time.sleep(0.02)
            if not before:
                before.extend([*supervisor._gunicorns, supervisor._worker])
                os.kill(os.getpid(), signal.SIGHUP)
            elif not supervisor._stopping and is_done(*before):
                os.kill(os.getpid(), signal.SIGTERM)

        clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
        monkeypatch.setattr("server.supervisor.time", clock)
        assert supervisor.run() == -signal.SIGTERM
        assert psutil.Process().children() == others
        return before

    return run


def test_a_reload_replaces_gunicorn_and_the_worker(supervisor, reloaded):
    def is_replaced(gunicorn, worker):
        others = supervisor._gunicorns
        return (
            len(others) == 1 and others != [gunicorn] and supervisor._worker not in {None, worker}
        )

    reloaded("os.write(int(os.environ['SERVE_READY']), b'1')", is_replaced)


def test_a_reload_that_fails_replaces_nothing(supervisor, reloaded, capfd):
    said = []

    def has_failed(gunicorn, worker):
        assert (supervisor._gunicorns[0], supervisor._worker) == (gunicorn, worker)
        said.append(capfd.readouterr().err)
        return "continues" in said[-1]

    reloaded("sys.exit(7)", has_failed)
    assert said[-1] == "The new gunicorn ended with status 7. The previous one continues.\n"


def test_a_stop_during_a_reload_stops_both(supervisor, reloaded):
    reloaded("pass", lambda *_: len(supervisor._gunicorns) == 2)


def test_programs_that_cannot_be_started_do_not_end_it(supervisor, capfd):
    """For example on HUP while the environment of Python is replaced."""
    supervisor._commands = ["/no/such/gunicorn"], ["/no/such/python"]
    supervisor._gunicorns, supervisor._reloading = [os.getpid()], True
    before = psutil.Process().num_fds()
    supervisor._keep_gunicorn()
    supervisor._keep_worker()
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("No new gunicorn can start: [Errno 2] No such file")
    assert first.endswith("The previous one continues.")
    assert second.startswith("The worker cannot start: [Errno 2] No such file")
    assert second.endswith("Restarting it in 1 s.")
    assert (supervisor._gunicorns, supervisor._worker) == ([os.getpid()], None)
    assert psutil.Process().num_fds() == before
