"""Security headers, the version header, CORS and protection against cross-site requests."""

import re
from base64 import b64encode
from hashlib import sha256

from flask import Flask, Response, current_app, request

from app.api.dialect import SAFE_METHODS
from app.api.openapi import document as openapi
from app.auth.credentials import ORIGINAL_REQUEST, OriginalRequest
from app.config import VERSION
from app.errors import ShopError

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
    """Reject cross-site changes and add security headers to all responses of an app."""
    app.before_request(_reject_cross_site_changes)
    if origins := app.config["SHOP_CORS_ORIGINS"]:
        _enable_cors(app, origins)
    app.after_request(_add_headers)


def _add_headers(response: Response) -> Response:
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
    if request.method in SAFE_METHODS or request.routing_exception is not None:
        return
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


def hashes_of(element: str, page: str) -> str:
    """Return the sources of a Content-Security-Policy that allow what is inline in a page.

    Args:
        element: ``script`` or ``style``.
        page: HTML that contains no data from the request in these elements.
    """
    inline = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digests = (b64encode(sha256(text.encode()).digest()) for text in inline)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


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
