"""HTTP connections that send JSON to a shop."""

import http.client
import json
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode, urlsplit

TIMEOUT = 60  # seconds


class RaceError(Exception):
    """The measurement is not possible. The message is for the user."""


class HTTPError(RaceError):
    """A response of the shop with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class Connection:
    """A persistent connection to the shop at a URL. It does not follow redirects."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.is_encrypted = url.startswith("https:")
        self.headers: dict[str, str] = {}  # of every request
        address = urlsplit(self.url)
        self._prefix = address.path
        kind = http.client.HTTPSConnection if self.is_encrypted else http.client.HTTPConnection
        self._http = kind(address.hostname or "", address.port, timeout=TIMEOUT)

    def reconnect(self) -> None:
        """Open a new connection, because a server may have closed an idle one."""
        self.close()
        self._http.connect()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def authenticate(self, key: str, secret: str) -> None:
        """Send HTTP Basic credentials with every request."""
        self.headers["Authorization"] = f"Basic {b64encode(f'{key}:{secret}'.encode()).decode()}"

    def send(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Return the body of the response to a request.

        Raises:
            HTTPError: its status is not 2xx.
            OSError or http.client.HTTPException: there is no response.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        self._http.request(method, target, content, headers | self.headers)
        response = self._http.getresponse()
        self.response_headers = response.headers
        text = response.read().decode(errors="replace")
        if not 200 <= response.status < 300:
            summary = " ".join(text.split())[:200]
            raise HTTPError(response.status, f"for {method} {path}: {summary}")
        try:
            return json.loads(text) if text else None
        except ValueError:
            raise RaceError(f"The response to {method} {path} is not JSON.") from None
