"""A proxy between clients and the service that cuts connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from random import Random
from typing import Any

CUT_REQUEST, CUT_RESPONSE = 0.04, 0.06  # shares of requests
CHUNK = 65536


class Proxy:
    """Forwards connections to a port.

    It closes some connections right after a request, and others once the service has responded,
    which is after the commit. It always waits for the response of the service, so that
    ``pending`` tells whether a request is still processed.

    Attributes:
        pending: number of requests without a response of the service.
        cuts: number of connections that were cut.
    """

    def __init__(self, port: int, seed: int) -> None:
        self._target, self._random = port, Random(seed)
        self.pending = self.cuts = 0
        self._tasks: set[Any] = set()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._socket))
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)  # asyncio forgets the task of a connection that the client has closed
        with suppress(OSError, asyncio.CancelledError):
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._forward(reader, writer, up_reader, up_writer)
            up_writer.close()
        writer.close()
        self._tasks.discard(task)

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        """Forward requests, one after the other, as the clients send them."""
        while request := await _message(reader):
            chance = self._random.random()
            self.pending += 1
            try:
                up_writer.write(request)
                if chance < CUT_REQUEST:
                    writer.close()
                    self.cuts += 1
                response = await _message(up_reader)
            finally:
                self.pending -= 1
            if chance < CUT_RESPONSE + CUT_REQUEST:
                self.cuts += chance >= CUT_REQUEST
                return
            if not response:
                return
            writer.write(response)
            await writer.drain()

    def _end(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        ended = asyncio.gather(*tasks, return_exceptions=True)
        ended.add_done_callback(lambda _: self._loop.stop())

    def close(self) -> None:
        """Stop."""
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()
        self._socket.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Return a request or a response, or nothing at the end of the connection."""
    message = b""
    while not message or not _is_complete(message):
        more = await reader.read(CHUNK)
        if not more:
            return b""
        message += more
    return message


def _is_complete(message: bytes) -> bool:
    head, separator, body = message.partition(b"\r\n\r\n")
    if not separator:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line[15:])
        if line.startswith(b"transfer-encoding:"):
            return body.endswith(b"0\r\n\r\n")
    return True
