"""gunicorn's threaded worker, with a timeout for slow clients and limits for slow requests.

A thread waits briefly for the next request of its connection instead of returning to the pool.
"""

from __future__ import annotations

import errno
import math
import re
import select
import signal
import socket
import ssl
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from queue import SimpleQueue
from typing import Any
from urllib.parse import unquote, unquote_plus
from wsgiref.types import WSGIApplication
from wsgiref.util import setup_testing_defaults

from gunicorn.http import errors
from gunicorn.http.message import Request
from gunicorn.util import close_graceful
from gunicorn.workers.gthread import TConn, ThreadWorker

from server.client_socket import ClientSocket
from server.slots import Slot, Slots

KEEPALIVE_WAIT_MS = 100
"""Milliseconds that a thread waits for the next request of its connection."""

QUEUE_SECONDS = 5.0
"""How long a request waits for a slot."""

FROZEN_SECONDS = 10.0
"""How long a worker is silent at least if it was frozen. It then drops requests for as long."""

STOP_SECONDS = 1.2
"""How long a stopping worker waits for clients: for the next request of a kept-alive connection,
and in total for what a client still sends or reads of a request."""

LINGER_SECONDS = 1.0
"""How long a closed connection waits for its client to close it, too (RFC 9112, section 9.6)."""

STOP_POLL_SECONDS = 0.1
"""How often a stopping worker looks for clients that keep it waiting."""

READS = {"GET", "HEAD", "OPTIONS"}

_WITHOUT_END = re.compile(r"limit\]?=\s*(?:[^\s\d]|\d{4})|=csv\b", re.IGNORECASE)
"""In the query of a list whose length depends on the data: ``limit=-1``, or more than a page."""

_PATH_WITHOUT_END = re.compile(r"\.csv$|/customers/[^/]+/(?:orders|downloads)$|/notes$")
"""The end of the path of such a list."""

BURST_SECONDS = 0.005
"""A connection that arrives sooner after the last one could also go to another worker."""

WAIT_PER_CONNECTION, MAX_WAIT = 0.0002, 0.002
"""Seconds that a worker then waits for each connection that it has, and at most."""

STOPS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT}


