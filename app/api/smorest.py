"""The Api class of flask-smorest, customized with its documented extension points.

It sets prefixes, path converters, field types of the OpenAPI document and the error handler.
``app.api.blueprint`` customizes the blueprints.
"""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from threading import RLock
from typing import Any, Self

import click
import flask_smorest
import orjson
from flask import Flask, Response, request
from flask_smorest.spec import openapi_cli

from app.api import routing
from app.api.dialect import NATIVE, Dialect
from app.api.error_handlers import handle_exception
from app.api.openapi import document as openapi
from app.api.openapi import fields as openapi_fields
from app.api.openapi import info as openapi_info
from app.catalog import EXTENSION, Catalog, OrderExtension
from app.config import VERSION
from app.errors import ShopError
from app.schemas.base import ErrorResponse
from app.schemas.orders.order import OrderSchema


@dataclass(frozen=True, slots=True)
class ServedDocument:
    """A document as it is sent.

    Args:
        text: the JSON text, without white space.
        compressed: the same in gzip format.
        tag: the hash of the text.
    """

    text: bytes
    compressed: bytes
    tag: str

    @classmethod
    def of(cls, document: openapi.Document) -> Self:
        """Return a document in both forms."""
        text = orjson.dumps(document)
        tag = blake2b(text, digest_size=16).hexdigest()
        return cls(text, gzip.compress(text, mtime=0), tag)

    def response(self) -> Response:
        """Return the response to the current request, 304 if the client has the document.

        Raises:
            ShopError: ``If-Match`` names another version of the document.
        """
        is_compressed = request.accept_encodings["gzip"] > 0
        response = Response(
            self.compressed if is_compressed else self.text, content_type="application/json"
        )
        if is_compressed:
            response.content_encoding = "gzip"
        response.vary.add("Accept-Encoding")
        response.cache_control.no_cache = True  # store it, and ask whether it has changed
        # The bytes differ between the two forms, and so must their tags (RFC 9110, section 8.8.3).
        response.set_etag(f"{self.tag}-gzip" if is_compressed else self.tag)
        response.make_conditional(request)
        if response.status_code == HTTPStatus.PRECONDITION_FAILED:
            raise ShopError("shop_api_precondition_failed")
        return response


