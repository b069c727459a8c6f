"""What applies to every request of an app, before and after its view."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from string import punctuation
from typing import Any
from urllib.parse import quote

from flask import Flask, Request, current_app, request
from flask.sessions import SessionInterface

from app.api import authentication, converters
from app.api.error_handlers import handle_exception
from app.api.responses import JsonProvider, drain_request_body
from app.db import deadline
from app.errors import unavailable

MAX_FUNCTIONS = 1000
"""Views, hooks and error handlers of which it is cached whether they are coroutine functions."""


def _encode_query() -> None:
    """Percent-encode non-ASCII bytes in the query, because werkzeug expects ASCII."""
    query = request.query_string
    if not query.isascii():
        request.query_string = quote(query, safe=punctuation).encode()


def _begin_time() -> None:
    """Begin the time of a request, and reject a request that has waited for a slot for too long."""
    # The socket of the request, which also measures its time (server/client_socket.py).
    client = request.environ.get("gunicorn.socket")
    deadline.begin(
        current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"],
        client if hasattr(client, "started") else None,
    )
    if getattr(client, "is_rejected", False) or deadline.is_over():
        raise unavailable("The service is busy with other requests.")


class NoSessionInterface(SessionInterface):
    """Disables cookie sessions. Extension point: ``Flask.session_interface``."""

    def open_session(self, app: Flask, request: Request) -> None:
        """Return None, so that writing to ``flask.session`` raises an error."""


class WithoutUpgrades:
    """WSGI middleware that ignores ``Upgrade``, which RFC 9110 (7.8) allows.

    With ``Upgrade: websocket``, werkzeug would find only routes of websockets, of which there are
    none.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Handle a request."""
        environ.pop("HTTP_UPGRADE", None)
        return self._app(environ, start_response)  # type: ignore[no-any-return] # WSGI


def init_app(app: Flask) -> None:
    """Set what applies to every request: JSON, paths, authentication and errors."""
    app.json = JsonProvider(app)
    # Flask asks this about each function that a request calls, which takes 5 % of a short read.
    ensure = lru_cache(MAX_FUNCTIONS)(app.ensure_sync)
    app.ensure_sync = ensure  # type: ignore[method-assign]  # of this instance
    app.session_interface = NoSessionInterface()
    app.url_map.converters |= converters.CONVERTERS
    # Paths work with and without a trailing slash and never redirect (decisions 6).
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    authentication.init_app(app)
    app.register_error_handler(Exception, handle_exception)
    app.before_request(_begin_time)
    app.before_request(_encode_query)
    app.teardown_request(lambda _: deadline.end())
    app.after_request(drain_request_body)
    app.wsgi_app = WithoutUpgrades(app.wsgi_app)  # type: ignore[method-assign] # as documented by Flask