class Worker(ThreadWorker):
    """gunicorn's threaded worker, in which slow clients and writes do not block other requests.

    Every connection may occupy a thread, but only ``threads`` requests run at the same time. One of
    these slots is for reads only, so that reads are served while all writes wait for a lock or for
    a standby. Lists without end have at most half of the slots, so that a few of them, which run
    for as long as their clients read, do not keep other requests waiting. Health checks have slots
    of their own.
    """

    alive: bool
    sockets: list[socket.socket]
    inherited_signals: SimpleQueue[int] = SimpleQueue()
    """Set in gunicorn.conf.py: where the main process, and its copy at first, puts signals."""

    def init_signals(self) -> None:
        """Handle signals, and stop if one has asked for it since this process was copied.

        gunicorn would wait for the worker for 30 seconds, and then kill it. INT and QUIT stop as
        TERM does: gunicorn's handlers end the main thread, but not the threads of connections.
        """
        super().init_signals()
        for number in STOPS:
            signal.signal(number, self.handle_exit)
        while not self.inherited_signals.empty():
            if self.inherited_signals.get_nowait() in STOPS:
                self.alive = False

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return a pool with a thread for each connection."""
        threads = self.cfg.threads
        slots = Slots(threads)
        self._reads = Slot(slots, threads)
        self._writes = Slot(slots, max(threads - 1, 1))
        self._lists = Slot(slots, max(threads // 2, 1))
        self._readiness = Slot(Slots(1), 1)
        self._notified, self._frozen_until = math.inf, 0.0  # until the app is loaded
        self._handled: set[TConn] = set()  # connections that have a thread
        self._stops_at: float | None = None
        self._accepted = 0.0
        # Half of the threads remain for rejections and health checks.
        self._queue = threading.Semaphore(max(self.cfg.worker_connections // 2, 1))
        return ThreadPoolExecutor(self.cfg.worker_connections)

    def handle(self, conn: TConn) -> object:
        """Handle the requests of a connection as long as the next one follows immediately."""
        self._handled.add(conn)
        try:
            while True:
                if not isinstance(conn.sock, ClientSocket):  # new, or replaced by a TLS socket
                    conn.sock = ClientSocket(conn.sock)
                conn.data_ready = True  # each connection has a thread, which may wait
                keep_alive = super().handle(conn)
                if not keep_alive or not _has_data(conn):
                    break
            if not keep_alive:
                # Waits for the client, as the main thread must not.
                close_graceful(conn.sock, LINGER_SECONDS if self.alive else STOP_POLL_SECONDS)
            return keep_alive
        finally:
            self._handled.discard(conn)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Do what the main thread has to do. A stopping worker does not wait for slow clients."""
        if self.alive:
            super().wait_for_and_dispatch_events(timeout)
            return
        now = time.monotonic()
        self._stops_at = self._stops_at or now + STOP_SECONDS
        if now >= self._stops_at:
            self.murder_keepalived(force=True)
            for conn in self._handled.copy():
                if not isinstance(conn.sock, ClientSocket) or conn.sock.is_slow(STOP_SECONDS):
                    with suppress(OSError):  # it is closed already
                        conn.sock.shutdown(socket.SHUT_RDWR)
        super().wait_for_and_dispatch_events(min(timeout, STOP_POLL_SECONDS))

    def accept(self, listener: object) -> None:
        """Accept a connection. Of several that arrive at once, leave others to other workers.

        The first worker that wakes would accept all of them, and clients that keep them open would
        use one worker only. One with fewer connections waits less, and accepts first.
        """
        if time.monotonic() - self._accepted < BURST_SECONDS:
            time.sleep(min(self.nr_conns * WAIT_PER_CONNECTION, MAX_WAIT))
        super().accept(listener)
        self._accepted = time.monotonic()

    def finish_request(self, conn: object, fs: Future[object]) -> None:
        """Hand over to the poller, unless ``handle`` has closed the connection."""
        if fs.exception() or fs.result():
            super().finish_request(conn, fs)
        else:
            self.nr_conns -= 1

    def handle_request(self, req: Request, conn: TConn) -> object:
        """Run the application when fewer than ``threads`` requests run."""
        is_authorized = False
        for name, value in req.headers:
            if name == "TRANSFER-ENCODING" and value.lower() != "chunked":  # decisions 17
                raise errors.UnsupportedTransferCoding(value)
            if name == "AUTHORIZATION":
                # gunicorn joins the headers, so that the app could see a single valid one.
                if is_authorized:
                    raise RepeatedHeader("Authorization")
                is_authorized = True
        if not isinstance(conn.sock, ClientSocket):  # replaced by a TLS socket after ``handle``
            conn.sock = conn.parser.unreader.sock = ClientSocket(conn.sock)
        client: ClientSocket = conn.sock
        client.started, client.waited, client.is_rejected = time.monotonic(), 0.0, False
        path = req.path.rstrip("/")
        if path == "/healthz":
            return self._respond(req, conn)
        slot = self.slot_of(req.method, path, req.query)
        has_waited = not slot.acquire(0)
        if has_waited and not self._wait_for(slot):
            client.is_rejected = True  # the app sends the response
            return self._respond(req, conn)
        client.slot = slot
        try:
            # Nobody would read the response. If the worker was frozen, the client may have repeated
            # its write on another machine. Others are not dropped, because a client that has sent
            # all that it will send looks the same.
            if (has_waited or self._was_frozen()) and client.is_gone():
                raise ConnectionResetError(errno.ECONNRESET, "client closed the connection")
            return self._respond(req, conn)
        finally:
            client.slot = None
            slot.release()

    def slot_of(self, method: str, path: str, query: str) -> Slot:
        """Return the slot that a request needs. The path has no slash at its end."""
        if path == "/readyz":
            return self._readiness
        if method not in READS:
            return self._writes
        return self._lists if is_without_end(path, query) else self._reads

    def _respond(self, req: Request, conn: TConn) -> object:
        """Run the application, and send what is left of its response."""
        keep_alive = super().handle_request(req, conn)
        conn.sock.flush()
        conn.sock.received = b""
        return keep_alive

    def _wait_for(self, slot: Slot) -> bool:
        """Wait for a slot, and return whether there is one."""
        if not self._queue.acquire(blocking=False):
            return False
        try:
            return slot.acquire(QUEUE_SECONDS)
        finally:
            self._queue.release()

    def notify(self) -> None:
        """Tell the main process that the worker runs, which the main thread does every second."""
        if self._was_frozen():
            self._frozen_until = time.monotonic() + FROZEN_SECONDS
        self._notified = time.monotonic()
        super().notify()

    def _was_frozen(self) -> bool:
        """Return whether the worker could not run until a moment ago."""
        now = time.monotonic()
        return now - self._notified > FROZEN_SECONDS or now < self._frozen_until

    def is_parent_alive(self) -> bool:
        """Return whether the main process runs. Without it, stop as after SIGTERM."""
        self.alive = self.alive and super().is_parent_alive()
        return self.alive

    def set_accept_enabled(self, enabled: bool) -> None:
        """Accept connections or not. A stopping worker releases the address immediately."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def handle_error(self, req: Request, client: Any, addr: Any, exc: Exception) -> None:
        """Log and send an error in the API's format, without anything that the client sent."""
        with suppress(OSError, ValueError):  # the client may have gone
            received = getattr(client, "received", b"")
            client.sendall(error_response(self.wsgi, self.log, addr, exc, received))


