"""What every answer tells browsers and caches, and which other origins may ask."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from flask import Flask, Response, current_app, request

from app.api import openapi
from app.auth.credentials import ORIGINAL_REQUEST
from app.errors import ShopError

ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Nothing guesses what an answer is; nothing keeps one, unless it says itself that it may."""

DOCS = "swagger_ui.show"

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""The methods that change nothing (RFC 9110, 9.2.1)."""

# What a form of any page can send without asking first (Fetch standard, CORS-safelisted).
_SIMPLE_METHODS = frozenset({"GET", "HEAD", "POST"})
_SIMPLE_TYPES = frozenset(
    {"", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"}
)

_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)

# Swagger UI's own files, and requests to the service; it styles its elements one by one.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def init_app(app: Flask) -> None:
    """Refuse changes from other sites, and add the headers to every answer of an app."""
    app.before_request(_refuse_other_sites)
    if origins := app.config["SHOP_CORS_ORIGINS"]:
        _open_to(app, origins)
    app.after_request(_add)


def _add(response: Response) -> Response:
    headers = response.headers
    for name, value in ALWAYS.items():
        if name not in headers:
            headers.add(name, value)
    if request.endpoint == DOCS and response.mimetype == "text/html":
        response.headers["Content-Security-Policy"] = _policy(response)
    if response.status_code == 401 and request.headers.get("Sec-Fetch-Mode") in {
        "cors",
        "same-origin",
    }:
        # A script shows the error itself; with this header the browser would ask for a password.
        headers.pop("WWW-Authenticate", None)
    return response


def _refuse_other_sites() -> None:
    """Refuse a change that a page of another site makes its visitor's browser send (decisions 17).

    A browser that remembers a key for HTTP Basic adds it to every request to this host. Programs
    other than browsers send neither of the headers and are not concerned.

    Raises:
        ShopError: the request changes something and comes from elsewhere.
    """
    if request.method in SAFE_METHODS or request.routing_exception is not None:
        return
    origin = request.headers.get("Origin")
    elsewhere = request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}
    if origin is not None and not elsewhere:
        elsewhere = not _is_here(origin)
    if elsewhere and not _may_change(origin):
        raise ShopError("shop_api_cross_site_request")


def _is_here(origin: str) -> bool:
    """Tell whether an origin is the one at which this request arrived."""
    host = request.headers.get("Host", "").lower()
    here = {f"https://{host}", f"https://{host.removesuffix(':443')}"}
    if not request.is_secure:  # behind a proxy that is not trusted, TLS looks like this too
        here |= {f"http://{host}", f"http://{host.removesuffix(':80')}"}
    return origin.lower() in here


def _may_change(origin: str | None) -> bool:
    """Tell whether SHOP_CORS_ORIGINS lets the pages of an origin change something.

    ``*`` lets every page use a key that it has itself. It does not let it use the one that the
    browser remembers: what a form could send, which needs no permission, is refused.
    """
    origins = {each.lower() for each in current_app.config["SHOP_CORS_ORIGINS"]}
    if origin is None or origin.lower() in origins:
        return origin is not None
    sent = request.environ.get(ORIGINAL_REQUEST)
    method = sent[0] if sent else request.method
    could_be_a_form = method in _SIMPLE_METHODS and request.mimetype in _SIMPLE_TYPES
    return "*" in origins and not could_be_a_form


def _policy(response: Response) -> str:
    """Return the policy of a page of the documentation, with its own script and no other.

    Nothing of a request is on the page.
    """
    page = "" if response.direct_passthrough else response.get_data(as_text=True)
    digests = (b64encode(sha256(script.encode()).digest()) for script in _INLINE.findall(page))
    scripts = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return _DOCS_POLICY.format(scripts=scripts)


def _open_to(app: Flask, origins: tuple[str, ...]) -> None:
    from flask_cors import CORS  # noqa: PLC0415  # who has no other origins pays nothing for them

    app.before_request(_answer_preflight)
    CORS(
        app,
        origins=list(origins),
        expose_headers=[*openapi.HEADERS],
        max_age=600,
        always_send=False,
        intercept_exceptions=False,  # errors pass the same way as all answers
    )


def _answer_preflight() -> Response | None:
    """Answer a browser that asks whether it may ask: it sends no credentials with that."""
    if (
        request.method == "OPTIONS"
        and request.url_rule
        and "Access-Control-Request-Method" in request.headers
    ):
        return current_app.make_default_options_response()
    return None
