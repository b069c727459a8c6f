"""Responses to requests that gunicorn rejects before they reach the app."""

from __future__ import annotations

import json
import re
import ssl
import uuid
from http import HTTPStatus
from typing import Any

from gunicorn.http import errors

_STATUSES = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
}


class RepeatedHeader(errors.ParseException):
    """A header that a request can have only once was sent more than once (decisions 17).

    Args:
        name: the name of the header.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"repeated header {name}")
        self.name = name


def error_response(log: Any, addr: Any, error: Exception) -> bytes:
    """Log an error of gunicorn and return its response in the format of the API.

    Neither contains anything that the client sent.

    Args:
        log: gunicorn's logger.
        addr: the address of the client, or None.
        error: the exception.
    """
    from app.errors import InvalidParams, ShopError  # noqa: PLC0415  # in a worker only

    if isinstance(error, errors.ParseException | ssl.SSLError) and not isinstance(
        error, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName
    ):
        reason = re.split("[:'\"]", str(error))[0]  # the rest contains what the client sent
        log.warning("Invalid request from ip=%s: %s", (addr or [""])[0], reason)
        status = _STATUSES.get(type(error), HTTPStatus.BAD_REQUEST)
        reasons = {"request": reason}
        if isinstance(error, RepeatedHeader):
            reasons = {error.name: "must be sent only once."}
        return _response(status, InvalidParams(reasons).entries())
    log.exception("Error handling request")
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return _response(status, ShopError("shop_api_internal_error").entries())


def _response(status: HTTPStatus, entries: list[dict[str, str]]) -> bytes:
    """Return a complete HTTP response with the entries of an error."""
    from app.api.security_headers import DEFAULT_HEADERS  # noqa: PLC0415  # in a worker only

    body = json.dumps({"errors": entries})
    headers = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        "X-Request-Id": uuid.uuid4().hex,
        **DEFAULT_HEADERS,
    }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} {status.phrase}", *lines, "", body]).encode()
