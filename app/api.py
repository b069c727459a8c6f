"""All bending of flask-smorest, each at a seam that it documents.

- ``Api``: prefix, path converters, field types in the document, the error hook.
- ``Blueprint``: credentials before the view, the argument parser, the codes of each operation.
- ``ArgumentParser``: what is JSON, and how validation errors become ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import flask_smorest
import marshmallow as ma
import orjson
from flask import Flask, Response, current_app, g, request
from marshmallow import ValidationError
from sqlalchemy.exc import DBAPIError
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import Authorization
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from app import openapi, paths
from app.answers import JsonProvider, answer, read_to_the_end
from app.auth import FailedAttempts, Principal, authenticate, require_permission
from app.bulk import Draft
from app.db import is_out_of_reach, schema_is_current
from app.errors import ERRORS, SCHEMA_IS_BEHIND, InvalidParams, ShopError, unavailable
from app.plugins import Registry
from app.schemas.envelope import Errors
from app.schemas.orders import OrderSchema
from app.timeouts import took_too_long

ATTEMPTS = "shop_api_failed_attempts"
"""Where an app keeps its counter of wrong credentials, on ``app.extensions``."""


class ArgumentParser(FlaskParser):
    """Seam: ``Blueprint.ARGUMENTS_PARSER``."""

    DEFAULT_VALIDATION_STATUS = 400

    def load_json(self, req: Any, schema: Any) -> Any:
        """Return the body's object whatever the Content-Type says; {} when it is none."""
        body = req.get_data()
        # Of a body without a length werkzeug reads as much as is allowed, and says nothing.
        if len(body) >= req.max_content_length and req.environ["wsgi.input"].read(1):
            raise RequestEntityTooLarge
        if not body.strip():
            return {}
        try:
            # orjson is the judge of what is JSON: no NaN, no lone surrogate, no depth bomb. The
            # standard library then keeps a number's digits: 1234567890123456.78 is no float.
            orjson.loads(body)
            loaded = json.loads(body, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise ShopError("shop_api_invalid_json", reason=str(error)) from None
        return loaded if isinstance(loaded, dict) else {}

    def handle_error(
        self,
        error: ValidationError,
        req: Any,
        schema: Any,
        **_: Any,
    ) -> Any:
        """Raise the one exception, with an entry for each refused input."""
        raise invalid_params(error, depth=1)


def item_loader(create: type[ma.Schema], edit: type[ma.Schema]) -> Callable[[Draft], Draft]:
    """Return what converts a bulk item as the single operation converts its body."""

    def load(draft: Draft) -> Draft:
        try:
            return replace(draft, data=(create if draft.id is None else edit)().load(draft.data))
        except ValidationError as error:
            raise invalid_params(error) from None

    return load


def invalid_params(error: ValidationError, depth: int = 0) -> InvalidParams:
    """Return marshmallow's nested messages as ours.

    Args:
        error: what ``Schema.load`` raised.
        depth: how many outer levels are no part of a name (webargs adds the location).
    """
    reasons: dict[str, str] = {}

    def collect(messages: Any, path: tuple[str, ...]) -> None:
        if isinstance(messages, dict):
            for key, inner in messages.items():
                collect(inner, (*path, str(key)))
        else:
            reasons[".".join(path[depth:])] = " ".join(messages)

    collect(error.messages, ())
    return InvalidParams(reasons)


def caller() -> Principal:
    """Return who sent the request."""
    principal: Principal = g.principal
    return principal


class Blueprint(flask_smorest.Blueprint):
    """A blueprint of the API, a plugin's too: its views are behind credentials.

    Args:
        public: its views answer without credentials.
    """

    ARGUMENTS_PARSER = ArgumentParser()

    def __init__(self, *args: Any, public: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.public = public
        if not public:
            self.before_request(_authenticate)
        self._prepare_doc_cbks.append(self._prepare_shop_doc)

    def add_url_rule(
        self, rule: str, endpoint: Any = None, view_func: Any = None, **kwargs: Any
    ) -> None:
        """Register a view; its name in camel case is the operation's id."""
        first, *rest = view_func.__name__.split("_")
        view_func._apidoc = getattr(view_func, "_apidoc", {}) | {
            "operation_id": first + "".join(word.title() for word in rest),
            "methods": kwargs.get("methods", ["GET"]),
            "has_variable": "<" in rule,
        }
        super().add_url_rule(rule, endpoint, view_func, **kwargs)

    @staticmethod
    def errors(*codes: str) -> Callable[[Any], Any]:
        """Document the codes that an operation can answer beside the ones that all share."""
        return _documented({code: ERRORS[code][0] for code in codes})

    @staticmethod
    def errors_as(status: int, *codes: str) -> Callable[[Any], Any]:
        """Document codes that an operation answers with a status of its own (spec 4.2)."""
        return _documented(dict.fromkeys(codes, status))

    def _prepare_shop_doc(
        self, doc: dict[str, Any], doc_info: dict[str, Any], *, method: str, **_: Any
    ) -> dict[str, Any]:
        """Write credentials and every status with its codes."""
        # A view that answers two methods is two operations.
        methods = doc_info.get("methods", [method.upper()])
        second = "" if method.upper() == methods[0] else method.title()
        if "operation_id" in doc_info:  # a class of methods, as a plugin may have, has none
            doc["operationId"] = doc_info["operation_id"] + second
        codes = dict(doc_info.get("codes", {}))
        common: list[str] = []
        if not self.public:
            doc["security"] = [{"basicAuth": []}]
            common += ["shop_api_authentication_error", "shop_api_too_many_requests"]
        if doc_info.get("has_variable"):
            common.append("shop_api_no_route")
        if "requestBody" in doc:
            common += ["shop_api_invalid_json", "shop_api_request_entity_too_large"]
        if "requestBody" in doc or doc.get("parameters"):
            common.append("shop_api_invalid_param")
        common += ["shop_api_internal_error", "shop_api_unavailable"]
        codes |= {code: ERRORS[code][0] for code in common}
        openapi.describe_errors(doc.setdefault("responses", {}), codes.items())
        return doc


def _documented(codes: dict[str, int]) -> Callable[[Any], Any]:
    def decorate(view: Any) -> Any:
        # The decorators below have made a dict of their own for this view.
        known = getattr(view, "_apidoc", {})
        view._apidoc = known | {"codes": known.get("codes", {}) | codes}
        return view

    return decorate


def _authenticate() -> None:
    attempts = current_app.extensions[ATTEMPTS]
    # Kept before the permission is asked for: the log names the key that was refused.
    g.principal = authenticate(_authorization(), request.remote_addr or "", attempts)
    require_permission(g.principal, request.method)


def _authorization() -> Authorization | None:
    """Return the parsed header, None when there is none; one that cannot be read is wrong."""
    header = request.headers.get("Authorization")
    if header is None:
        return None
    try:
        return request.authorization or Authorization("unknown")
    except ValueError:  # werkzeug does not expect a letter beyond ASCII
        return Authorization("unknown")


class Api(flask_smorest.Api):
    """The API of an app: documents, routes under the prefix, and the one error handler."""

    ERROR_SCHEMA = Errors
    DEFAULT_ERROR_RESPONSE_NAME = None  # each operation names its own

    def init_app(self, app: Flask, **kwargs: Any) -> None:
        """Mount the document and prepare the app for blueprints."""
        app.json = JsonProvider(app)
        app.url_map.converters |= paths.CONVERTERS
        # Paths work with and without a trailing slash and never redirect (decisions 6).
        app.url_map.strict_slashes = False
        app.url_map.merge_slashes = False
        app.extensions[ATTEMPTS] = FailedAttempts(
            app.config["SHOP_AUTH_FAILURES_PER_MINUTE"], app.config["SHOP_REDIS_URL"]
        )
        plugins = {
            "flask_plugin": openapi.PathPlugin(),
            "marshmallow_plugin": openapi.FieldPlugin(),
        }
        super().init_app(app, spec_kwargs=plugins, **kwargs)
        app.register_error_handler(Exception, self.handle_http_exception)
        app.after_request(read_to_the_end)
        for converter in paths.CONVERTERS.values():
            self.register_converter(converter, self._path_schema)
        for name, header in openapi.HEADERS.items():
            self.spec.components.header(name, header)
        # flask-smorest's own pages, which we have otherwise.
        self.spec.components.schemas.pop("PaginationMetadata", None)
        self.spec.components.security_scheme(
            "basicAuth",
            {
                "type": "http",
                "scheme": "basic",
                "description": "Consumer key as user name, consumer secret as password.",
            },
        )

    def register_blueprint(
        self, blp: Any, *, parameters: Any = None, prefixed: bool = True, **options: Any
    ) -> None:
        """Register a blueprint under ``SHOP_URL_PREFIX``, unless it says otherwise."""
        own = options.pop("url_prefix", blp.url_prefix) or ""
        prefix = self._app.config["SHOP_URL_PREFIX"] if prefixed else ""
        options["url_prefix"] = f"{prefix}{own}" or None
        super().register_blueprint(blp, parameters=parameters, **options)

    def _path_schema(self, converter: BaseConverter) -> dict[str, Any]:
        return openapi.as_version(paths.SCHEMAS[type(converter)], str(self.spec.openapi_version))

    def describe_known(self, registry: Registry) -> None:
        """Write what plugins have made known into the document, once all of them are in."""
        # The lists and objects in there are the document itself, not copies.
        openapi.describe_known(self.spec.to_dict(), registry)

    def describe_orders(self, fields: Mapping[str, ma.fields.Field[Any]]) -> None:
        """Add the keys of the order extensions to the documentation of orders."""
        converter = self.ma_plugin.converter
        names = [name for key, name in converter.refs.items() if issubclass(key[0], OrderSchema)]
        for name in names:
            properties = self.spec.components.schemas[name]["properties"]
            for key, field in reversed(list(fields.items())):
                properties[key] = converter.field2property(field)

    def handle_http_exception(self, error: Exception) -> Response:
        """Answer any exception with the one envelope (decisions 1). Seam: the error handler."""
        shop_error = as_shop_error(error)
        if shop_error.status >= 500:
            current_app.logger.error(shop_error.code, exc_info=error)
        return answer({"errors": shop_error.entries}, shop_error.status, shop_error.headers)


def as_shop_error(error: Exception) -> ShopError:
    """Return the error of the table that an exception amounts to."""
    if isinstance(error, ShopError):
        return error
    if isinstance(error, MethodNotAllowed):
        allowed = ", ".join(sorted(error.valid_methods or ()))
        return ShopError(
            "shop_api_method_not_allowed", method=request.method, headers={"Allow": allowed}
        )
    if isinstance(error, RequestEntityTooLarge):
        limit = current_app.config["MAX_CONTENT_LENGTH"]
        return ShopError("shop_api_request_entity_too_large", limit=limit)
    if isinstance(error, NotFound):
        return ShopError("shop_api_no_route")
    if isinstance(error, HTTPException) and (error.code or 500) < 500:
        return InvalidParams({"request": error.description or error.name})
    if took_too_long(error):
        seconds = current_app.config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
        return unavailable(f"The database needs more than {seconds:g} seconds: ask for less.")
    if is_out_of_reach(error):
        return unavailable("The database cannot be reached.")
    if isinstance(error, DBAPIError) and not schema_is_current():
        return unavailable(SCHEMA_IS_BEHIND)
    return ShopError("shop_api_internal_error")
