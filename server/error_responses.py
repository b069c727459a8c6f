"""Responses to requests that gunicorn rejects before they reach the app."""

from __future__ import annotations

import re
import ssl
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote
from wsgiref.util import setup_testing_defaults

from gunicorn.http import errors

_STATUSES = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
}

_TARGET = re.compile(rb"\s*[^\s/]+ (/[^\s?#]*)(?:\?([^\s#]*))?")
"""The method, the path and the query at the beginning of a request."""


class RepeatedHeader(errors.ParseException):
    """A header that a request can have only once was sent more than once (decisions 17).

    Args:
        name: the name of the header.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"repeated header {name}")
        self.name = name


def error_response(app: Any, log: Any, addr: Any, error: Exception, received: bytes) -> bytes:
    """Log an error of gunicorn and return its response, in the dialect of the path.

    Neither contains anything that the client sent.

    Args:
        app: the WSGI app, which makes the response.
        log: gunicorn's logger.
        addr: the address of the client, or None.
        error: the exception.
        received: the beginning of the request.
    """
    from app.errors import InvalidParams, ShopError  # noqa: PLC0415  # in a worker only

    rejection = ShopError("shop_api_internal_error")
    if isinstance(error, errors.ParseException | ssl.SSLError) and not isinstance(
        error, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName
    ):
        reason = re.split("[:'\"]", str(error))[0]  # the rest contains what the client sent
        log.warning("Invalid request from ip=%s: %s", (addr or [""])[0], reason)
        status = _STATUSES.get(type(error), HTTPStatus.BAD_REQUEST)
        reasons = {"request": reason}
        if isinstance(error, RepeatedHeader):
            reasons = {error.name: "must be sent only once."}
        rejection = InvalidParams(reasons).with_status(status)
    rejection.__cause__ = error  # for the log
    return _response(app, rejection, _TARGET.match(received))


def _response(app: Any, rejection: Exception, target: re.Match[bytes] | None) -> bytes:
    """Return the complete HTTP response to a request that the app must reject."""
    from werkzeug.test import run_wsgi_app  # noqa: PLC0415  # after an error only

    path, query = target.groups(b"") if target else (b"/", b"")
    environ: dict[str, object] = {
        "PATH_INFO": unquote(path.decode("latin-1"), "latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "shop_api.rejection": rejection,
    }
    setup_testing_defaults(environ)
    body, status, headers = run_wsgi_app(app, environ, buffered=True)
    headers["Connection"] = "close"
    lines = [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + b"".join(body)
