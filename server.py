"""What gunicorn runs: listeners that outlive workers, and workers that hand over to each other.

Nothing of the service is imported here before a worker loads it: the main process, which imports
this file, lives on at a reload, and new workers shall run new code.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import logging
import mmap
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from gunicorn import glogging, sock, systemd, util
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker

_STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, which no module names
_PATROL_SECONDS = 1.0
_CLIENT_SECONDS = 60.0
_PATIENCE_SECONDS = 0.02


class Listener(sock.TCPSocket):
    """A listening socket of one worker's place, which the main process holds.

    The kernel shares connections out among the places (SO_REUSEPORT), also among those of another
    gunicorn on the same address. What waits in a place waits for its next worker.
    """

    def __init__(self, address: Any, arbiter: Any) -> None:
        self.FAMILY = socket.AF_INET6 if util.is_ipv6(address[0]) else socket.AF_INET
        self._arbiter = arbiter
        super().__init__(address, arbiter.cfg, arbiter.log)

    def set_options(self, sock: Any, bound: bool = False) -> Any:
        """Share the address."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return super().set_options(sock, bound)

    def close(self) -> None:
        """Close it; when the main process does, the service stops and the place with it.

        Whoever still connects would be reset. Without an answer to its first packet it tries again
        after a second: with another gunicorn, or it is refused.
        """
        stopping = os.getpid() == self._arbiter.pid and not self._arbiter.reexec_pid
        if stopping and sys.platform == "linux":
            _ignore_new_connections(self.sock)
        super().close()


def _ignore_new_connections(listener: socket.socket) -> None:
    # A classic BPF program, which the kernel runs for each packet: drop those that open a
    # connection, SYN without ACK in byte 13 of the TCP header, and let all others pass.
    program = [
        (0x30, 0, 0, 13),  # load the byte
        (0x54, 0, 0, 0x12),  # and SYN | ACK
        (0x15, 0, 1, 0x02),  # is it SYN alone?
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFFFFFF),  # pass
    ]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    fprog = struct.pack("HL", len(program), ctypes.addressof(buffer))
    attach_filter = 26  # SO_ATTACH_FILTER, which the socket module does not name
    listener.setsockopt(socket.SOL_SOCKET, attach_filter, fprog)


def open_listeners(arbiter: Any) -> None:
    """Open a place for each worker, unless gunicorn was given sockets. Hook: ``on_starting``."""
    given = "GUNICORN_PID" in os.environ or systemd.listen_fds(unset_environment=False)
    addresses = arbiter.cfg.address
    if given or not all(isinstance(address, tuple) for address in addresses):
        return
    try:
        arbiter.LISTENERS = [
            Listener(address, arbiter) for _ in range(arbiter.cfg.workers) for address in addresses
        ]
    except OSError as error:
        arbiter.log.error("Cannot listen at %s: %s", addresses, error.strerror)
        raise SystemExit(1) from None


class Handover:
    """Which workers serve, in memory that all processes share.

    At a reload gunicorn stops the old workers while the new ones are still loading the service. The
    old ones read here how long they are needed.
    """

    _NUMBER = struct.Struct("q")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 64 * 1024)

    def begin(self, arbiter: Any) -> None:
        """Note that every worker so far is to be replaced. Hook: ``on_reload``."""
        self._write(0, arbiter.worker_age)

    def serve(self, worker: Worker) -> None:
        """Note that a worker serves its place."""
        self._write(1 + worker.place, worker.age)

    def needs(self, worker: Worker) -> bool:
        """Tell whether a worker shall serve on until the next one of its place does."""
        age: int = worker.age
        return self._read(0) >= age >= self._read(1 + worker.place)

    def _write(self, position: int, number: int) -> None:
        self._NUMBER.pack_into(self._memory, position * self._NUMBER.size, number)

    def _read(self, position: int) -> int:
        number: int = self._NUMBER.unpack_from(self._memory, position * self._NUMBER.size)[0]
        return number


handover = Handover()


def place_worker(arbiter: Any, worker: Worker) -> None:
    """Give a worker a place that nobody has, if there is one. Hook: ``pre_fork``.

    From here until the worker knows what to do with them, signals that stop it wait: gunicorn sends
    them once only.
    """
    taken = [other.place for other in arbiter.WORKERS.values()]
    worker.place = min(range(len(arbiter.LISTENERS)), key=taken.count)
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)


