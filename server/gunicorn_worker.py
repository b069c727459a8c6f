"""gunicorn's threaded worker, with a timeout for slow clients.

A thread waits briefly for the next request of its connection instead of returning to the pool.
"""

from __future__ import annotations

import select
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from gunicorn.http import errors
from gunicorn.workers.gthread import ThreadWorker

from server.client_socket import ClientSocket
from server.error_responses import RepeatedHeader, error_response

KEEPALIVE_WAIT_MS = 100
"""Milliseconds that a thread waits for the next request of its connection."""


class Worker(ThreadWorker):
    """gunicorn's threaded worker, in which slow clients do not block other requests.

    Every connection may occupy a thread, but only ``threads`` requests run at the same time.
    """

    alive: bool
    sockets: list[Any]

    def get_thread_pool(self) -> ThreadPoolExecutor:
        """Return a pool with a thread for each connection."""
        self._slots = threading.Semaphore(self.cfg.threads)
        return ThreadPoolExecutor(self.cfg.worker_connections)

    def handle(self, conn: Any) -> Any:
        """Handle the requests of a connection as long as the next one follows immediately."""
        while True:
            if not isinstance(conn.sock, ClientSocket):  # new, or replaced by a TLS socket
                conn.sock = ClientSocket(conn.sock, self._slots)
            keep_alive = super().handle(conn)
            if keep_alive is not True or not _has_data(conn):
                break
        if not keep_alive:
            conn.close(graceful=True)  # waits for the client, as the main thread must not
        return keep_alive

    def finish_request(self, conn: Any, fs: Future[Any]) -> None:
        """Hand over to the poller, unless ``handle`` has closed the connection."""
        if fs.exception() or fs.result():
            super().finish_request(conn, fs)
        else:
            self.nr_conns -= 1

    def handle_request(self, req: Any, conn: Any) -> Any:
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
        with self._slots:
            conn.sock.has_slot = True
            try:
                return super().handle_request(req, conn)
            finally:
                conn.sock.has_slot = False

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

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Log and send an error in the API's format, without anything that the client sent."""
        with suppress(OSError, ValueError):  # the client may have gone
            client.sendall(error_response(self.log, addr, exc))


def _has_data(conn: Any) -> bool:
    """Return whether the next request of a connection arrives within KEEPALIVE_WAIT_MS."""
    if conn.parser.unreader.buf.getvalue():
        return True
    poll = select.poll()
    poll.register(conn.sock, select.POLLIN)
    return bool(poll.poll(KEEPALIVE_WAIT_MS))
