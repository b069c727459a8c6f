"""Processes of the service that are forks of one process, which has loaded an app before.

A run with a planted defect ends after seconds and starts five processes, whose imports would take
most of its CPU time. A run without a planted defect starts the service as users do.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from gunicorn.app.wsgiapp import WSGIApplication

from app import create_app
from app.main import main as shop_api
from tests.serving import ROOT, SECRET, Gunicorn

PR_SET_PDEATHSIG = 1
"""The option of prctl(2) for a signal that a process gets when its parent ends."""


class Fork(psutil.Process):
    """A fork, with the methods of ``subprocess.Popen`` that a shop uses."""

    def poll(self) -> int | None:
        """Return None as long as it runs."""
        return None if self.is_running() else 0


class ForkedGunicorn(Gunicorn):
    """A gunicorn that is a fork."""

    def start(self, folder: Path = ROOT, wsgi: str = "wsgi:app", **env: str) -> Any:
        """Start it; return its main process without waiting."""
        self.process: Any = start(["gunicorn", wsgi], self.log, self._env | env)
        return self.process


def start(arguments: list[str], log: Path, env: Mapping[str, str]) -> Fork:
    """Fork a process of gunicorn, or of another command of ``shop-api``.

    Args:
        arguments: gunicorn with the app, or shop-api with a command.
        log: the file that it writes to.
        env: environment variables in addition to those of this process.
    """
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps([arguments, str(log), {**os.environ, **env}]) + "\n")
    server.stdin.flush()
    return Fork(int(server.stdout.readline()))


@cache
def _server() -> subprocess.Popen[str]:
    """Start the process that forks, which ends with this process."""
    server = subprocess.Popen(
        [sys.executable, "-m", "qa.histories.forks"],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)  # closes its input
    return server


def _serve() -> None:
    """Fork a process for each line of the input. The forks end with this process, however it ends."""
    server = os.getpid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that end are no zombies
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/shop.db"
        create_app({"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": folder})
    for line in sys.stdin:
        arguments, log, env = json.loads(line)
        if pid := os.fork():
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
        else:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != server:  # it has ended before
                os._exit(1)
            _become(arguments, log, env)


def _become(arguments: list[str], log: str, env: dict[str, str]) -> None:
    for name in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(name, signal.default_int_handler if name is signal.SIGINT else signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = [each for each in env["PYTHONPATH"].split(":") if each not in sys.path]
    sys.argv[:] = arguments
    with Path(log).open("ab") as output, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
    if arguments[0] == "gunicorn":
        WSGIApplication("%(prog)s [OPTIONS] [APP_MODULE]").run()
    else:
        shop_api()
    raise SystemExit


if __name__ == "__main__":
    _serve()
