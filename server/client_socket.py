"""Client sockets on which a slow client does not block other requests."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

CLIENT_TIMEOUT = 60.0
"""Seconds after which a client that sends or reads nothing is disconnected."""


class ClientSocket:
    """A client socket with a timeout that releases the slot of its request while it waits.

    A plain socket is first read and written without waiting, because releasing the slot and waiting
    for another slot costs as much as a short request.
    """

    def __init__(self, sock: socket.socket, slots: threading.Semaphore) -> None:
        self._sock, self._slots = sock, slots
        self._is_plain = type(sock) is socket.socket  # a TLS socket has buffers of its own
        self.has_slot = False

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the socket."""
        return getattr(self._sock, name)

    def setblocking(self, blocking: bool) -> None:
        """Set the timeout if gunicorn would wait without a limit."""
        self._sock.settimeout(CLIENT_TIMEOUT if blocking else 0)

    def recv(self, size: int) -> Any:
        """Return received bytes."""
        if self._is_plain:
            with suppress(BlockingIOError):
                return os.read(self._sock.fileno(), size)
        return self._wait(self._sock.recv, size)

    def sendall(self, data: bytes) -> None:
        """Send bytes. The timeout applies to each piece, so slow but steady clients are served."""
        sent = 0
        if self._is_plain:
            with suppress(BlockingIOError):
                sent = os.write(self._sock.fileno(), data)
        rest = memoryview(data)[sent:]
        while rest:
            rest = rest[self._wait(self._sock.send, rest) :]

    def _wait(self, call: Callable[[Any], Any], argument: Any) -> Any:
        if self.has_slot:
            self._slots.release()
        try:
            return call(argument)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "client timeout") from None
        finally:
            if self.has_slot:
                self._slots.acquire()
