"""Connections to receivers: sockets whose bytes are counted as they come over the wire.

Extension point: ``AsyncNetworkStream`` of httpcore. httpcore parses all that it has received before
the event loop continues, and reads again at once if there is more. Its own stream, and the streams
of asyncio, take up to 256 KiB from the socket for it.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any, Self, TypeVar

import httpcore

READ_BYTES = 2048
"""Maximum number of bytes that are parsed without a break. 1xx responses take about 5 ms."""

UNLIMITED_READS = 2
"""Reads of a response that do not wait for others. Most responses need one."""
HANDSHAKE_READS = 16
"""The same for the TLS handshake, which OpenSSL parses quickly."""

T = TypeVar("T")


class ResponseTooLongError(httpcore.ReadError):
    """A receiver sends more bytes than are read from it."""


class ReceiverStream(httpcore.AsyncNetworkStream):
    """A connection with the signature of httpcore.

    The limits of ``ReceiverClient.post`` apply to reading and writing, so ``timeout`` is not used.

    Args:
        sock: a connected socket that does not block.
        max_bytes: number of bytes that are received at most, with those of TLS.
        turn: held by a stream while it waits for another read of the same response. It waits as
            long as parsing has taken, so all long responses together take half of the CPU time.
        connect_seconds: limit for the TLS handshake.
    """

    def __init__(
        self, sock: socket.socket, *, max_bytes: int, turn: asyncio.Lock, connect_seconds: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._bytes_left = max_bytes
        self._turn = turn
        self._connect_seconds = connect_seconds
        self._reads_left = UNLIMITED_READS
        self._received_at = 0.0
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None

    @classmethod
    async def connect(cls, address: str, port: int, **limits: Any) -> Self:
        """Return a connection to an IP address, or raise OSError."""
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            sock.setblocking(False)
            # httpcore sends the headers and the body separately.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
            return cls(sock, **limits)
        except BaseException:
            sock.close()
            raise

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, none at the end, or raise ResponseTooLongError."""
        if self._tls is None:
            return await self._receive()
        try:
            return await self._through_tls(self._tls.read, min(max_bytes, READ_BYTES))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        if not buffer:
            return
        if self._tls is None:
            await self._loop.sock_sendall(self._socket, buffer)
        else:
            await self._through_tls(self._tls.write, buffer)

    async def aclose(self) -> None:
        """Close the connection immediately. A receiver cannot delay this."""
        self._socket.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return the same connection with TLS.

        Raises:
            httpcore.ConnectTimeout: the handshake takes too long.
            httpcore.ConnectError: the handshake fails, for example because the certificate is not
                trusted. Its cause says why.
        """
        self._reads_left = HANDSHAKE_READS
        try:
            tls = ssl_context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=server_hostname
            )
            async with asyncio.timeout(self._connect_seconds):
                await self._through_tls(tls.do_handshake)
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout from None
            if isinstance(error, OSError):
                raise httpcore.ConnectError(str(error)) from error
            raise
        self._tls = tls
        self._reads_left = UNLIMITED_READS
        return self

    def get_extra_info(self, info: str) -> object:
        """Return the only property that httpcore uses: the TLS connection."""
        return self._tls if info == "ssl_object" else None

    async def _receive(self) -> bytes:
        """Return the next bytes of the wire, or no bytes at the end."""
        if self._reads_left:
            self._reads_left -= 1
        else:
            parsing = self._loop.time() - self._received_at
            async with self._turn:
                await asyncio.sleep(parsing)
        received = await self._loop.sock_recv(self._socket, READ_BYTES)
        self._received_at = self._loop.time()
        self._bytes_left -= len(received)
        if self._bytes_left < 0:
            raise ResponseTooLongError("the response is too long")
        return received

    async def _through_tls(self, operate: Callable[..., T], *args: object) -> T:
        """Run an operation of TLS, and send and receive what it needs."""
        while True:
            try:
                result = operate(*args)
            except ssl.SSLWantReadError:
                await self._flush()
                if received := await self._receive():
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            except ssl.SSLError:
                await self._flush()  # the alert that tells the receiver why
                raise
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._loop.sock_sendall(self._socket, self._outgoing.read())
