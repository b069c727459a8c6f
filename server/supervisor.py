"""The program of ``serve`` after its preparations: runs gunicorn and one worker (events 2).

``serve`` starts the first worker as a copy of itself, which needs no second import of the app, and
replaces itself by this program, so that it does not keep the app in memory.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
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
        first_worker: process ID of a worker that runs already, as a child of this process.
    """

    def __init__(
        self, gunicorn: Sequence[str], worker: Sequence[str], first_worker: int | None = None
    ) -> None:
        self._commands = gunicorn, worker
        self._gunicorn: int | None = None
        self._worker = first_worker
        self._stopping = False
        self._pause = RESTART_SECONDS[0]
        self._start_at = time.monotonic()

    def run(self) -> int:
        """Return the exit status of gunicorn, once both processes have ended."""
        for number in FORWARDED:
            signal.signal(number, self._forward)
        gunicorn, _ = self._commands
        self._gunicorn = running = _start(gunicorn)
        if self._stopping:  # a signal arrived before the process existed
            _send(running, signal.SIGTERM)
        while (status := _status(running)) is None:
            if not self._stopping:
                self._keep_worker()
            time.sleep(POLL_SECONDS)
        self._gunicorn = None
        self._stopping = True
        self._stop_worker()
        return status

    def _keep_worker(self) -> None:
        """Start the worker if it does not run."""
        now = time.monotonic()
        if self._worker is not None:
            status = _status(self._worker)
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
            self._worker = _start(self._commands[1])

    def _stop_worker(self) -> None:
        if (worker := self._worker) is None:
            return
        _send(worker, signal.SIGTERM)
        last = time.monotonic() + STOP_SECONDS
        while _status(worker) is None:
            if time.monotonic() > last:
                _send(worker, signal.SIGKILL)
            time.sleep(POLL_SECONDS)

    def _forward(self, number: int, _: FrameType | None) -> None:
        """Send a signal to gunicorn. Stop the worker on TERM and INT, and replace it on HUP."""
        is_ending = number in _ENDING
        self._stopping = self._stopping or is_ending
        if self._gunicorn is not None:
            _send(self._gunicorn, signal.SIGTERM if number == signal.SIGINT else number)
        if self._worker is not None and (is_ending or number == signal.SIGHUP):
            _send(self._worker, signal.SIGTERM)


def _start(command: Sequence[str]) -> int:
    environment = os.environ | {PARENT_VARIABLE: str(os.getpid())}
    return os.posix_spawn(command[0], [*command], environment)  # returns when the program runs


def _status(child: int) -> int | None:
    """Return the exit status of a child, or None while it runs."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def main() -> None:
    """Run gunicorn and a worker beside it.

    The arguments are the process ID of the first worker and the command of gunicorn.
    """
    worker = [sys.executable, "-m", "app.main", "worker"]
    first, *gunicorn = sys.argv[1:]
    sys.exit(Supervisor(gunicorn, worker, int(first)).run())


if __name__ == "__main__":
    main()