def is_without_end(path: str, query: str) -> bool:
    """Return whether the response to a read can have any length.

    Args:
        path: the path of the request, without a slash at its end.
        query: the query, still percent-encoded.
    """
    if _PATH_WITHOUT_END.search(path):
        return True
    return bool(query) and _WITHOUT_END.search(unquote_plus(query)) is not None


def _has_data(conn: TConn) -> bool:
    """Return whether the next request of a connection arrives within KEEPALIVE_WAIT_MS."""
    if conn.parser.unreader.buf.getvalue():
        return True
    poll = select.poll()
    poll.register(conn.sock, select.POLLIN)
    return bool(poll.poll(KEEPALIVE_WAIT_MS))


_STATUSES = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
}

_TARGET = re.compile(rb"\s*[^\s/]+ (/[^\s?#]*)(?:\?([^\s#]*))?")
"""The method, the path and the query at the beginning of a request."""


class RepeatedHeader(errors.ParseException):
    """A header that a request can have only once was sent more than once (decisions 17).

    Args:
        name: the name of the header.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"repeated header {name}")
        self.name = name


def error_response(
    app: WSGIApplication, log: Any, addr: Any, error: Exception, received: bytes
) -> bytes:
    """Log an error of gunicorn and return its response, in the dialect of the path.

    Neither contains anything that the client sent.

    Args:
        app: the WSGI app, which makes the response.
        log: gunicorn's logger.
        addr: the address of the client, or None.
        error: the exception.
        received: the beginning of the request.
    """
    from app.errors import InvalidParams, ShopError  # noqa: PLC0415  # in a worker only

    rejection = ShopError("shop_api_internal_error")
    if isinstance(error, errors.ParseException | ssl.SSLError) and not isinstance(
        error, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName
    ):
        reason = re.split("[:'\"]", str(error))[0]  # the rest contains what the client sent
        log.warning("Invalid request from ip=%s: %s", (addr or [""])[0], reason)
        status = _STATUSES.get(type(error), HTTPStatus.BAD_REQUEST)
        reasons = {"request": reason}
        if isinstance(error, RepeatedHeader):
            reasons = {error.name: "must be sent only once."}
        rejection = InvalidParams(reasons).with_status(status)
    rejection.__cause__ = error  # for the log
    return _response(app, rejection, _TARGET.match(received))


def _response(app: WSGIApplication, rejection: Exception, target: re.Match[bytes] | None) -> bytes:
    """Return the complete HTTP response to a request that the app must reject."""
    from werkzeug.test import run_wsgi_app  # noqa: PLC0415  # after an error only

    path, query = target.groups(b"") if target else (b"/", b"")
    environ: dict[str, object] = {
        "PATH_INFO": unquote(path.decode("latin-1"), "latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "shop_api.rejection": rejection,
    }
    setup_testing_defaults(environ)
    body, status, headers = run_wsgi_app(app, environ, buffered=True)
    headers["Connection"] = "close"
    lines = [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + b"".join(body)
