"""The ``Authorization`` header of a request (decisions 17)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from werkzeug.datastructures import Authorization

from app.errors import InvalidParams

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

MAX_HEADER_LENGTH = 4096
"""Longest ``Authorization`` header with parameters. A signature needs about 400 characters."""

_ELEMENT = re.compile(r'(?:[^,"]|"[^"]*")+')
_PARAMETER = re.compile(r"\s*(?:[^\s=]+\s*=|$)")


def authorization_header(request: Request) -> str | None:
    """Return the ``Authorization`` header, or None (decisions 17).

    Servers join several headers with commas. The worker of this service rejects them before that
    (``server/gunicorn_worker.py``), but not what a proxy has joined. A comma also separates the
    parameters of one header, but a parameter has an equals sign after its name, unlike the scheme
    of a second header.

    Raises:
        InvalidParams: there are several headers, or a header with parameters is too long.
    """
    header: str | None = request.environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    if "," in header:
        if len(header) > MAX_HEADER_LENGTH:
            reason = f"must be a single header of at most {MAX_HEADER_LENGTH:,} characters."
            raise InvalidParams({"Authorization": reason})
        first, *others = _ELEMENT.findall(header) or [""]
        basic = first.strip()[:6].lower() == "basic "  # has no parameters
        if basic or not all(map(_PARAMETER.match, others)):
            raise InvalidParams({"Authorization": "must be sent only once."})
    return header


def parse_authorization(header: str) -> Authorization | None:
    """Return the parsed header, or None for an empty or malformed header."""
    try:
        return Authorization.from_header(header)
    except ValueError:  # raised by werkzeug for characters beyond ASCII
        return None


def unsupported_scheme(header: str, *, or_oauth: bool = False) -> str:
    """Return the error for a header without a supported scheme, or an empty string.

    Args:
        header: the header. It can be empty.
        or_oauth: whether OAuth is supported, in addition to Basic.
    """
    scheme = next(iter(header.split(maxsplit=1)), "basic").lower()
    if scheme == "basic" or (or_oauth and scheme == "oauth"):
        return ""
    signed = ", or sign the request with OAuth 1.0a" if or_oauth else ""
    return (
        "The scheme of the Authorization header is not supported. Send an API key by HTTP Basic "
        f"authentication{signed}."
    )
