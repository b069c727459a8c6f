"""A client of a service with a persistent connection and access to response headers."""

import http.client
import json
import time
from base64 import b64encode
from typing import Any, NamedTuple

SECONDS = 60


class Reply(NamedTuple):
    """A response."""

    status: int
    body: Any
    headers: dict
    seconds: float


class Client:
    """Sends JSON to a port of the loopback interface, with an API key."""

    def __init__(self, port, key=None):
        self._port = port
        self._headers = {}
        if key:
            pair = f"{key.consumer_key}:{key.consumer_secret}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self._connection = None

    def send(self, method, path, body=None, **headers):
        """Return the reply. Underscores in the names of headers mean hyphens.

        Raises:
            OSError or HTTPException: there is no response.
        """
        started = time.monotonic()
        response, content = self._exchange(method, path, body, headers)
        found = {name.lower(): value for name, value in response.getheaders()}
        answer = json.loads(content) if content else None
        return Reply(response.status, answer, found, time.monotonic() - started)

    def text(self, path):
        """Return the body of a response that is not JSON."""
        return self._exchange("GET", path, None, {})[1].decode()

    def send_only(self, method, path, body):
        """Send a request without reading the response."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        self._connection.request(method, path, json.dumps(body), self._headers)

    def _exchange(self, method, path, body, headers):
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, self._headers | more)
            response = self._connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def get(self, path, **headers):
        """Send a GET request."""
        return self.send("GET", path, **headers)

    def post(self, path, body, **headers):
        """Send a POST request."""
        return self.send("POST", path, body, **headers)

    def close(self):
        """Close the connection."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def __del__(self):
        """Close the connection of a client that is no longer used."""
        self.close()
