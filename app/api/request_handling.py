"""What applies to every request of an app, before and after its view.

Its deadline, its body, security headers, the version header, CORS, and protection against
cross-site requests.
"""

import re
from string import punctuation
from typing import IO
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from flask import Flask, Request, Response, current_app, request
from flask.sessions import SessionInterface
from werkzeug.utils import cached_property

from app.api import authentication, routing
from app.api.dialect import SAFE_METHODS
from app.api.error_handlers import handle_exception
from app.api.error_pages import hashes_of
from app.api.openapi import document as openapi
from app.api.responses import JsonProvider, drain_request_body
from app.auth.credentials import ORIGINAL_REQUEST, OriginalRequest
from app.config import VERSION
from app.db import deadline
from app.errors import ShopError, unavailable

DEFAULT_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "X-Shop-Version": VERSION,
}
"""Headers of all responses that do not set these headers themselves."""

DOCS = "swagger_ui.show"

# Requests that any page can send without a preflight (Fetch standard, CORS-safelisted).
_SIMPLE_METHODS = frozenset({"GET", "HEAD", "POST"})
_SIMPLE_TYPES = frozenset(
    {"", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"}
)

_NAMES = ("Total", "TotalPages", "Total-Complete")
_TOTALS = [f"X-{dialect}-{name}" for dialect in ("WC", "WP") for name in _NAMES]
"""Names of the totals of lists in other dialects."""

# Allows the files of Swagger UI, requests to the service, and the inline styles of Swagger UI.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def init_app(app: Flask) -> None:
    """Set what applies to every request: headers, JSON, paths, authentication and errors."""
    if origins := app.config["SHOP_CORS_ORIGINS"]:
        _enable_cors(app, origins)
    app.before_request(_admit)
    app.after_request(_finish)
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
    app.teardown_request(deadline.end)


def _admit() -> None:
    """Begin the time of a request, and reject a request that the server cannot let in.

    The server has rejected the request itself (``server/gunicorn_worker.py``), or it has waited for
    a slot for too long.
    """
    if request.method not in SAFE_METHODS and request.routing_exception is None:
        _reject_cross_site_changes()
    # The socket of the request, which also measures its time (server/client_socket.py).
    environ = request.environ
    client = environ.get("gunicorn.socket")
    deadline.begin(
        current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"],
        client if hasattr(client, "started") else None,
    )
    if rejection := environ.get("shop_api.rejection"):
        raise rejection
    if client and (getattr(client, "is_rejected", False) or deadline.is_over()):
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
        coding = self.environ.get("HTTP_CONTENT_ENCODING", "").strip()
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


def _finish(response: Response) -> Response:
    """Read the rest of the body, and add the headers of all responses."""
    drain_request_body(response)
    headers = response.headers
    sent = {name.lower() for name, _ in headers}
    for name, value in DEFAULT_HEADERS.items():
        if name.lower() not in sent:
            headers.add(name, value)
    if request.endpoint == DOCS and response.mimetype == "text/html":
        response.headers["Content-Security-Policy"] = _policy(response)
    if response.status_code == 401 and request.headers.get("Sec-Fetch-Mode") in {
        "cors",
        "same-origin",
    }:
        # With this header, the browser would prompt for a password in requests from scripts.
        headers.pop("WWW-Authenticate", None)
    return response


def _reject_cross_site_changes() -> None:
    """Reject unsafe requests that a browser sends for a page of another site (decisions 17).

    A browser adds stored HTTP Basic credentials to every request to this host. Other clients send
    neither of the headers and are not affected.
    """
    origin = request.headers.get("Origin")
    cross_site = request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}
    if origin is not None and not cross_site:
        cross_site = not _is_same_origin(origin)
    if cross_site and not _is_change_allowed(origin):
        raise ShopError("shop_api_cross_site_request")


def _is_same_origin(origin: str) -> bool:
    """Return whether an origin is the origin of this request's URL."""
    host = request.headers.get("Host", "").lower()
    same = {f"https://{host}", f"https://{host.removesuffix(':443')}"}
    if not request.is_secure:  # includes TLS behind an untrusted proxy
        same |= {f"http://{host}", f"http://{host.removesuffix(':80')}"}
    return origin.lower() in same


def _is_change_allowed(origin: str | None) -> bool:
    """Return whether SHOP_CORS_ORIGINS allows unsafe requests from an origin.

    ``*`` allows every page to use its own key, but not the credentials stored in the browser.
    Requests that a form could send without a preflight are therefore rejected.
    """
    origins = {each.lower() for each in current_app.config["SHOP_CORS_ORIGINS"]}
    if origin is None or origin.lower() in origins:
        return origin is not None
    sent: OriginalRequest | None = request.environ.get(ORIGINAL_REQUEST)
    method = sent.method if sent else request.method
    could_be_a_form = method in _SIMPLE_METHODS and request.mimetype in _SIMPLE_TYPES
    return "*" in origins and not could_be_a_form


def _policy(response: Response) -> str:
    """Return the Content-Security-Policy of a page of Swagger UI, including its inline scripts."""
    page = "" if response.direct_passthrough else response.get_data(as_text=True)
    return _DOCS_POLICY.format(scripts=hashes_of("script", page))


def _enable_cors(app: Flask, origins: tuple[str, ...]) -> None:
    from flask_cors import CORS  # noqa: PLC0415  # slow import, needed only with CORS

    app.before_request(_handle_preflight)
    CORS(
        app,
        # The pages of other sites have no business with the admin pages.
        resources=rf"{re.escape(app.config['SHOP_URL_PREFIX'])}/(?!admin(/|$)).*",
        origins=list(origins),
        expose_headers=[*openapi.HEADERS, *_TOTALS, "Preference-Applied"],
        max_age=600,
        always_send=False,
        intercept_exceptions=False,  # errors pass through the same hooks as other responses
    )


def _handle_preflight() -> Response | None:
    """Respond to CORS preflight requests, which have no credentials."""
    if (
        request.method == "OPTIONS"
        and request.url_rule
        and "Access-Control-Request-Method" in request.headers
    ):
        return current_app.make_default_options_response()
    return None
