"""The HTTP client of a run: it records each request, and loses responses on purpose."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from typing import Any

from qa.histories.history import UNKNOWN, Operation

TIMEOUT = 40  # seconds; a request takes less, unless it hangs
LOST = OSError, http.client.HTTPException, ValueError
UNDECIDED = 500
"""A response with this status or above does not say whether the write was committed."""


class Client:
    """Sends one request at a time to a port of the loopback interface."""

    def __init__(
        self,
        port: int,
        key: tuple[str, str],
        number: int = 0,
        read_only: tuple[str, str] = ("", ""),
    ) -> None:
        self._number = number  # of the API key
        self._headers = _authorization(key)
        self._read_only = _authorization(read_only)
        self.port = port
        self._connection: http.client.HTTPConnection | None = None
        self.headers: dict[str, str] = {}  # of the last response

    def send(self, operation: Operation, clock: Any) -> None:
        """Send the request of an operation and record its result.

        Args:
            clock: returns the seconds since the start of the run.
        """
        wanted = {
            "X-Request-Id": operation.request_id,
            "Idempotency-Key": operation.key,
            "X-Shop-Position": operation.position,
            "If-Match": operation.args.get("etag"),
        }
        headers = {name: value for name, value in wanted.items() if value}
        if operation.kind == "read_only":
            headers |= self._read_only
        if credentials := operation.args.get("credentials"):
            headers |= _authorization(tuple(credentials))
        operation.api_key = self._number
        operation.invoked = clock()
        try:
            status, response = self.exchange(
                operation.method, operation.path, operation.body, headers
            )
        except LOST:
            status, response = UNKNOWN, None
        if status is not UNKNOWN and status >= UNDECIDED:
            operation.args["undecided"], status = status, UNKNOWN
        operation.returned = clock()
        operation.status, operation.response = status, response
        if total := self.headers.get("x-total"):
            operation.args["total"] = int(total)
        operation.replayed = self.headers.get("idempotent-replayed") == "true"

    def exchange(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return the status and the body of a response. Raises one of LOST without one."""
        self.headers = {}
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(
                    "127.0.0.1", self.port, timeout=TIMEOUT
                )
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, self._headers | (headers or {}))
            response = self._connection.getresponse()
            content = response.read()
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, json.loads(content) if content else None
        except LOST:
            self.close()
            raise

    def get(self, path: str) -> Any:
        """Return the body of a response with status 200."""
        status, body = self.exchange("GET", path)
        assert status == 200, f"{status} for GET {path}: {body}"
        return body

    def close(self) -> None:
        """Close the connection."""
        if self._connection:
            self._connection.close()
        self._connection = None


def _authorization(key: tuple[str, str]) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(':'.join(key).encode()).decode()}"}