class Api(flask_smorest.Api):
    """The routes and the OpenAPI document of a dialect.

    Most processes, such as commands, never need the document, and it costs several times as much as
    everything else in ``create_app``. It is therefore built when it is first used: by a request of
    ``/openapi.json`` or by ``shop-api openapi write``. If that fails, every use raises the error.

    Args:
        path: the path of all routes, below ``SHOP_URL_PREFIX``.
    """

    ERROR_SCHEMA = ErrorResponse
    DEFAULT_ERROR_RESPONSE_NAME = None  # documented per operation

    def __init__(self, dialect: Dialect = NATIVE, path: str = "") -> None:
        self.dialect = dialect
        self.path = path
        self.mounts: list[Api] = []
        self._spec: Any = None
        self._pending: list[Callable[[], None]] = []
        self._is_loaded = False
        self._error: Exception | None = None
        self._served: ServedDocument | None = None
        self._lock = RLock()
        super().__init__(config_prefix="" if dialect is NATIVE else dialect.mount.replace("-", "_"))

    @property
    def spec(self) -> Any:
        """The OpenAPI document, complete after all plugins are loaded.

        Raises:
            RuntimeError: the document cannot be built.
        """
        if self._is_loaded and self._pending:
            with self._lock:
                self._build()
        return self._spec

    @spec.setter
    def spec(self, spec: object) -> None:
        self._spec = spec

    def _build(self) -> None:
        """Call the pending functions. After an error, the document stays incomplete."""
        try:
            if self._error:
                raise self._error
            while self._pending:
                self._pending[0]()
                del self._pending[0]
        except Exception as error:  # views and schemas of plugins can raise anything
            self._error = error
            raise RuntimeError(f"The OpenAPI document cannot be built: {error}") from error

    def describe_later(self, describe: Callable[[], None]) -> None:
        """Call a function that adds to ``spec``, when it is first used."""
        self._pending.append(describe)
        self._served = None

    def init_app(self, app: Flask, *, description: str | None = None) -> None:
        """Initialize the OpenAPI document and its routes."""
        app.config[f"{self.config_prefix}OPENAPI_URL_PREFIX"] = (
            f"{app.config['SHOP_URL_PREFIX']}{self.path}" or "/"
        )
        spec = {
            "title": app.config["SHOP_NAME"],
            "version": VERSION,
            "openapi_version": app.config["SHOP_OPENAPI_VERSION"],
            "info": openapi_info.info(app.config, description),
            "servers": [{"url": "/"}],
            "flask_plugin": openapi_fields.PathPlugin(),
            "marshmallow_plugin": openapi_fields.FieldPlugin(self.dialect.schemas),
        }
        super().init_app(app, spec_kwargs=spec)
        app.cli.add_command(_commands())
        # Its examples look like orders. To search them takes ten times as long as the response.
        documents: Any = app.blueprints[self._make_doc_blueprint_name()]
        documents.extends_orders = True
        app.url_map.converters |= {each.__name__: each for each in self.dialect.converters.values()}
        for converter in (*routing.CONVERTERS.values(), *self.dialect.converters.values()):
            self.register_converter(converter, self._path_schema)
        for name, header in openapi.HEADERS.items():
            self.spec.components.header(name, header)
        # The schema of flask-smorest's pagination, which is not used.
        self.spec.components.schemas.pop("PaginationMetadata", None)
        for name in sorted({name for way in openapi.security(self.dialect) for name in way}):
            self.spec.components.security_scheme(name, openapi.SECURITY_SCHEMES[name])

    def mount(self, dialect: Dialect, path: str, description: str) -> Api:
        """Return another Api for the same blueprints, in a dialect below a path."""
        api = Api(dialect, path)
        api.init_app(self._app, description=description)
        self.mounts.append(api)
        return api

    def register_blueprint(
        self, blp: Any, *, parameters: Any = None, prefixed: bool = True, **options: Any
    ) -> None:
        """Register a blueprint below ``SHOP_URL_PREFIX`` and the path of this Api.

        Except in the native API, the name of the dialect is prepended to the blueprint name.
        """
        own = options.pop("url_prefix", blp.url_prefix) or ""
        prefix = self._app.config["SHOP_URL_PREFIX"] if prefixed else ""
        options["url_prefix"] = f"{prefix}{self.path}{own}" or None
        if self.dialect is not NATIVE:
            options |= {"name": f"{self.dialect.mount}-{blp.name}", "dialect": self.dialect}
        # flask-smorest adds the blueprint to the OpenAPI document here. The document is built when
        # it is first used, from the blueprints that are registered by then.
        is_loaded, self._is_loaded = self._is_loaded, False
        try:
            super().register_blueprint(blp, parameters=parameters, **options)
        finally:
            self._is_loaded = is_loaded
        if resource := getattr(blp, "resource", None):
            self._app.extensions[EXTENSION].resources.add(resource)

    def _register_responses(self) -> None:
        """Register the schema of errors, and no response for each status.

        No operation refers to these responses (``openapi.errors``), and they are a sixth of
        ``create_app``. Extension point of flask-smorest.
        """
        self.ma_plugin.resolver.resolve_schema_dict(self.ERROR_SCHEMA)

    def _openapi_json(self) -> Response:
        """Return the response with the document. Extension point of flask-smorest."""
        with self._lock:
            self._served = self._served or ServedDocument.of(self.spec.to_dict())
        return self._served.response()

    def _path_schema(self, converter: Any) -> openapi.Document:
        return openapi_fields.as_version(converter.schema, str(self._spec.openapi_version))

    def describe(self, catalog: Catalog) -> None:
        """Let the OpenAPI document be completed, because all plugins are loaded."""
        self.describe_later(partial(self._complete, catalog))
        self._is_loaded = True
        for api in self.mounts:
            api.describe(catalog)

    def _complete(self, catalog: Catalog) -> None:
        """Add to the OpenAPI document what depends on all blueprints and plugins."""
        self._describe_events(catalog.event_types)
        # to_dict() returns the original lists and objects, not copies.
        document = self._spec.to_dict()
        openapi.move_path_parameters(document)
        openapi.remove_aliases(document)
        openapi.move_examples(document)
        openapi.describe_known(document, catalog)
        openapi.describe_limits(document, self._app.config)
        self._describe_orders(catalog.order_extensions)
        openapi.describe_dialect(document, self.dialect)
        openapi.remove_unused_tags(document)
        if "webhooks" in document:
            document["tags"].append(openapi.DELIVERIES)

    def _describe_orders(self, extensions: Mapping[str, OrderExtension]) -> None:
        """Add the keys of the order extensions to the documentation of orders."""
        converter = self.ma_plugin.converter
        names = [name for key, name in converter.refs.items() if issubclass(key[0], OrderSchema)]
        for name in names:
            schema = self._spec.components.schemas[name]
            for extension in reversed(list(extensions.values())):
                schema["properties"][extension.key] = converter.field2property(extension.field)
                schema["required"].append(extension.key)

    def _describe_events(self, event_types: Mapping[str, str]) -> None:
        """Add the event types of plugins, and the webhooks, which OpenAPI 3.0 has not."""
        converter, spec = self.ma_plugin.converter, self._spec
        openapi.describe_plugin_events(converter, spec.components, event_types)
        if self.dialect is NATIVE and spec.openapi_version.minor:
            spec.options |= openapi.webhooks(converter, event_types)

    def handle_http_exception(self, error: Exception) -> Response:
        """Return the error response of the app. Extension point: ``handle_http_exception``."""
        return handle_exception(error)


def _commands() -> click.Group:
    """Return the commands of flask-smorest with the dialects that their option can name.

    The command that lists names of Flask's configuration is hidden.
    """
    commands: click.Group = copy.deepcopy(openapi_cli)
    commands.commands["list-config-prefixes"].hidden = True
    for command in commands.commands.values():
        for option in command.params:
            if isinstance(option, click.Option) and option.name == "config_prefix":
                option.metavar = "VERSION"
                option.help = "wc_api_v3 or wc_api_v2: the document of this legacy API."
    return commands
