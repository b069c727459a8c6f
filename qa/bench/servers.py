"""Run gunicorn as deployed, measure its CPU time and memory, and send requests."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import urlencode

import psutil

from tests.serving import ROOT, Gunicorn

CONNECTIONS = 4  # the number of threads per worker


class Request(NamedTuple):
    """A request to send."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    kind: str = ""  # the media type, if it is not JSON


class Spent(NamedTuple):
    """CPU seconds of the service and of the database server, and wall-clock seconds."""

    service: float
    database: float
    wall: float


class Server:
    """A gunicorn server with one worker.

    Args:
        process: the main process.
        port: the port that it listens on.
        headers: the headers of every request.
        database_pid: the main process of the database server. None for SQLite.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        port: int,
        headers: Mapping[str, str],
        database_pid: int | None,
    ) -> None:
        self._process = process
        self._port = port
        self._headers = {"Host": "bench", **headers}
        self._database_pid = database_pid

    def signed_in(self) -> Server:
        """Return this server for a browser that is signed in to the admin pages."""
        pair = b64decode(self._headers["Authorization"].removeprefix("Basic ")).decode()
        key, _, secret = pair.partition(":")
        connection = HTTPConnection("127.0.0.1", self._port)
        form = urlencode({"consumer_key": key, "consumer_secret": secret})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/admin/sign-in", form, kind | {"Sec-Fetch-Site": "same-origin"})
        cookie = (connection.getresponse().getheader("Set-Cookie") or "").partition(";")[0]
        connection.close()
        # A cookie without TLS requires a loopback address.
        headers = {"Host": f"127.0.0.1:{self._port}", "Cookie": cookie}
        return Server(self._process, self._port, headers, self._database_pid)

    def send(self, requests: Sequence[Request], connections: int = CONNECTIONS) -> Spent:
        """Send requests over several simultaneous connections and return their cost."""
        before = self.spent()
        with ThreadPoolExecutor(connections) as pool:
            shares = (requests[start::connections] for start in range(connections))
            list(pool.map(self._send, shares))
        return Spent(*(now - then for now, then in zip(self.spent(), before, strict=True)))

    def waits(self, requests: Sequence[Request], connections: int) -> list[float]:
        """Send requests over several simultaneous connections, and return the seconds of each.

        Before the first one, each connection is opened and used.
        """
        with ThreadPoolExecutor(connections) as pool:
            shares = (requests[start::connections] for start in range(connections))
            return [seconds for share in pool.map(self._timed, shares) for seconds in share]

    def get(self, path: str) -> bytes:
        """Return the body of a response."""
        return self._send([Request(path)])

    def _timed(self, requests: Sequence[Request]) -> list[float]:
        ends: list[float] = []
        self._send([Request("/healthz"), *requests], lambda: ends.append(time.perf_counter()))
        return [end - start for start, end in pairwise(ends)]

    def _send(
        self, requests: Sequence[Request], done: Callable[[], object] = lambda: None
    ) -> bytes:
        body = b""
        headers = "".join(f"\r\n{name}: {value}" for name, value in self._headers.items())
        with (
            socket.create_connection(("127.0.0.1", self._port), timeout=600) as connection,
            connection.makefile("rb") as received,
        ):
            for path, method, sent, kind in requests:
                length = f"\r\nContent-Length: {len(sent)}" if sent else ""
                media_type = f"\r\nContent-Type: {kind}" if kind else ""
                head = f"{method} {path} HTTP/1.1{length}{media_type}{headers}\r\n\r\n"
                connection.sendall(head.encode() + (sent or b""))
                status, body = _response(received)
                done()
                if status not in {200, 201}:
                    raise RuntimeError(f"{method} {path}: {status} {body[:300]!r}")
        return body

    def spent(self) -> Spent:
        """Return the resources spent since the start."""
        service, database = (
            _spent_by(root) if root else 0.0 for root in (self._process.pid, self._database_pid)
        )
        return Spent(service, database, time.perf_counter())

    def memory(self) -> int:
        """Return the memory of all processes. Pages that several of them share count once."""
        rollups = (
            Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in _tree(self._process.pid)
        )
        return sum(int(re.findall(r"Pss:\s+(\d+) kB", text)[0]) * 1024 for text in rollups)


@contextmanager
def serving(
    wsgi: str,
    env: Mapping[str, str],
    headers: Mapping[str, str],
    database_pid: int | None,
    *,
    log: Path,
    root: Path,
) -> Iterator[Server]:
    """Serve the app of a checkout on a free port of the loopback interface, as it is deployed."""
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # as in production
    gunicorn = Gunicorn(log, {**compiled, **env}, patience=60)
    try:
        process = gunicorn.start(root, wsgi, python_of(root))
        gunicorn.wait_until_ready("/healthz")
        yield Server(process, gunicorn.port, headers, database_pid)
        gunicorn.stop()
    finally:
        gunicorn.close()


def python_of(root: Path) -> Path:
    """Return the interpreter of a checkout: that of this process, or the one in its ``.venv``."""
    return Path(sys.executable) if root == ROOT else root / ".venv" / "bin" / "python"


def _response(received: BinaryIO) -> tuple[int, bytes]:
    """Return the status and the body of a response.

    The clients share the cores with the servers. With ``http.client``, which parses headers like
    those of an e-mail, a client takes as much CPU time as a read by ID.
    """
    status = int(received.readline().split()[1])
    headers = dict(line.lower().split(b":", 1) for line in iter(received.readline, b"\r\n"))
    if b"transfer-encoding" not in headers:
        return status, received.read(int(headers.get(b"content-length", 0)))
    chunks = []
    while size := int(received.readline(), 16):
        chunks.append(received.read(size))
        received.readline()
    received.readline()
    return status, b"".join(chunks)


def _tree(pid: int) -> list[int]:
    """Return the process IDs of a process and its descendants."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def _spent_by(pid: int) -> float:
    """Return the CPU time of a process, its descendants, and its children that have ended."""
    ended = psutil.Process(pid).cpu_times()
    alive: float = sum(_cpu_of(each) for each in _tree(pid))
    return alive + float(ended.children_user) + float(ended.children_system)


def _cpu_of(pid: int) -> float:
    """Return the CPU time of a process, read from its Linux CPU-time clock. 0 if it has ended."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:  # PostgreSQL ends processes of its own
        return 0.0
