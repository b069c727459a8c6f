"""All customization of flask-smorest, using its documented extension points.

- ``Api``: prefix, path converters, field types in the OpenAPI document, error handler.
- ``Blueprint``: authentication, argument parser, error codes of each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from string import punctuation
from typing import Any
from urllib.parse import quote

import flask_smorest
from flask import Flask, Request, Response, request
from flask.blueprints import BlueprintSetupState
from flask.sessions import SessionInterface
from werkzeug.routing import BaseConverter

from app.api import authentication, converters, openapi, request_headers, security_headers
from app.api.authentication import authenticate_any_permission, authenticate_request
from app.api.error_handlers import handle_exception
from app.api.request_parser import ArgumentParser, instance_of
from app.api.responses import JsonProvider, drain_request_body
from app.api.versions import NATIVE, ApiVersion
from app.auth.principals import Capability
from app.config import VERSION
from app.errors import ERRORS
from app.plugins import OrderExtension, Registry
from app.schemas.envelope import ErrorResponse
from app.schemas.orders import OrderSchema


class _Mount(BlueprintSetupState):
    """The registration of a blueprint. Extension point: ``Blueprint.make_setup_state``."""

    def add_url_rule(self, rule: str, *args: Any, **options: Any) -> None:
        """Add a route with the methods and converters of the API version."""
        api_version = self.options.get("api_version", NATIVE)
        options["methods"] = api_version.methods(options.get("methods", ["GET"]))
        super().add_url_rule(api_version.rule(rule), *args, **options)


class Blueprint(flask_smorest.Blueprint):
    """A blueprint of the API or a plugin, with authentication.

    Args:
        public: disables authentication.
        extends_orders: declares that the views extend their orders with an OrderView, or return no
            orders. The responses of all other blueprints are searched for orders.
        any_permission: accepts keys with any permission for every method.
    """

    ARGUMENTS_PARSER = ArgumentParser()

    def __init__(
        self,
        *args: Any,
        public: bool = False,
        any_permission: bool = False,
        extends_orders: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.public = public
        self.extends_orders = extends_orders
        if not public:
            self.before_request(
                authenticate_any_permission if any_permission else authenticate_request
            )
        self._prepare_doc_cbks.append(self._prepare_shop_doc)

    def make_setup_state(
        self, app: Any, options: dict[str, Any], first_registration: bool = False
    ) -> BlueprintSetupState:
        """Return the object that registers the routes of this blueprint."""
        return _Mount(self, app, options, first_registration)

    def add_url_rule(
        self, rule: str, endpoint: Any = None, view_func: Any = None, **kwargs: Any
    ) -> None:
        """Register a view. Its name in camel case becomes the operation ID."""
        first, *rest = view_func.__name__.split("_")
        view_func._apidoc = getattr(view_func, "_apidoc", {}) | {
            "operation_id": first + "".join(word.title() for word in rest),
            "methods": kwargs.get("methods", ["GET"]),
            "has_variable": "<" in rule,
        }
        super().add_url_rule(rule, endpoint, view_func, **kwargs)

    def arguments(
        self, schema: Any, *, needs: Capability | None = None, **kwargs: Any
    ) -> Callable[[Any], Any]:
        """Load and document input with one schema instance for all requests.

        webargs would create an instance for each request and copy all of its fields.

        Args:
            schema: the schema of the input.
            needs: the capability that the view requires. Without it, the body is only checked and
                the view gets an empty record. No other view can use the schema.
        """
        instance = instance_of(schema) if isinstance(schema, type) else schema
        if needs:
            self.ARGUMENTS_PARSER.needs[type(instance)] = needs
        decorate: Callable[[Any], Any] = super().arguments(instance, **kwargs)
        return decorate

    @staticmethod
    def errors(*codes: str) -> Callable[[Any], Any]:
        """Document the error codes of an operation, in addition to the common error codes."""
        return _document_codes({code: ERRORS[code][0] for code in codes})

    @staticmethod
    def errors_as(status: int, *codes: str) -> Callable[[Any], Any]:
        """Document error codes that have another status in this operation (spec 4.2)."""
        return _document_codes(dict.fromkeys(codes, status))

    @staticmethod
    def status(happened: str) -> Callable[[Any], Any]:
        """Document the status of an event, which depends on the API version."""
        return lambda view: _update_apidoc(view, "happened", [happened])

    def _prepare_shop_doc(
        self, doc: dict[str, Any], doc_info: dict[str, Any], *, api: Api, method: str, **_: Any
    ) -> dict[str, Any]:
        """Document the authentication and the statuses with their error codes."""
        # A view with two methods has two operations.
        methods = doc_info.get("methods", [method.upper()])
        second = "" if method.upper() == methods[0] else method.title()
        if "operation_id" in doc_info:  # missing for a MethodView of a plugin
            doc["operationId"] = doc_info["operation_id"] + second
        codes = dict(doc_info.get("codes", {}))
        common: list[str] = []
        if not self.public:
            doc["security"] = openapi.security(api.api_version)
            common += ["shop_api_authentication_error", "shop_api_too_many_requests"]
        if method.upper() not in security_headers.SAFE_METHODS:
            common.append("shop_api_cross_site_request")
        if doc_info.get("has_variable"):
            common.append("shop_api_no_route")
        if "requestBody" in doc:
            common += ["shop_api_invalid_json", "shop_api_request_entity_too_large"]
        if "requestBody" in doc or doc.get("parameters"):
            common.append("shop_api_invalid_param")
        common += ["shop_api_internal_error", "shop_api_unavailable"]
        request_headers.describe(doc, method, codes)
        codes |= {code: ERRORS[code][0] for code in common}
        for happened in doc_info.get("happened", ()):
            if (status := api.api_version.status(happened)) != 200:
                doc["responses"][status] = deepcopy(doc["responses"][200])
        openapi.describe_errors(doc.setdefault("responses", {}), codes.items())
        return doc


def _document_codes(codes: dict[str, int]) -> Callable[[Any], Any]:
    def decorate(view: Any) -> Any:
        known = getattr(view, "_apidoc", {}).get("codes", {})
        return _update_apidoc(view, "codes", known | codes)

    return decorate


def _update_apidoc(view: Any, what: str, value: Any) -> Any:
    # Create a new dict for this view.
    view._apidoc = getattr(view, "_apidoc", {}) | {what: value}
    return view


def _encode_query() -> None:
    """Percent-encode non-ASCII bytes in the query, because werkzeug expects ASCII."""
    query = request.query_string
    if not query.isascii():
        request.query_string = quote(query, safe=punctuation).encode()


class NoSessionInterface(SessionInterface):
    """Disables cookie sessions. Extension point: ``Flask.session_interface``."""

    def open_session(self, app: Flask, request: Request) -> None:
        """Return None, so that writing to ``flask.session`` raises an error."""


def prepare(app: Flask) -> None:
    """Prepare an app for the routes of any Api."""
    app.json = JsonProvider(app)
    app.session_interface = NoSessionInterface()
    app.url_map.converters |= converters.CONVERTERS
    # Paths work with and without a trailing slash and never redirect (decisions 6).
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    authentication.init_app(app)
    app.register_error_handler(Exception, handle_exception)
    app.before_request(_encode_query)
    app.after_request(drain_request_body)


class Api(flask_smorest.Api):
    """The routes and the OpenAPI document of an API version.

    Args:
        api_version: the API version.
        path: the path of all routes, below ``SHOP_URL_PREFIX``.
    """

    ERROR_SCHEMA = ErrorResponse
    DEFAULT_ERROR_RESPONSE_NAME = None  # documented per operation

    def __init__(self, api_version: ApiVersion = NATIVE, path: str = "") -> None:
        self.api_version = api_version
        self.path = path
        self.mounts: list[Api] = []
        super().__init__(
            config_prefix="" if api_version is NATIVE else api_version.name.replace("-", "_")
        )

    def init_app(self, app: Flask, *, description: str) -> None:
        """Initialize the OpenAPI document and its routes.

        Args:
            app: the app.
            description: the description of the API.
        """
        app.config[f"{self.config_prefix}OPENAPI_URL_PREFIX"] = (
            f"{app.config['SHOP_URL_PREFIX']}{self.path}" or "/"
        )
        spec = {
            "title": app.config["SHOP_NAME"],
            "version": VERSION,
            "openapi_version": app.config["SHOP_OPENAPI_VERSION"],
            "info": {"description": description},
            "servers": [{"url": "/"}],
            "flask_plugin": openapi.PathPlugin(),
            "marshmallow_plugin": openapi.FieldPlugin(self.api_version.schemas),
        }
        super().init_app(app, spec_kwargs=spec)
        for converter in converters.CONVERTERS.values():
            self.register_converter(converter, self._path_schema)
        for name, header in openapi.HEADERS.items():
            self.spec.components.header(name, header)
        # The schema of flask-smorest's pagination, which is not used.
        self.spec.components.schemas.pop("PaginationMetadata", None)
        for name in sorted({name for way in openapi.security(self.api_version) for name in way}):
            self.spec.components.security_scheme(name, openapi.SECURITY_SCHEMES[name])

    def mount(self, api_version: ApiVersion, path: str, description: str) -> Api:
        """Return another Api of the same app, for the same blueprints in another API version.

        Args:
            api_version: the API version.
            path: its path below ``SHOP_URL_PREFIX``.
            description: the description of the API.
        """
        api = Api(api_version, path)
        api.init_app(self._app, description=description)
        self.mounts.append(api)
        return api

    def register_blueprint(
        self, blp: Any, *, parameters: Any = None, prefixed: bool = True, **options: Any
    ) -> None:
        """Register a blueprint below ``SHOP_URL_PREFIX`` and the path of this Api.

        Except in the native API, the name of the API version is prepended to the blueprint name.
        """
        own = options.pop("url_prefix", blp.url_prefix) or ""
        prefix = self._app.config["SHOP_URL_PREFIX"] if prefixed else ""
        options["url_prefix"] = f"{prefix}{self.path}{own}" or None
        if self.api_version is not NATIVE:
            options |= {
                "name": f"{self.api_version.name}-{blp.name}",
                "api_version": self.api_version,
            }
        super().register_blueprint(blp, parameters=parameters, **options)

    def _path_schema(self, converter: BaseConverter) -> dict[str, Any]:
        return openapi.as_version(
            converters.SCHEMAS[type(converter)], str(self.spec.openapi_version)
        )

    def describe(self, registry: Registry) -> None:
        """Complete the OpenAPI document after all plugins are loaded."""
        # to_dict() returns the original lists and objects, not copies.
        document = self.spec.to_dict()
        openapi.describe_known(document, registry)
        self._describe_orders(registry.order_extensions)
        openapi.describe_dialect(document, self.api_version)
        for api in self.mounts:
            api.describe(registry)

    def _describe_orders(self, extensions: Mapping[str, OrderExtension]) -> None:
        """Add the keys of the order extensions to the documentation of orders."""
        converter = self.ma_plugin.converter
        names = [name for key, name in converter.refs.items() if issubclass(key[0], OrderSchema)]
        for name in names:
            properties = self.spec.components.schemas[name]["properties"]
            for extension in reversed(list(extensions.values())):
                properties[extension.key] = converter.field2property(extension.field)

    def handle_http_exception(self, error: Exception) -> Response:
        """Return the error response of the app. Extension point: ``handle_http_exception``."""
        return handle_exception(error)
