"""The program of ``serve`` after its preparations: runs gunicorn and one worker (events 2).

``serve`` replaces itself by this program, so that the process does not keep the app, of which it
has no use any more, in 90 MB of memory.
"""

from __future__ import annotations

import os
import signal
import subprocess  # nosec B404  # only our own programs are started
import sys
import time
from collections.abc import Sequence
from types import FrameType

POLL_SECONDS = 0.2

STOP_SECONDS = 20
"""Time for the worker to finish the deliveries in flight, which take up to 15 seconds."""

RESTART_SECONDS = 0.5, 30.0
"""Shortest and longest wait before a worker that died is restarted. The wait doubles each time."""

STEADY_SECONDS = 10.0
"""A worker that ran this long is restarted without a longer wait."""

PARENT_VARIABLE = "SERVE_PID"
"""Environment variable with the ID of this process: gunicorn and the worker stop when it ends.

They cannot ask for their parent themselves, because it may have ended before they are able to.
"""

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR1,
)
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}


class Supervisor:
    """Runs gunicorn until it ends, and a worker that is restarted when it dies.

    Args:
        gunicorn: command of gunicorn.
        worker: command of the worker.
    """

    def __init__(self, gunicorn: Sequence[str], worker: Sequence[str]) -> None:
        self._commands = gunicorn, worker
        self._gunicorn: subprocess.Popen[bytes] | None = None
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._pause = RESTART_SECONDS[0]
        self._start_at = 0.0

    def run(self) -> int:
        """Return the exit status of gunicorn, once both processes have ended."""
        for number in FORWARDED:
            signal.signal(number, self._forward)
        gunicorn, _ = self._commands
        self._gunicorn = self._start(gunicorn)
        if self._stopping:  # a signal arrived before the process existed
            self._gunicorn.terminate()
        while (status := self._gunicorn.poll()) is None:
            if not self._stopping:
                self._keep_worker()
            time.sleep(POLL_SECONDS)
        self._stopping = True
        self._stop_worker()
        return status

    def _keep_worker(self) -> None:
        """Start the worker if it does not run."""
        now = time.monotonic()
        if self._worker is not None:
            status = self._worker.poll()
            if status is None:
                return
            self._worker = None
            if status:  # after a reload, it exits without an error and is restarted immediately
                shortest, longest = RESTART_SECONDS
                is_steady = now - self._start_at >= STEADY_SECONDS
                self._pause = shortest if is_steady else min(self._pause * 2, longest)
                self._start_at = now + self._pause
                sys.stderr.write(
                    f"The worker ended with status {status}. Restarting it in {self._pause:g} s.\n"
                )
        if now >= self._start_at:
            self._start_at = now
            self._worker = self._start(self._commands[1])

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = os.environ | {PARENT_VARIABLE: str(os.getpid())}
        return subprocess.Popen(command, env=environment)  # noqa: S603  # nosec B603  # our own

    def _stop_worker(self) -> None:
        if self._worker is None:
            return
        self._worker.terminate()
        try:
            self._worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()

    def _forward(self, number: int, _: FrameType | None) -> None:
        """Send a signal to gunicorn. Stop the worker on TERM and INT, and replace it on HUP."""
        is_ending = number in _ENDING
        self._stopping = self._stopping or is_ending
        if self._gunicorn is not None:
            self._gunicorn.send_signal(signal.SIGTERM if number == signal.SIGINT else number)
        if self._worker is not None and (is_ending or number == signal.SIGHUP):
            self._worker.terminate()


def main() -> None:
    """Run the command of gunicorn that is given as arguments, and a worker beside it."""
    worker = [sys.executable, "-m", "app.main", "worker"]
    sys.exit(Supervisor(sys.argv[1:], worker).run())


if __name__ == "__main__":
    main()
