"""A gunicorn with a port and a key, for the tests, ``make histories`` and ``make bench``."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from flask_migrate import upgrade

from app import create_app
from app.auth.principals import Permission
from app.db.session import db
from app.services.api_keys.writes import NewKey, create_key
from tests.schemas import create_tables

ROOT = Path(__file__).parent.parent
SECRET = "a secret for tests only, never elsewhere"
PATIENCE = 120  # seconds; each operation takes less than three on an idle machine


def reserved_port() -> socket.socket:
    """Return a socket that keeps a free port from other programs.

    It does not listen, so a server that sets SO_REUSEADDR, as gunicorn does, can use the address.
    """
    reserved = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        reserved.setsockopt(socket.SOL_SOCKET, option, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Return the first true result of ``condition``.

    Args:
        condition: called every 20 ms.
        what: description of the condition, for the message.
        seconds: maximum time to wait, which is not reached even on a busy machine.

    Raises:
        TimeoutError: it was not true in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.02)
    raise TimeoutError(f"not within {seconds} seconds: {what}")


class Gunicorn:
    """A gunicorn on a port of the loopback interface, which can be started several times.

    Args:
        log: the file that it writes to.
        env: environment variables of every start. Those of a single start take precedence.
        certificate: a file with a certificate and its private key, to serve over TLS.
        patience: seconds until it must be ready, or must have stopped.
    """

    def __init__(
        self,
        log: Path,
        env: Mapping[str, str],
        certificate: str | Path | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.log = log
        self.patience = patience
        self._certificate = certificate
        self._reserved = reserved_port()  # also between two starts
        self.port: int = self._reserved.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self._env = {"HOST": "127.0.0.1", "PORT": str(self.port), "WEB_CONCURRENCY": "1", **env}
        self.process: subprocess.Popen[bytes] | None = None  # of the last start

    @property
    def environment(self) -> dict[str, str]:
        """The environment of gunicorn, for other processes of the same shop."""
        return os.environ | self._env

    @property
    def pid(self) -> int:
        """The process id of gunicorn's main process."""
        return self._started().pid

    def _started(self) -> subprocess.Popen[bytes]:
        assert self.process, "not started yet"
        return self.process

    def start(
        self,
        folder: Path = ROOT,
        wsgi: str = "wsgi:app",
        python: Path = Path(sys.executable),
        **env: str,
    ) -> subprocess.Popen[bytes]:
        """Start gunicorn with the code in a folder; return its main process without waiting."""
        certificate = ["--certfile", self._certificate] if self._certificate else []
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [python.with_name("gunicorn"), wsgi, *certificate],
                cwd=folder,
                env=os.environ | self._env | env,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return self.process

    def wait_until_ready(self, path: str = "/readyz") -> None:
        """Wait until a GET request gets status 200."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            assert self._started().poll() is None, self.last_of_log()
            if self._answers(path):
                return
            time.sleep(0.005)
        raise AssertionError(f"not ready after {self.patience} seconds: {self.last_of_log()}")

    def _answers(self, path: str) -> bool:
        if self._certificate:
            context = ssl.create_default_context(cafile=self._certificate)
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=self.patience, context=context
            )
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.patience)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except ConnectionError:
            return False
        finally:
            connection.close()

    def workers(self) -> list[psutil.Process]:
        """Return the workers' processes, the oldest first."""
        return list(psutil.Process(self.pid).children())

    def stop(self) -> None:
        """Stop gunicorn gracefully. Its exit status must be 0."""
        process = self._started()
        process.terminate()
        try:
            status = process.wait(self.patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert status == 0, self.last_of_log()

    def close(self) -> None:
        """Stop gunicorn immediately if it runs, and release the port."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(self.patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reserved.close()

    def last_of_log(self) -> str:
        """Return the end of the output of gunicorn."""
        return self.log.read_text()[-3000:]


class Service(NamedTuple):
    """The address of a running service, the key of an administrator, and its main process."""

    url: str
    consumer_key: str
    consumer_secret: str
    pid: int


class ShopServer(Gunicorn):
    """A gunicorn that serves a shop of its own.

    Args:
        database_url: an empty database.
        folder: the parent folder of the log and the instance folder.
        certificate: as for ``Gunicorn``.
        settings: settings of every start.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path,
        certificate: str | Path | None = None,
        **settings: str,
    ) -> None:
        shop = {"DATABASE_URL": database_url, "SECRET_KEY": SECRET}
        super().__init__(Path(folder) / "gunicorn.log", shop | settings, certificate)
        self.key = new_shop(shop | {"INSTANCE_PATH": str(folder)})


@contextmanager
def running_service(
    folder: Path, certificate: str | Path | None = None, **settings: str
) -> Iterator[Service]:
    """Serve an empty shop on SQLite, over TLS with a certificate, for as long as the block lasts.

    At the end of the block, the service must stop gracefully.
    """
    server = ShopServer(f"sqlite:///{folder}/shop.db", folder, certificate, **settings)
    key = server.key
    try:
        server.start()
        server.wait_until_ready()
        yield Service(server.url, key.consumer_key, key.consumer_secret, server.pid)
        server.stop()
    finally:
        server.close()


@contextmanager
def killed_worker(settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker on the shop of an app, and kill it at the end."""
    names = "DATABASE_URL", "SECRET_KEY", "INSTANCE_PATH"
    environment = os.environ | {name: settings[name] for name in names}
    command = [sys.executable, "-m", "app.main", "worker"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def new_shop(settings: Mapping[str, str]) -> NewKey:
    """Create the tables of an empty database, and return the key of an administrator."""
    on_sqlite = settings["DATABASE_URL"].startswith("sqlite:")
    if on_sqlite:
        create_tables(settings["DATABASE_URL"])
    app = create_app(dict(settings))
    with app.app_context():
        if not on_sqlite:  # the server may be one that is about to be stopped
            upgrade()
        key = create_key("admin", "administrator", Permission.READ_WRITE, "")
        for engine in db.engines.values():
            engine.dispose()
    return key
