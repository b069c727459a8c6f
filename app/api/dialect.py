"""What one mount of the API needs on each request.

Every mount uses the same blueprints, schemas and services. Dialects differ in names, statuses and
formats, but not in rules. The dialect of a request is in its WSGI environ, where the mount sets it
(``app.api.routing``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import marshmallow as ma
from flask import Request, request
from werkzeug.routing import BaseConverter

from app.auth.credentials import from_basic
from app.auth.principals import Credentials
from app.errors import ShopError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""The methods that change nothing, in every dialect (RFC 9110, 9.2.1)."""

IN_ENVIRON = "shop_api.dialect"
"""The WSGI environ key for the dialect. The default is NATIVE."""

Schemas = Mapping[type[ma.Schema], type[ma.Schema]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one mount needs on each request, and what it substitutes in the blueprints of the core.

    Args:
        mount: name of the mount, in the names of its blueprints and settings: ``wc-api-v3``.
        words: replacements for prefixes of native names in error codes, headers and the OpenAPI
            document.
        credentials: function that returns the credentials of a request, or None.
        key_in_query: whether the query can contain a consumer key and secret.
        hides_methods: whether a method that is not allowed gets the error for an unknown route.
        authenticates_first: whether invalid credentials take precedence over an unknown route.
        has_strict_requests: whether a client can ask for strict handling.
        has_plain_filters: whether ``limit`` means the same as ``filter[limit]`` (decisions 16).
        error_body: function that takes an error and returns the body of its response, or None for
            the native form. It can change the status of the error.
        statuses: the status for ``trashed`` and ``bulk_created``, if it is not 200.
        like_put: methods that are accepted in addition to PUT.
        schemas: replacements for schemas, in requests, responses and the OpenAPI document.
        converters: replacements for native path converters, by name.
        native_object: function that takes a schema and a parsed object, such as a body or the item
            of a bulk request, and returns the object that the schema loads.
        removes_trashed: whether ``force=true`` deletes a record that is in the trash.
    """

    mount: str
    words: Mapping[str, str] = field(default_factory=dict)
    credentials: Callable[[Request], Credentials | None] = from_basic
    key_in_query: bool = False
    hides_methods: bool = False
    authenticates_first: bool = False
    has_strict_requests: bool = False
    has_plain_filters: bool = False
    error_body: Callable[[ShopError], object] | None = None
    statuses: Mapping[str, int] = field(default_factory=dict)
    like_put: Sequence[str] = ()
    schemas: Schemas = field(default_factory=dict)
    converters: Mapping[str, type[BaseConverter]] = field(default_factory=dict)
    native_object: Callable[[ma.Schema, object], object] = lambda _, value: value
    removes_trashed: bool = False

    def translate(self, text: str) -> str:
        """Replace native names in a text with the names of this dialect."""
        for native, own in self.words.items():
            text = text.replace(native, own)
        return text

    def schema(self, native: type[ma.Schema]) -> type[ma.Schema]:
        """Return the replacement for a native schema, or the native schema."""
        return self.schemas.get(native, native)

    def status(self, event: str) -> int:
        """Return the status for ``trashed`` or ``bulk_created``."""
        return self.statuses.get(event, 200)

    def methods(self, native: Sequence[str]) -> list[str]:
        """Return the methods of a route, given its native methods."""
        return [*native, *(m for m in self.like_put if "PUT" in native and m not in native)]

    def rule(self, native: str) -> str:
        """Return the URL rule of a route, given its native rule."""
        for name, own in self.converters.items():
            native = native.replace(f"<{name}:", f"<{own.__name__}:")
        return native


NATIVE = Dialect("native", has_strict_requests=True, has_plain_filters=True)


def current_dialect() -> Dialect:
    """Return the dialect of the current request, or NATIVE outside of a request."""
    try:
        dialect: Dialect = request.environ.get(IN_ENVIRON, NATIVE)
    except RuntimeError:
        return NATIVE
    return dialect
