"""Connections to receivers, using the streams of asyncio.

Extension point: ``AsyncNetworkStream`` of httpcore. Its own stream starts a group of tasks for each
connection, which costs as much CPU time as the rest of a delivery over HTTP: 0.9 ms instead of
0.5 ms for each request.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import httpcore


class AsyncioStream(httpcore.AsyncNetworkStream):
    """A connection with the signature of httpcore.

    The limits of ``ReceiverClient.post`` apply to reading and writing, so ``timeout`` is not used.

    Args:
        connect_seconds: limit for the TLS handshake.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connect_seconds: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connect_seconds = connect_seconds

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next bytes, or no bytes at the end."""
        return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes."""
        if buffer:
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        """Close the connection immediately. A receiver cannot delay this."""
        self._writer.transport.abort()

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
        try:
            async with asyncio.timeout(self._connect_seconds):
                await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout from None
            if isinstance(error, OSError):
                raise httpcore.ConnectError(str(error)) from error
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """Return the only property that httpcore uses: whether the connection can be read."""
        if info == "ssl_object":
            return self._writer.get_extra_info("ssl_object")
        return None
