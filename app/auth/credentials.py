"""Credentials of requests: HTTP Basic, and what other ways have in common (decisions 2, 12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from werkzeug.datastructures import Authorization

from app.auth.api_keys import ApiKeyCredentials, cached_principal
from app.auth.principals import UNKNOWN_KEY, Credentials, InvalidCredentials, Principal
from app.errors import InvalidParams, Sentence

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

MAX_HEADER_LENGTH = 4096
"""Longest ``Authorization`` header with parameters. A signature needs about 400 characters."""

QUERY_CREDENTIALS = frozenset(
    {
        "consumer_key",
        "consumer_secret",
        "oauth_consumer_key",
        "oauth_nonce",
        "oauth_signature",
        "oauth_signature_method",
        "oauth_timestamp",
        "oauth_token",
        "oauth_version",
    }
)
"""Query parameters with credentials. They are removed from the links in responses."""

_ELEMENT = re.compile(r'(?:[^,"]|"[^"]*")+')
_PARAMETER = re.compile(r"\s*(?:[^\s=]+\s*=|$)")


@dataclass(frozen=True, slots=True)
class Basic:
    """HTTP Basic credentials, which are parsed only if the principal is not cached (decisions 2).

    Args:
        header: the ``Authorization`` header. A malformed header is invalid.
    """

    header: str = field(repr=False)

    @property
    def consumer_key(self) -> str:
        """The consumer key."""
        pair = self._credentials()
        return pair.consumer_key if pair else ""

    def principal(self) -> Principal:
        """Return the principal of the credentials, or raise InvalidCredentials."""
        return cached_principal(self.header, self._load_principal)

    def _load_principal(self) -> Principal:
        pair = self._credentials()
        if pair is None:
            raise InvalidCredentials(unsupported_scheme(self.header) or UNKNOWN_KEY)
        return pair.load_principal()

    def _credentials(self) -> ApiKeyCredentials | None:
        given = parse_authorization(self.header)
        if given is None or given.type != "basic":
            return None
        return ApiKeyCredentials(given.username or "", given.password or "")


@dataclass(frozen=True, slots=True)
class MalformedCredentials:
    """Malformed credentials, with the reason.

    Attributes:
        kind: what is wrong: the ``scheme`` of the header, a missing ``parameter`` of a signature,
            or the ``request``.
    """

    reason: str
    kind: Literal["scheme", "parameter", "request"] = "request"
    consumer_key: str = ""

    def principal(self) -> Principal:
        """Raise InvalidCredentials."""
        raise InvalidCredentials(self.reason)


def from_basic(request: Request) -> Credentials | None:
    """Return the credentials of the ``Authorization`` header, or None (decisions 2)."""
    header = authorization_header(request)
    return None if header is None else Basic(header)


def authorization_header(request: Request) -> str | None:
    """Return the ``Authorization`` header, or None (decisions 17).

    Servers join several headers with commas. The worker of this service rejects them before that
    (``server/gunicorn_worker.py``), but not what a proxy has joined. A comma also separates the
    parameters of one header, but a parameter has an equals sign after its name, unlike the scheme
    of a second header.
    """
    header: str | None = request.environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    if "," in header:
        if len(header) > MAX_HEADER_LENGTH:
            reason = Sentence(
                "must be a single header of at most {0:,} characters.", MAX_HEADER_LENGTH
            )
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
    """Return the error for a header without a supported scheme, or an empty string."""
    scheme = next(iter(header.split(maxsplit=1)), "basic").lower()
    if scheme == "basic" or (or_oauth and scheme == "oauth"):
        return ""
    signed = ", or sign the request with OAuth 1.0a" if or_oauth else ""
    return (
        "The scheme of the Authorization header is not supported. Send an API key by HTTP Basic "
        f"authentication{signed}."
    )


ORIGINAL_REQUEST = "shop_api.original_request"
"""WSGI environ key for the OriginalRequest, if the request was changed."""


class OriginalRequest(NamedTuple):
    """A request as sent.

    Args:
        path: the decoded path.
        query: the query string.
        overrides: the values of ``_method`` in the query that are not empty. The last one overrides
            the method.
    """

    method: str
    path: str
    query: str
    overrides: Sequence[str] = ()
