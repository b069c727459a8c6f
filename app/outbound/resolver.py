"""Lookups of host names, which cannot be cancelled and may take minutes.

The system function is used, so that ``/etc/hosts`` and all other sources of names apply.
"""

import asyncio
import socket
import threading
from contextlib import suppress

MAX_LOOKUPS = 256
"""Maximum number of threads that look up names."""
MAX_REPEATED_LOOKUPS = 128
"""The same for names whose last lookup has failed."""


class Resolver:
    """Looks up names in threads. Use it on one event loop.

    Names that do not resolve must not delay others. A thread is needed for as long as the system
    function takes, so there is one for each name, even if it is needed again. Names whose last
    lookup has failed, which a worker looks up for every retry, leave half of the threads to others.
    The threads are daemons, because a process must not wait for them when it ends.
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[list[str]]] = {}
        self._failed: set[str] = set()
        self._threads = asyncio.Semaphore(MAX_LOOKUPS)
        self._repeated = asyncio.Semaphore(MAX_REPEATED_LOOKUPS)

    async def look_up(self, host: str) -> list[str]:
        """Return the addresses of a name, in the order of the system, or raise OSError."""
        if host not in self._running:
            self._running[host] = asyncio.create_task(self._look_up(host))
        return await asyncio.shield(self._running[host])  # others may be waiting, too

    async def _look_up(self, host: str) -> list[str]:
        try:
            if host not in self._failed:
                return await self._in_thread(host)
            async with self._repeated:
                found = await self._in_thread(host)
            self._failed.discard(host)
            return found
        except Exception:
            self._failed.add(host)
            raise
        finally:
            del self._running[host]

    async def _in_thread(self, host: str) -> list[str]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()

        def run() -> None:
            try:
                result: list[str] | Exception = _addresses(host)
            except Exception as error:  # noqa: BLE001  # raised in the event loop
                result = error
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(finish, result)

        def finish(result: list[str] | Exception) -> None:
            if found.cancelled():
                return
            if isinstance(result, Exception):
                found.set_exception(result)
            else:
                found.set_result(result)

        async with self._threads:
            try:
                threading.Thread(target=run, name="resolver", daemon=True).start()
            except RuntimeError as error:  # the limit of the system
                raise OSError(str(error)) from error
            return await found


def _addresses(host: str) -> list[str]:
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))
