"""API versions: native, and versions 2 and 3 of the legacy API (decisions 12).

Versions differ in names, statuses and formats, but not in rules.

All API versions use the same blueprints, schemas and services. The version of a request is in its
WSGI environ, where the second mount of the blueprints sets it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import marshmallow as ma
from flask import Request, request

from app.auth.credentials import from_basic, from_legacy
from app.auth.principals import Credentials
from app.errors import ShopError
from app.schemas.customers import CustomerSchema, CustomerV3Schema, LegacyCustomerSchema
from app.schemas.legacy.metadata import LEGACY_METADATA
from app.schemas.legacy.orders import LEGACY_ORDERS
from app.schemas.legacy.refunds import LEGACY_REFUNDS, LegacyOrderRefundV3Schema
from app.schemas.legacy.requests import QUERIES, CustomerOrdersV3Query, native_object
from app.schemas.orders.order import (
    DownloadList,
    LegacyDownloadList,
)
from app.schemas.orders.refund import OrderRefundSchema
from app.schemas.queries import CustomerOrdersQuery

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""The methods that change nothing, in every version (RFC 9110, 9.2.1)."""

IN_ENVIRON = "shop_api.api_version"
"""The WSGI environ key for the API version. The default is NATIVE."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the frame of every request needs to know. Each mount of the API has one.

    Args:
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
    """

    words: Mapping[str, str] = field(default_factory=dict)
    credentials: Callable[[Request], Credentials | None] = from_basic
    key_in_query: bool = False
    hides_methods: bool = False
    authenticates_first: bool = False
    has_strict_requests: bool = False
    has_plain_filters: bool = False
    error_body: Callable[[ShopError], Any] | None = None

    def translate(self, text: str) -> str:
        """Replace native names in a text with the names of this dialect."""
        for native, own in self.words.items():
            text = text.replace(native, own)
        return text


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """A mount of the API: its dialect, and what it substitutes in the native blueprints.

    Args:
        dialect: the dialect of its requests.
        statuses: the status for ``trashed`` and ``bulk_created``, if it is not 200.
        like_put: methods that are accepted in addition to PUT.
        schemas: replacements for schemas, in requests, responses and the OpenAPI document.
        converters: replacements for native path converters, by name.
        native_object: function that takes a schema and a parsed object, such as a body or the item
            of a bulk request, and returns the object that the schema loads.
        removes_trashed: whether ``force=true`` deletes a record that is in the trash.
    """

    name: str
    dialect: Dialect = field(default_factory=Dialect)
    statuses: Mapping[str, int] = field(default_factory=dict)
    like_put: Sequence[str] = ()
    schemas: Mapping[type[ma.Schema], type[ma.Schema]] = field(default_factory=dict)
    converters: Mapping[str, str] = field(default_factory=dict)
    native_object: Callable[[ma.Schema, Any], Any] = lambda _, value: value
    removes_trashed: bool = False

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
            native = native.replace(f"<{name}:", f"<{own}:")
        return native


NATIVE = ApiVersion("native", Dialect(has_strict_requests=True, has_plain_filters=True))


_LEGACY = Dialect(
    words={
        # The code of the legacy server has a plural here, unlike those of other records.
        "shop_api_user_cannot_create_webhook": "woocommerce_api_user_cannot_create_webhooks",
        "shop_api_user_cannot_view_reports": "woocommerce_api_user_cannot_read_report",
        "shop_api_": "woocommerce_api_",
        "X-Total": "X-WC-Total",
    },
    credentials=from_legacy,
    key_in_query=True,
    hides_methods=True,
    authenticates_first=True,
)


def _woocommerce(
    version: str, schemas: Mapping[type[ma.Schema], type[ma.Schema]] | None = None
) -> ApiVersion:
    return ApiVersion(
        f"wc-api-{version}",
        _LEGACY,
        statuses={"trashed": 202, "bulk_created": 201},
        like_put=("POST", "PATCH"),
        schemas={
            **QUERIES,
            **LEGACY_METADATA,
            **LEGACY_ORDERS,
            **LEGACY_REFUNDS,
            CustomerSchema: LegacyCustomerSchema,
            DownloadList: LegacyDownloadList,
            **(schemas or {}),
        },
        converters={"code": "legacy_code"},
        native_object=native_object,
        removes_trashed=True,
    )


WOOCOMMERCE = {
    "v2": _woocommerce("v2"),
    "v3": _woocommerce(
        "v3",
        {
            CustomerSchema: CustomerV3Schema,
            CustomerOrdersQuery: CustomerOrdersV3Query,
            OrderRefundSchema: LegacyOrderRefundV3Schema,
        },
    ),
}
"""The API versions by the version in the request path."""

OTHER_VERSION = WOOCOMMERCE["v3"]
"""The API version for other paths below ``/wc-api/``."""


_is_native: ContextVar[bool] = ContextVar("is_native", default=False)


@contextmanager
def in_native_form() -> Iterator[None]:
    """Make ``current_api_version`` return NATIVE, whatever the version of the request is.

    Events have the native form, also when the legacy API makes the change (events 1).
    """
    token = _is_native.set(True)
    try:
        yield
    finally:
        _is_native.reset(token)


def current_api_version() -> ApiVersion:
    """Return the API version of the current request, or NATIVE outside of a request."""
    if _is_native.get():
        return NATIVE
    try:
        api_version: ApiVersion = request.environ.get(IN_ENVIRON, NATIVE)
    except RuntimeError:
        return NATIVE
    return api_version


def current_dialect() -> Dialect:
    """Return the dialect of the current request, or that of NATIVE outside of a request."""
    return current_api_version().dialect
