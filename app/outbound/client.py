"""The HTTP client for receivers of webhooks.

httpcore is the transport of httpx. It has what a webhook needs: a hook for connecting to an address
that was checked before, no redirects and no proxies from the environment. Requests run on one event
loop, so a receiver that never responds occupies a socket and no thread.
"""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import certifi
import httpcore
import idna

from app.config import VERSION
from app.outbound.network import Network, RefusedAddressError, require_host, require_port, resolve
from app.outbound.streams import ReceiverStream, ResponseTooLongError

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 15.0
"""Limits for connecting, and for a delivery from the lookup of the name to the response."""

KEPT_BYTES = 4096
"""Number of bytes of a response that are stored."""
MAX_READ_BYTES = 64 * 1024
"""Maximum number of bytes that are received from a connection. Of a longer response, the status and
the start of the body are used."""
MAX_HEADERS = 50

REFUSED, TIMEOUT, FAILED = "refused address", "timeout", "connection failed"
"""The errors that users see. Details would describe the network of the shop."""

USER_AGENT = f"Shop-API-Webhooks/{VERSION}"

_IN_TARGET = "/?%!$&'()*+,;=:@~[]"
"""Characters that remain unencoded in a path with a query, besides letters and digits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request to a receiver.

    Attributes:
        status: HTTP status, or None without a response.
        duration_ms: time from the lookup of the name to the end of the response, in milliseconds.
        error: ``refused address``, ``timeout`` or ``connection failed``; None with a response.
        body: the first KEPT_BYTES of the response body.
        headers: headers of the response by their lower-case name.
        detail: why there is no response, for the log. Users see ``error`` only.
    """

    status: int | None
    duration_ms: int
    error: str | None = None
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses. Extension point: ``network_backend`` of httpcore.

    httpcore takes the ``Host`` header and the name for TLS from the URL, so both stay as they are.
    """

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._resolver = Resolver()
        self._turn = asyncio.Lock()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that accepts a connection."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                addresses = await resolve(host, port, self._allowed, self._resolver.look_up)
                for address in addresses[:-1]:
                    with suppress(OSError):
                        return await self._connect(address, port)
                return await self._connect(addresses[-1], port)
        except TimeoutError:
            raise httpcore.ConnectTimeout from None
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error

    async def _connect(self, address: str, port: int) -> ReceiverStream:
        return await ReceiverStream.connect(
            address,
            port,
            max_bytes=MAX_READ_BYTES,
            turn=self._turn,
            connect_seconds=CONNECT_SECONDS,
        )

    async def connect_unix_socket(self, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        """Raise an error, because no URL refers to a Unix socket."""
        raise RefusedAddressError

    async def sleep(self, seconds: float) -> None:
        """Wait between the retries of httpcore."""
        await asyncio.sleep(seconds)


class ReceiverClient:
    """Sends requests to receivers. Use it on one event loop.

    Each request has its own connection, so that the address is checked each time.

    Args:
        allowed: networks that are not globally reachable and may receive webhooks
            (``SHOP_WEBHOOK_ALLOWED_NETWORKS``).
    """

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._tls = _tls_context()
        self._backend = _CheckedBackend(allowed)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send a POST request; never raises an error that a receiver can cause."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._post(url, headers, body, started)
        except RefusedAddressError as refused:
            error, detail = REFUSED, str(refused)
        except (TimeoutError, httpcore.TimeoutException):
            error, detail = TIMEOUT, ""
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError, ValueError) as failure:
            error, detail = FAILED, str(failure) or type(failure).__name__
        return Outcome(None, _milliseconds(started), error, detail=detail)

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes, started: float
    ) -> Outcome:
        target, host = _target(url)
        sent = {
            "Host": host,
            "User-Agent": USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Length": str(len(body)),
            **headers,
        }
        async with (
            httpcore.AsyncHTTPConnection(
                target.origin, ssl_context=self._tls, network_backend=self._backend
            ) as connection,
            connection.stream("POST", target, headers=list(sent.items()), content=body) as response,
        ):
            kept = bytearray()
            with suppress(ResponseTooLongError):
                async for piece in response.aiter_stream():
                    kept += piece[: KEPT_BYTES - len(kept)]
        return Outcome(
            response.status,
            _milliseconds(started),
            body=_text(bytes(kept)),
            headers={
                _text(name.lower()): _text(value[:1000])
                for name, value in response.headers[:MAX_HEADERS]
            },
        )


def ascii_host(host: str) -> str:
    """Return a host in its ASCII form, as used for the lookup, or raise ValueError."""
    if host.isascii():
        return host.lower()
    return idna.encode(host, uts46=True).decode()  # raises a ValueError


def has_valid_host(url: str) -> bool:
    """Return whether the host of a URL can be looked up."""
    try:
        return bool(ascii_host(urlsplit(url).hostname or ""))
    except ValueError:
        return False


def require_receiver(url: str, allowed: Sequence[Network]) -> None:
    """Raise RefusedAddressError if a valid URL is rejected at every delivery, without a lookup."""
    target, _ = _target(url)
    require_port(int(target.port or 0))
    require_host(target.host.decode(), allowed)


def _target(url: str) -> tuple[httpcore.URL, str]:
    """Return the URL of a request, and its ``Host`` header."""
    parts = urlsplit(url)
    host = ascii_host(parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    path = quote(path, safe=_IN_TARGET)
    named = f"[{host}]" if ":" in host else host
    return (
        httpcore.URL(
            scheme=parts.scheme.encode(), host=host.encode(), port=port, target=path.encode()
        ),
        named if parts.port is None else f"{named}:{port}",
    )


def _tls_context() -> ssl.SSLContext:
    """Return a context with the certificate authorities of the system and of Mozilla.

    OpenSSL reads further authorities from ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``.
    """
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _text(data: bytes) -> str:
    # PostgreSQL stores no NUL character.
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def _milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


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