os.register_at_fork(after_in_parent=_unblock_signals)


class Turns:
    """Lets so many threads work at once; one that waits for its client gives up its turn.

    Of those, the ones that read from a file work one after the other where they are quick: each
    call into SQLite lets go of Python's lock, and threads that fight over it spend more on that
    than on their work. Who has waited for ``patience`` seconds goes on beside the slow one.
    """

    def __init__(self, number: int) -> None:
        self.patience = 0.0
        self._free = threading.Semaphore(number)
        self._last = threading.Lock()  # of the reader that came last; held until it ends
        self._thread = threading.local()

    def begin(self, *, reads: bool) -> None:
        """Wait for a turn."""
        self._free.acquire()
        thread = self._thread
        thread.turn = mine = threading.Lock()
        thread.reads = reads
        if reads and self.patience:
            mine.acquire()
            before, self._last = self._last, mine
            if before.acquire(timeout=self.patience):
                before.release()  # two that came at once may have the same one before them

    def end(self) -> bool:
        """Give it up; return whether this turn reads."""
        mine = self._thread.turn
        self._thread.turn = None
        if mine.locked():
            mine.release()
        self._free.release()
        reads: bool = self._thread.reads
        return reads

    def is_mine(self) -> bool:
        """Tell whether this thread has a turn."""
        return getattr(self._thread, "turn", None) is not None


class Connection:
    """A client's socket, whose slowness costs nobody else a turn, and has an end."""

    def __init__(self, client: socket.socket, turns: Turns) -> None:
        self._socket, self._turns = client, turns
        # What can be read or written at once is, and the turn is kept: to give it up and wait for
        # the next one costs as much as a quick answer. Not within TLS, which has its own buffers.
        self._at_once = type(client) is socket.socket

    def __getattr__(self, name: str) -> Any:
        """Be the socket in all else."""
        return getattr(self._socket, name)

    def setblocking(self, blocking: bool) -> None:
        """Wait for the client only so long."""
        self._socket.settimeout(_CLIENT_SECONDS if blocking else 0)

    def recv(self, size: int, *flags: int) -> bytes:
        """Read; a client that sends nothing for so long counts as gone."""
        if self._at_once and not flags:
            with suppress(BlockingIOError):  # the system's call never waits: there is a timeout
                return os.read(self._socket.fileno(), size)
        return self._wait(self._socket.recv, size, *flags)  # type: ignore[no-any-return] # a socket's recv

    def sendall(self, data: bytes, *flags: int) -> None:
        """Write; a client that takes nothing for so long counts as gone."""
        sent = 0
        if self._at_once and not flags:
            with suppress(BlockingIOError):
                sent = os.write(self._socket.fileno(), data)
        rest = memoryview(data)[sent:]
        while rest:  # each piece has its time; of a socket's own sendall it would be all of them
            rest = rest[self._wait(self._socket.send, rest, *flags) :]

    def _wait(self, call: Callable[..., Any], *arguments: Any) -> Any:
        paused = self._turns.is_mine()
        reads = paused and self._turns.end()
        try:
            return call(*arguments)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from None
        finally:
            if paused:
                self._turns.begin(reads=reads)


