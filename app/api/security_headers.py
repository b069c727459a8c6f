"""What every answer tells browsers and caches, and which other origins may ask."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from flask import Flask, Response, current_app, request

from app.api import openapi

ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Nothing guesses what an answer is; nothing keeps one, unless it says itself that it may."""

DOCS = "swagger_ui.show"

_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)

# Swagger UI's own files, and requests to the service; it styles its elements one by one.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def init_app(app: Flask) -> None:
    """Add the headers to every answer of an app."""
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
    return response


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
