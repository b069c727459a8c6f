"""Routing: paths and methods before it, its rules, and the variable parts of paths (spec 4).

``MountedRequests`` lets the dialect of a mount read a request in another form.
"""

import re
import string
from collections.abc import Callable, Iterable
from functools import cache
from urllib.parse import parse_qs, unquote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.routing import BaseConverter, Rule, ValidationError

from app.api.dialect import IN_ENVIRON, Dialect
from app.auth.credentials import ORIGINAL_REQUEST, OriginalRequest
from app.conversions.numbers import INT64_MAX
from app.conversions.text import is_word
from app.schemas.fields.json_schema import PATH_CODE, PATH_EMAIL, PATH_ID

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_STRAY = re.compile(
    r"%3F(?=&oauth_consumer_key=[^&]*&oauth_timestamp=[^&]*&oauth_nonce=[^&]*"
    r"&oauth_signature_method=[^&]*&oauth_signature=[^&]*$)"
)
"""A question mark that the Python client appends to signed URLs that have parameters."""


_SLASHES = re.compile(r"/{2,}")
_EMAIL = re.compile("(?<=/email/)", re.IGNORECASE)


def without_empty_parts(path: str) -> str:
    """Return a path in which several slashes are one, except in an e-mail address."""
    if "//" not in path:
        return path
    start, *email = _EMAIL.split(path, maxsplit=1)
    return _SLASHES.sub("/", start) + "".join(email)


class MountedRequests:
    """WSGI middleware that sets the dialect of requests below a path.

    It also converts paths to lower case and applies overridden methods.

    Args:
        prefix: ``SHOP_URL_PREFIX``, whose letter case counts.
        mount: the path of the mount, with a slash at the end.
        dialect_of: function that returns the dialect of a path below ``mount``.
        located: function that returns path and query of a request in their usual form, if they
            can have another one. A signature covers those that were sent.
        elsewhere: regular expression of the paths for which ``located`` is called.
    """

    def __init__(
        self,
        app: WSGIApplication,
        prefix: str,
        mount: str,
        dialect_of: Callable[[str], Dialect],
        located: Callable[[str, str], tuple[str, str]] | None = None,
        *,
        elsewhere: str = ".*",
    ) -> None:
        self._app = app
        self._mount = mount
        self._start = f"{prefix}{mount}".lower()
        self._dialect_of = dialect_of
        self._located = located
        self._elsewhere = re.compile(elsewhere, re.DOTALL)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request."""
        sent = "/" + environ["PATH_INFO"].lstrip("/")  # as in routing
        path, query = without_empty_parts(sent), environ.get("QUERY_STRING", "")
        if self._located and self._elsewhere.fullmatch(path):
            path, query = self._located(path, query)
        start = len(self._start)
        if f"{path}/"[:start].translate(_LOWER) == self._start:
            sent_query = environ.get("QUERY_STRING", "")
            environ["QUERY_STRING"] = _STRAY.sub("", query)
            overrides = _overrides(environ["QUERY_STRING"])
            environ[ORIGINAL_REQUEST] = OriginalRequest(
                environ["REQUEST_METHOD"], sent, sent_query, overrides
            )
            # Also codes and e-mail addresses. Letters beyond ASCII stay unchanged.
            rest = path[start:].translate(_LOWER)
            rest = rest.rstrip("/") if rest.endswith("//") else rest
            environ["PATH_INFO"] = path[: start - len(self._mount)] + self._mount + rest
            environ[IN_ENVIRON] = self._dialect_of(rest)
            header = environ.get("HTTP_X_HTTP_METHOD_OVERRIDE", "")
            if method := _method(overrides[-1] if overrides else header):
                environ["REQUEST_METHOD"] = method
        return self._app(environ, start_response)


def _overrides(query: str) -> list[str]:
    """Return the values of ``_method`` in a query that are not empty."""
    # Any character of a name can be percent-encoded. Most queries have no such text.
    return parse_qs(query).get("_method", []) if "_method" in unquote(query) else []


def _method(name: str) -> str:
    """Return the method with a name, in upper case, or an empty string if it cannot be a method.

    HEAD is replaced with GET. gunicorn knows only the original method, so it would announce a body
    that is never sent.
    """
    method = name.strip().upper()
    if method == "HEAD":
        return "GET"
    return method if method.isalpha() and method.isascii() else ""


class LazyRule(Rule):
    """A rule whose functions for ``url_for`` are compiled at their first call.

    Werkzeug compiles two functions for each rule as it is added, which is three quarters of
    ``create_app``. Most rules are only matched. Extension point: ``Flask.url_rule_class``.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compile_now = super()._compile_builder

        @cache
        def compiled() -> Callable[..., tuple[str, str]]:
            return compile_now(append_unknown)

        def build(rule: Rule, **values: str) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build


class IdConverter(BaseConverter):
    """``{id}``: one or more digits (spec 4). Extension point: ``url_map.converters``."""

    regex = "[0-9]+"
    schema = PATH_ID

    def to_python(self, value: str) -> int:
        """Return the ID. Larger numbers become the largest 64-bit integer (decisions 6)."""
        digits = value.lstrip("0")
        return min(int(digits or 0), INT64_MAX) if len(digits) < 20 else INT64_MAX


class CodeConverter(BaseConverter):
    """``{code}``: a word character, then word characters, white space and hyphens (spec 4.1)."""

    schema = PATH_CODE

    def to_python(self, value: str) -> str:
        """Return the code, or raise ValidationError if the path does not match."""
        if not all(is_word(char) or char.isspace() or char == "-" for char in value):
            raise ValidationError
        if not is_word(value[0]):
            raise ValidationError
        return value


class EmailConverter(BaseConverter):
    """``{email}``: any text, including slashes (spec 4.2)."""

    regex = ".+"
    schema = PATH_EMAIL
    part_isolating = False

    def to_python(self, value: str) -> str:
        return value.removesuffix("/")


CONVERTERS = {"id": IdConverter, "code": CodeConverter, "email": EmailConverter}