class Worker(ThreadWorker):
    """A threaded worker at a place of its own.

    A thread for each connection reads what the client sends; ``threads`` of them work at once.
    """

    alive: bool
    sockets: list[Any]
    place = 0
    _replaced = False
    _next_patrol = 0.0

    def init_process(self) -> None:
        """Start the worker."""
        if sys.platform == "linux":
            # When the main process is killed, its workers stop at once, also while they start:
            # nobody else takes the connections that wait in their places.
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM)
        util.write_error = write_error
        self._others = [each for each in self.sockets if each is not self.sockets[self.place]]
        self.sockets = [self.sockets[self.place]]
        super().init_process()

    def load_wsgi(self) -> None:
        """Load the app, then let the garbage collector leave alone what has come to stay.

        A page of a hundred records is thousands of objects that go by themselves: to look for
        cycles among them at every 700th cost a sixth of its time.
        """
        super().load_wsgi()
        if self.wsgi.config["DATABASE_URL"].startswith("sqlite"):
            self._turns.patience = _PATIENCE_SECONDS
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 50, 100)

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return a pool in which slow clients find no end of threads."""
        self._turns = Turns(self.cfg.threads)
        return ThreadPoolExecutor(max_workers=self.cfg.worker_connections)

    def enqueue_req(self, conn: Any) -> None:
        """Read the next request of a connection."""
        if not isinstance(conn.sock, Connection):
            conn.sock = Connection(conn.sock, self._turns)
        super().enqueue_req(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request whose head is there, in turn."""
        self._turns.begin(reads=req.method in {"GET", "HEAD"})
        try:
            return super().handle_request(req, conn)
        finally:
            self._turns.end()

    def init_signals(self) -> None:
        """Prepare for signals; those that came too early come now."""
        super().init_signals()
        _unblock_signals()

    def run(self) -> None:
        """Serve until a signal says to stop."""
        handover.serve(self)
        super().run()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop gracefully: at a reload when the next worker serves, else now."""
        if not self.booted:
            raise SystemExit(0)  # nobody waits for it
        if handover.needs(self) and not self._replaced:
            self._replaced = True
        else:
            super().handle_exit(sig, frame)

    def is_parent_alive(self) -> bool:
        """Tell whether the main process lives; without it the worker stops."""
        parent_lives: bool = super().is_parent_alive()
        self.alive = self.alive and parent_lives
        return parent_lives

    def notify(self) -> None:
        """Tell gunicorn that the worker lives, and look around. Called at least once a second."""
        super().notify()
        if self._replaced and self.alive and not handover.needs(self):
            super().handle_exit(signal.SIGTERM, None)
        if self.alive and time.monotonic() > self._next_patrol:
            # Places whose worker was killed, or is only starting.
            self._accept_waiting(self._others)
            self._next_patrol = time.monotonic() + _PATROL_SECONDS

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting connections; a stopping worker takes those that wait already."""
        super().set_accept_enabled(enabled)
        if not enabled and not self.alive:
            everything = [*self.sockets, *self._others]
            self._accept_waiting(everything)
            for listener in everything:
                listener.close()

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Answer and log what is no request, without its text: it may hold credentials."""
        if isinstance(exc, ParseException):
            for name, value in vars(exc).items():
                # gunicorn's own words are in these two
                if isinstance(value, str | bytes) and name not in {"msg", "reason"}:
                    setattr(exc, name, "hidden")
        super().handle_error(None, client, addr, exc)

    def _accept_waiting(self, listeners: list[Any]) -> None:
        for listener in listeners:
            waiting = True
            while waiting and self.nr_conns < self.worker_connections:
                before = self.nr_conns
                self.accept(listener)
                waiting = self.nr_conns > before


def write_error(connection: socket.socket, status: int, reason: str, message: str) -> None:
    """Answer what is no request for the app, a line or a header too long, as the app would.

    Takes the place of ``gunicorn.util.write_error``, which answers with a page.
    """
    from app.api.security_headers import ALWAYS  # noqa: PLC0415  # see above
    from app.errors import InvalidParams, ShopError  # noqa: PLC0415  # by workers only, see above

    error = (
        ShopError("shop_api_internal_error")
        if status >= 500
        else InvalidParams({"request": message or reason})
    )
    body = json.dumps({"errors": error.entries}).encode()
    lines = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        "X-Request-Id": uuid.uuid4().hex,
        **ALWAYS,
    }
    head = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in lines.items())]
    text = "\r\n".join([*head, "", ""])
    util.write_nonblock(connection, text.encode("latin-1", "replace") + body)


class LineFormatter(logging.Formatter):
    """Writes gunicorn's records as the lines of the app's log, without what a client sent."""

    # What gunicorn says of a request, up to what the client sent: a line that is none, a query.
    _SENT = re.compile(
        r"(Invalid request from ip=\S+: [^:'\"]*|Error handling request).*", re.DOTALL
    )

    def format(self, record: logging.LogRecord) -> str:
        """Return a line of JSON."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line = {
            "event": self._SENT.sub(r"\1", record.getMessage()),
            "level": record.levelname.lower(),
            "time": moment,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Logger(glogging.Logger):
    """gunicorn's own log."""

    def setup(self, cfg: Any) -> None:
        """Open the log."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(LineFormatter())
