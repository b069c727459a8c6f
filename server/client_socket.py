"""Client sockets on which a slow client does not block other requests."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from server.slots import Slot

A = TypeVar("A")
R = TypeVar("R")

CLIENT_TIMEOUT = 60.0
"""Seconds after which a client that sends or reads nothing is disconnected."""

# macOS has no POLLRDHUP, and reports a client only that has closed its connection completely.
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR

_END = b"\r\n\r\n"
"""The end of a header."""

_KEPT = 1000
"""How many bytes of a request are kept, to find the dialect of its path."""


class ClientSocket:
    """A client socket with a timeout that releases the slot of its request while it waits.

    A plain socket is first read and written without waiting, because releasing the slot and waiting
    for another slot costs as much as a short request.

    It also is the clock of the current request for the app (``app.db.deadline``): ``started`` is
    the time of its arrival, plus the time that it has waited for its client.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._is_plain = type(sock) is socket.socket  # a TLS socket has buffers of its own
        self.slot: Slot | None = None
        """The slot of the current request, if it has one."""
        self.waited = 0.0
        """Seconds that the current request has waited for its client."""
        self._waits_since: float | None = None
        self.started = 0.0
        self.is_rejected = False
        """Whether the current request found no slot, so that the app must not run it."""
        self.received = b""
        """The first bytes that were received after the last response."""
        self._header = b""
        """The header of the response, until its body follows."""

    def __getattr__(self, name: str) -> object:
        """Return the attribute of the socket."""
        return getattr(self._sock, name)

    def setblocking(self, blocking: bool) -> None:
        """Set the timeout if gunicorn would wait without a limit."""
        self._sock.settimeout(CLIENT_TIMEOUT if blocking else 0)

    def recv(self, size: int) -> bytes:
        """Return received bytes."""
        data = self._recv(size)
        self.received = self.received or data[:_KEPT]
        return data

    def _recv(self, size: int) -> bytes:
        if self._is_plain:
            with suppress(BlockingIOError):
                return os.read(self._sock.fileno(), size)
        return self._wait(self._sock.recv, size)

    def sendall(self, data: bytes) -> None:
        """Send bytes, the header of a response together with the first bytes of its body.

        A load balancer cannot repeat a request whose response it has begun to forward, so a worker
        that is killed must not leave a header alone.
        """
        if data.startswith(b"HTTP/1.1 ") and data.endswith(_END) and data[9:10] != b"1":
            self._header = data
            return
        if self._header:
            data, self._header = self._header + data, b""
        self._send(data)

    def flush(self) -> None:
        """Send the header of a response without a body."""
        if self._header:
            data, self._header = self._header, b""
            self._send(data)

    def _send(self, data: bytes) -> None:
        """Send bytes. The timeout applies to each piece, so slow but steady clients are served."""
        sent = 0
        if self._is_plain:
            with suppress(BlockingIOError):
                sent = os.write(self._sock.fileno(), data)
        rest = memoryview(data)[sent:]
        while rest:
            rest = rest[self._wait(self._sock.send, rest) :]

    def is_gone(self) -> bool:
        """Return whether the client has closed the connection."""
        poll = select.poll()
        poll.register(self._sock, _GONE)
        return bool(poll.poll(0))

    def is_slow(self, seconds: float) -> bool:
        """Return whether the current request waits for its client, in total for some seconds."""
        since = self._waits_since
        return since is not None and self.waited + time.monotonic() - since >= seconds

    def _wait(self, call: Callable[[A], R], argument: A) -> R:
        if self.slot:
            self.slot.release()
        before = self._waits_since = time.monotonic()
        try:
            return call(argument)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "client timeout") from None
        finally:
            self._waits_since = None
            seconds = time.monotonic() - before
            self.started += seconds
            self.waited += seconds
            if self.slot:
                self.slot.acquire()
