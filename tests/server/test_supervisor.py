"""``serve`` stops all processes that it has started (events 2)."""

import signal
import sys

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
