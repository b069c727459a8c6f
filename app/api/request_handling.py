"""What applies to every request of an app, before and after its view."""

from string import punctuation
from typing import IO
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from flask import Flask, Request, current_app, request
from flask.sessions import SessionInterface
from werkzeug.utils import cached_property

from app.api import authentication, routing
from app.api.error_handlers import handle_exception
from app.api.responses import JsonProvider, drain_request_body
from app.db import deadline
from app.errors import ShopError, unavailable


def _begin_time() -> None:
    """Begin the time of a request, and reject a request that the server cannot let in.

    The server has rejected the request itself (``server/gunicorn_worker.py``), or it has waited for
    a slot for too long.
    """
    # The socket of the request, which also measures its time (server/client_socket.py).
    environ = request.environ
    client = environ.get("gunicorn.socket")
    deadline.begin(
        current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"],
        client if hasattr(client, "started") else None,
    )
    if rejection := environ.get("shop_api.rejection"):
        raise rejection
    if getattr(client, "is_rejected", False) or deadline.is_over():
        raise unavailable("The service is busy with other requests.")


class NoSessionInterface(SessionInterface):
    """Disables cookie sessions. Extension point: ``Flask.session_interface``."""

    def open_session(self, app: Flask, request: Request) -> None:
        """Return None, so that writing to ``flask.session`` raises an error."""


class PreparedRequest(Request):
    """A request that werkzeug understands. Extension point: ``Flask.request_class``.

    It ignores ``Upgrade``, which RFC 9110 (7.8) allows: with ``Upgrade: websocket``, werkzeug would
    find only routes of websockets, of which there are none. It percent-encodes bytes of the query
    that are not ASCII, which werkzeug cannot decode unless they are UTF-8. Several slashes in the
    path are one, without a redirect. Its body must not be compressed.
    """

    def __init__(self, environ: WSGIEnvironment, **options: bool) -> None:
        environ.pop("HTTP_UPGRADE", None)
        environ["PATH_INFO"] = routing.without_empty_parts(environ["PATH_INFO"])
        query = environ.get("QUERY_STRING", "")
        if not query.isascii():
            environ["QUERY_STRING"] = quote(query.encode("latin-1"), safe=punctuation)
        super().__init__(environ, **options)

    @cached_property
    def stream(self) -> IO[bytes]:
        """Return the body, which everything that reads it uses.

        Raises:
            ShopError: the body is compressed. A few bytes could expand to gigabytes.
        """
        coding = self.headers.get("Content-Encoding", "").strip()
        has_body = self.content_length or "HTTP_TRANSFER_ENCODING" in self.environ
        if has_body and coding.lower() not in {"", "identity"}:
            raise ShopError(
                "shop_api_unsupported_media_type",
                param="Content-Encoding",
                coding=coding[:40],
                headers={"Accept-Encoding": "identity"},  # RFC 9110, section 12.5.3
            )
        return super().stream


def _log_nothing(exc_info: object) -> None:
    """Replace ``Flask.log_exception``."""


def init_app(app: Flask) -> None:
    """Set what applies to every request: JSON, paths, authentication and errors."""
    app.json = JsonProvider(app)
    app.session_interface = NoSessionInterface()
    app.request_class = PreparedRequest
    app.url_map.converters |= routing.CONVERTERS
    # Paths work with and without a trailing slash and never redirect (decisions 6).
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    authentication.init_app(app)
    app.register_error_handler(Exception, handle_exception)
    # Flask would log an error in an error handler with a traceback, before this handler logs it.
    app.log_exception = _log_nothing  # type: ignore[method-assign] # as documented by Flask
    app.before_request(_begin_time)
    app.teardown_request(deadline.end)
    app.after_request(drain_request_body)
