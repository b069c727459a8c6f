"""Error pages for people who open an address of the API in a browser."""

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256

from flask import Flask, Response, current_app, g, render_template, request, url_for

from app.api.dialect import NATIVE, current_dialect
from app.api.openapi.info import GUIDES, guides_url
from app.errors import ShopError

HTML = "text/html"

_PAGES = {
    "shop_api_no_route": (
        "Page not found",
        "This is the address of an API for programs. These pages describe it:",
    ),
    "shop_api_authentication_error": (
        "An API key is required",
        (
            "Programs send the key with each request. To try out the API in the browser, open the "
            "documentation and click Authorize."
        ),
    ),
}
"""Title and advice of the errors that have a page, by their code."""

_POLICY = (
    "default-src 'none'; style-src {styles}; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


_PREFIXES = "shop_api_error_pages"  # on app.extensions


def add_error_pages(app: Flask, prefix: str, page: Callable[[ShopError], Response]) -> None:
    """Let a function create the error responses below a path without a slash at its end."""
    app.extensions.setdefault(_PREFIXES, {})[prefix] = page


def page_below_prefix(error: ShopError) -> Response | None:
    """Return the page of ``add_error_pages`` for the path of the request, or None."""
    for prefix, page in current_app.extensions.get(_PREFIXES, {}).items():
        if request.path == prefix or request.path.startswith(f"{prefix}/"):
            found: Response = page(error)
            return found
    return None


def prefers_html() -> bool:
    """Return whether the client prefers HTML to JSON, as browsers do."""
    return request.accept_mimetypes.best_match(["application/json", HTML]) == HTML


def error_page(error: ShopError) -> Response | None:
    """Return the page for an error, or None if the client gets JSON.

    A page has the status and the headers of the error. Clients that send credentials or use
    another dialect are programs.
    """
    if (
        error.code not in _PAGES
        or request.method not in {"GET", "HEAD"}
        or "Authorization" in request.headers
        or current_dialect() is not NATIVE
        or not prefers_html()
    ):
        return None
    title, advice = _PAGES[error.code]
    links = {}
    for prefix in current_app.extensions.get(_PREFIXES, ()):
        links["Admin pages, to administer the shop"] = f"{request.script_root}{prefix}/"
    links |= {
        "Documentation, to read and try out": url_for("swagger_ui.show"),
        "OpenAPI document": url_for("api-docs.openapi_json"),
    }
    if GUIDES.is_dir():
        links["Guides"] = guides_url(current_app.config)
    page = render_template(
        "error.html",
        shop=current_app.config["SHOP_NAME"],
        title=title,
        message=str(error),
        advice=advice,
        links=links.items(),
        status=error.status,
        request_id=g.request_start.ids["request_id"],
    )
    response = Response(page, error.status, error.headers, mimetype=HTML)
    response.headers["Content-Security-Policy"] = _POLICY.format(styles=hashes_of("style", page))
    response.vary.add("Accept")
    return response


def hashes_of(element: str, page: str) -> str:
    """Return the sources of a Content-Security-Policy that allow what is inline in a page.

    Args:
        element: ``script`` or ``style``.
        page: HTML that contains no data from the request in these elements.
    """
    inline = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digests = (b64encode(sha256(text.encode()).digest()) for text in inline)
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
