"""Parsing of bodies and queries, and their strict handling (RFC 7240, decisions 15).

A request with ``Prefer: handling=strict`` is strict. ``app.schemas.strict`` checks its input; this
module rejects the parameters of operations without parameters, and sets ``Preference-Applied``.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import marshmallow as ma
import orjson
from flask import Request, Response, after_this_request, current_app, request
from marshmallow import ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.api.authentication import lacks_right
from app.api.dialect import current_dialect
from app.api.view_docs import current_view, has_query
from app.errors import InvalidParams, ShopError
from app.schemas.loading import instance_of, invalid_params
from app.schemas.queries import Query
from app.schemas.strict import unknown_names

MAX_QUERIES, MAX_QUERY_LENGTH = 1000, 500
"""Parsed-query cache: up to 1,000 entries of up to 500 bytes each."""

_HANDLING = re.compile(r'(?:^|,)\s*handling\s*=\s*"?(strict|lenient)"?\s*(?:[,;]|$)', re.IGNORECASE)


class ArgumentParser(FlaskParser):
    """Extension point: ``Blueprint.ARGUMENTS_PARSER``."""

    DEFAULT_VALIDATION_STATUS = 400

    def parse(self, argmap: Any, *args: Any, **kwargs: Any) -> Any:
        """Load input with a schema, or with its replacement in the dialect."""
        dialect, strict = current_dialect(), is_strict()
        substitute = dialect.schemas.get(type(argmap))
        kind: type[ma.Schema] = substitute or type(argmap)
        schema = argmap
        if strict:
            names_only = not isinstance(argmap, Query) and lacks_right(current_view())
            schema = instance_of(kind, strict=True, names_only=names_only)
        elif substitute:
            schema = instance_of(kind)
        # Do not cache queries that can contain a secret.
        if isinstance(schema, Query) and not dialect.key_in_query:
            text = request.query_string
            if len(text) <= MAX_QUERY_LENGTH:
                return dict(self._load_query(schema, text))
        return super().parse(schema, *args, **kwargs)

    @lru_cache(MAX_QUERIES)  # noqa: B019  # the parser is a singleton
    def _load_query(self, schema: Query, text: bytes) -> Any:  # the cache key
        return super().parse(schema, location="query")

    def load_querystring(self, req: Request, schema: Any) -> object:
        """Return the query. The native API also accepts the plain names of filters.

        Raises:
            InvalidParams: a parameter that is not a list is repeated.
        """
        if not isinstance(schema, Query):
            return self._makeproxy(req.args, schema)
        pairs = [(schema.without_index(name), value) for name, value in req.args.items(multi=True)]
        if "oauth_signature" in req.args:
            # Some clients send a parameter twice, once as given and once as signed.
            pairs = list(dict.fromkeys(pairs))
        if current_dialect().has_plain_filters:
            # The specified name takes precedence over the plain name (decisions 16).
            sent = {name for name, _ in pairs}
            named = [(schema.specified_name(name), name, value) for name, value in pairs]
            pairs = [(own, value) for own, name, value in named if own == name or own not in sent]
        return self._makeproxy(MultiDict(schema.joined(pairs)), schema)

    def load_json(self, req: Request, schema: Any) -> object:
        """Return the JSON object in the body, or {} for other values. Ignores the Content-Type."""
        body = body_of(req)
        if not body.strip():
            return {}
        try:
            # orjson validates the JSON and rejects NaN, lone surrogates and deep nesting. The
            # standard library then parses it again and keeps all digits of numbers.
            orjson.loads(body)
            loaded = _parse(body)
        except RecursionError:  # the message of Python would reveal internals
            raise ShopError("shop_api_invalid_json", reason="it is nested too deeply") from None
        except ValueError as error:
            raise ShopError("shop_api_invalid_json", reason=str(error)) from None
        is_object = isinstance(loaded, dict)
        return current_dialect().native_object(schema, loaded) if is_object else {}

    def handle_error(self, error: ValidationError, req: object, schema: object, **_: object) -> Any:
        """Raise InvalidParams with an entry for each invalid input."""
        raise invalid_params(error, depth=1)


def _parse(body: bytes) -> object:
    """Parse a body that orjson accepted, with all digits of its numbers."""
    try:
        return json.loads(body, parse_float=Decimal)
    except InvalidOperation:
        return json.loads(body, parse_float=_parse_number)


def _parse_number(text: str) -> Decimal:
    """Parse a number. An exponent that is out of range for Decimal can only mean zero."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal(float(text))


def body_of(req: Request) -> bytes:
    """Return the body of a request.

    Raises:
        RequestEntityTooLarge: it is larger than ``max_content_length``.
        ShopError: it cannot be read.
    """
    try:
        body: bytes = req.get_data()
    except (HTTPException, ShopError):
        raise
    except Exception as error:
        # Malformed chunks, or a closed connection. Each server raises different errors.
        raise ShopError(
            "shop_api_invalid_json",
            reason="the body is incomplete or malformed",
            headers={"Connection": "close"},
        ) from error
    # For a body without Content-Length, werkzeug reads up to the limit without an error.
    if len(body) >= (req.max_content_length or len(body) + 1) and req.environ["wsgi.input"].read(1):
        raise RequestEntityTooLarge
    return body


def is_strict() -> bool:
    """Return whether the current request is strict.

    The preference of the request takes precedence over SHOP_STRICT. Some dialects are never
    strict. Some blueprints are strict regardless of both.
    """
    if getattr(current_app.blueprints.get(request.blueprint or ""), "always_strict", False):
        return True
    found = _HANDLING.search(request.environ.get("HTTP_PREFER", ""))  # the first of several
    wanted: bool = found[1].lower() == "strict" if found else current_app.config["SHOP_STRICT"]
    return wanted and current_dialect().has_strict_requests


def apply_strict_handling() -> None:
    """Confirm strict handling, and reject the parameters of an operation without parameters.

    The schema of the parameters checks all other operations. For ``before_request``.

    Raises:
        InvalidParams: the request is strict and has parameters.
    """
    if not is_strict():
        return
    after_this_request(_add_preference_applied)
    if not has_query(current_view()) and (
        unknown := unknown_names(request.args, set(), "parameter")
    ):
        raise InvalidParams({each.name: each.reason() for each in unknown})


def _add_preference_applied(response: Response) -> Response:
    response.headers["Preference-Applied"] = "handling=strict"
    return response
