"""The program of ``serve`` after its preparations: runs gunicorn and one worker (events 2).

``serve`` starts gunicorn and the first worker as copies of itself, which need no further import of
the app, and replaces itself by this program, so that it does not keep the app in memory.
"""

from __future__ import annotations

import math
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

READY_VARIABLE = "SERVE_READY"
"""Environment variable with the descriptor of a pipe, to which a ready gunicorn writes."""

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

    After HUP, it starts another gunicorn, with the current code, on the same socket. Once that is
    ready, the previous one and the worker stop. If it ends before, the previous one continues.

    Args:
        gunicorn: command of gunicorn.
        worker: command of the worker.
        first_gunicorn: process ID of a gunicorn that runs already, as a child of this process.
        first_worker: the same of a worker.
        listener: descriptor of the socket on which gunicorn listens.
    """

    def __init__(
        self,
        gunicorn: Sequence[str],
        worker: Sequence[str],
        first_gunicorn: int | None = None,
        first_worker: int | None = None,
        listener: int | None = None,
    ) -> None:
        self._commands = gunicorn, worker
        # The process that serves, and during a reload its successor or predecessor.
        self._gunicorns = [first_gunicorn] if first_gunicorn else []
        self._pipe: int | None = None  # of the successor, until it is ready
        self._worker = first_worker
        self._listener = listener
        self._reloading = self._stopping = False
        self._pause = RESTART_SECONDS[0]
        self._start_at = time.monotonic()

    def run(self) -> int:
        """Return the exit status of gunicorn, once all processes have ended."""
        for number in FORWARDED:
            signal.signal(number, self._forward)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # which serve has blocked
        if not self._gunicorns:
            self._gunicorns = [_start(self._commands[0])]
        if self._stopping:  # a signal arrived before the process existed
            _send(self._gunicorns[0], signal.SIGTERM)
        while (status := _status(self._gunicorns[0])) is None:
            if self._stopping:
                self._release_address()
            else:
                self._keep_gunicorn()
                self._keep_worker()
            time.sleep(POLL_SECONDS)
        del self._gunicorns[0]
        self._stopping = True
        self._release_address()
        for other in self._gunicorns:
            _stop(other)
        if self._worker is not None:
            _stop(self._worker, STOP_SECONDS)
        return status

    def _keep_gunicorn(self) -> None:
        """Start the next gunicorn after HUP. Stop the previous one when the next is ready."""
        serving, *others = self._gunicorns
        if not others:
            if self._reloading:
                self._reloading = False
                self._start_following()
            return
        status = _status(others[0])
        if status is not None:
            self._gunicorns.pop()
        if self._pipe is None:  # the other one is the previous one
            return
        if status is not None:
            sys.stderr.write(
                f"The new gunicorn ended with status {status}. The previous one continues.\n"
            )
        elif _is_ready(self._pipe):
            self._gunicorns.reverse()
            for previous in filter(None, (serving, self._worker)):
                _send(previous, signal.SIGTERM)
        else:
            return
        os.close(self._pipe)
        self._pipe = None

    def _start_following(self) -> None:
        try:
            following, self._pipe = _start_next(self._commands[0])
        except OSError as error:  # for example while the package is upgraded
            sys.stderr.write(f"No new gunicorn can start: {error}. The previous one continues.\n")
        else:
            self._gunicorns.append(following)

    def _release_address(self) -> None:
        """Reject new connections, as gunicorn does when it stops."""
        if self._listener is not None:
            os.close(self._listener)
            self._listener = None

    def _keep_worker(self) -> None:
        """Start the worker if it does not run."""
        now = time.monotonic()
        if self._worker is not None:
            status = _status(self._worker)
            if status is None:
                return
            self._worker = None
            if status:  # after a reload, it exits without an error and is restarted immediately
                self._postpone_worker(now, f"The worker ended with status {status}")
        if now >= self._start_at:
            self._start_at = now
            try:
                self._worker = _start(self._commands[1], self._listener)
            except OSError as error:
                self._postpone_worker(now, f"The worker cannot start: {error}")

    def _postpone_worker(self, now: float, reason: str) -> None:
        shortest, longest = RESTART_SECONDS
        is_steady = now - self._start_at >= STEADY_SECONDS
        self._pause = shortest if is_steady else min(self._pause * 2, longest)
        self._start_at = now + self._pause
        sys.stderr.write(f"{reason}. Restarting it in {self._pause:g} s.\n")

    def _forward(self, number: int, _: FrameType | None) -> None:
        """Reload on HUP. Send other signals to gunicorn, and stop the worker on TERM and INT."""
        if number == signal.SIGHUP:
            self._reloading = True
            return
        is_ending = number in _ENDING
        self._stopping = self._stopping or is_ending
        for gunicorn in self._gunicorns if is_ending else self._gunicorns[:1]:
            _send(gunicorn, signal.SIGTERM if number == signal.SIGINT else number)
        if self._worker is not None and is_ending:
            _send(self._worker, signal.SIGTERM)


def _start(command: Sequence[str], closed: int | None = None, /, **variables: str) -> int:
    """Start a program without a descriptor of this process. Return its process ID when it runs."""
    environment = os.environ | {PARENT_VARIABLE: str(os.getpid())} | variables
    actions = [] if closed is None else [(os.POSIX_SPAWN_CLOSE, closed)]
    return os.posix_spawn(command[0], [*command], environment, file_actions=actions)


def _start_next(command: Sequence[str]) -> tuple[int, int]:
    """Start a gunicorn. Return its process ID, and the pipe to which it writes when it is ready."""
    pipe, end = os.pipe()
    os.set_blocking(pipe, False)
    os.set_inheritable(end, True)
    try:
        return _start(command, **{READY_VARIABLE: str(end)}), pipe
    except OSError:
        os.close(pipe)
        raise
    finally:
        os.close(end)


def _is_ready(pipe: int) -> bool:
    with suppress(BlockingIOError):
        return bool(os.read(pipe, 1))
    return False


def _stop(child: int, seconds: float = math.inf) -> None:
    """Stop a child, and kill it if it takes longer."""
    _send(child, signal.SIGTERM)
    last = time.monotonic() + seconds
    while _status(child) is None:
        if time.monotonic() > last:
            _send(child, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def _status(child: int) -> int | None:
    """Return the exit status of a child, or None while it runs."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def main() -> None:
    """Run gunicorn and a worker beside it.

    The arguments are the process IDs of the first gunicorn (0 if none runs) and of the first
    worker, the descriptor of the socket, and the command of gunicorn.
    """
    worker = [sys.executable, "-m", "app.main", "worker"]
    first_gunicorn, first_worker, listener = map(int, sys.argv[1:4])
    sys.exit(Supervisor(sys.argv[4:], worker, first_gunicorn, first_worker, listener).run())


if __name__ == "__main__":
    main()
