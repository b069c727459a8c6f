"""How a client is spoken to: names, statuses and shapes. Never a rule (decisions 12).

A dialect is data. The blueprints, schemas and services are the same in all of them; a request
brings its dialect along, put there by whoever mounts blueprints a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import marshmallow as ma
from flask import Request, request

from app.auth.credentials import from_basic, from_legacy
from app.auth.principals import Credentials
from app.schemas.customers import CustomerSchema, CustomerV3Schema
from app.schemas.legacy import QUERIES, CustomerOrdersV3Query, as_php_meant
from app.schemas.legacy_orders import LEGACY_ORDERS
from app.schemas.orders import DownloadList, LegacyDownloadList
from app.schemas.queries import CustomerOrdersQuery

IN_ENVIRON = "shop_api.api_version"
"""Where a request keeps its dialect; without one it is NATIVE."""


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """The conventions of one kind of client.

    Args:
        name: of the dialect; the blueprints of a mount carry it.
        words: what is called differently: the beginning of a native name and its own one. Error
            codes, headers and the OpenAPI document are translated by it.
        statuses: of what happened, where it is not 200: ``trashed``, ``bulk_created``.
        like_put: methods that are heard wherever PUT is.
        hides_methods: whether a path has no route for a method that it does not know.
        refuses_first: whether wrong credentials are refused also where there is no route.
        schemas: what takes the place of a schema, for conversion, answer and document alike.
        credentials: finds in a request who says to have sent it; None when nobody does.
        key_in_query: whether it finds a key and its secret in the query, too.
        converters: the path converters that replace native ones, by name.
        body: returns a parsed body as a native client would have written it; it is given the
            schema that will load the body.
        removes_trashed: whether ``force=true`` removes a record that is in the trash.
    """

    name: str
    words: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    like_put: Sequence[str] = ()
    hides_methods: bool = False
    refuses_first: bool = False
    schemas: Mapping[type[ma.Schema], type[ma.Schema]] = field(default_factory=dict)
    credentials: Callable[[Request], Credentials | None] = from_basic
    key_in_query: bool = False
    converters: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[ma.Schema, dict[str, Any]], dict[str, Any]] = lambda _, body: body
    removes_trashed: bool = False

    def translate(self, text: str) -> str:
        """Return a name, or a text with names in it, as this dialect has it."""
        for native, own in self.words.items():
            text = text.replace(native, own)
        return text

    def schema(self, native: type[ma.Schema]) -> type[ma.Schema]:
        """Return the schema that takes the place of a native one, or the native one."""
        return self.schemas.get(native, native)

    def status(self, happened: str) -> int:
        """Return the status of what happened."""
        return self.statuses.get(happened, 200)

    def methods(self, native: Sequence[str]) -> list[str]:
        """Return the methods of a route, of which the native API has some."""
        return [*native, *(m for m in self.like_put if "PUT" in native and m not in native)]

    def rule(self, native: str) -> str:
        """Return the URL rule of a native route."""
        for name, own in self.converters.items():
            native = native.replace(f"<{name}:", f"<{own}:")
        return native


NATIVE = ApiVersion("native")


def _woocommerce(
    version: str, schemas: Mapping[type[ma.Schema], type[ma.Schema]] | None = None
) -> ApiVersion:
    return ApiVersion(
        f"wc-api-{version}",
        words={"shop_api_": "woocommerce_api_", "X-Total": "X-WC-Total"},
        statuses={"trashed": 202, "bulk_created": 201},
        like_put=("POST", "PATCH"),
        hides_methods=True,
        refuses_first=True,
        schemas={
            **QUERIES,
            **LEGACY_ORDERS,
            DownloadList: LegacyDownloadList,
            **(schemas or {}),
        },
        credentials=from_legacy,
        key_in_query=True,
        converters={"code": "legacy_code"},
        body=as_php_meant,
        removes_trashed=True,
    )


WOOCOMMERCE = {
    "v2": _woocommerce("v2"),
    "v3": _woocommerce(
        "v3", {CustomerSchema: CustomerV3Schema, CustomerOrdersQuery: CustomerOrdersV3Query}
    ),
}
"""By the version in the path of a request."""

OTHER_VERSION = WOOCOMMERCE["v3"]
"""The conventions in which paths below ``/wc-api/`` respond that have another version."""


def current_api_version() -> ApiVersion:
    """Return the dialect of the current request; NATIVE outside of one."""
    try:
        api_version: ApiVersion = request.environ.get(IN_ENVIRON, NATIVE)
    except RuntimeError:
        return NATIVE
    return api_version
