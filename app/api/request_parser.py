"""Input: what is JSON, what a query means, and how validation errors become ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

import marshmallow as ma
import orjson
from flask import request
from marshmallow import ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.api.versions import current_api_version
from app.errors import InvalidParams, ShopError
from app.schemas.queries import Query
from app.services.bulk import BulkItem

MAX_QUERIES, MAX_QUERY_LENGTH = 1000, 500
"""Of how many queries, and of how many bytes, it is remembered what they mean."""


class ArgumentParser(FlaskParser):
    """Seam: ``Blueprint.ARGUMENTS_PARSER``."""

    DEFAULT_VALIDATION_STATUS = 400

    def parse(self, argmap: Any, *args: Any, **kwargs: Any) -> Any:
        """Load input by a schema, or by the one that takes its place in the dialect."""
        substitute = current_api_version().schemas.get(type(argmap))
        schema = instance_of(substitute) if substitute else argmap
        # A query that may hold a secret is not remembered.
        if isinstance(schema, Query) and not current_api_version().key_in_query:
            text = request.query_string
            if len(text) <= MAX_QUERY_LENGTH:
                return dict(self._load_query(schema, text))
        return super().parse(schema, *args, **kwargs)

    @lru_cache(MAX_QUERIES)  # noqa: B019  # there is one parser, for good
    def _load_query(self, schema: Query, text: bytes) -> Any:  # the key
        return super().parse(schema, location="query")

    def load_json(self, req: Any, schema: Any) -> Any:
        """Return the body's object whatever the Content-Type says; {} when it is none."""
        # Nothing is ever unpacked: a few bytes could become gigabytes.
        if req.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
            raise InvalidParams({"Content-Encoding": "must be absent: send the body unpacked."})
        body = _body_of(req)
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


def _body_of(req: Any) -> bytes:
    try:
        body: bytes = req.get_data()
    except HTTPException:
        raise
    except Exception as error:
        # Chunks that are none, or a client that went away: each server has errors of its own.
        raise ShopError(
            "shop_api_invalid_json",
            reason="the body cannot be read to its end",
            headers={"Connection": "close"},
        ) from error
    return body


@cache
def instance_of(schema: type[ma.Schema]) -> ma.Schema:
    """Return the one instance of a schema that converts all input."""
    return schema()


def item_loader(create: type[ma.Schema], edit: type[ma.Schema]) -> Callable[[BulkItem], BulkItem]:
    """Return what converts a bulk item as the single operation converts its body."""
    creates, edits = instance_of(create), instance_of(edit)

    def load(draft: BulkItem) -> BulkItem:
        try:
            return replace(draft, data=(creates if draft.id is None else edits).load(draft.data))
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
                if isinstance(key, int):  # the place of an item in an array
                    collect(inner, (*path[:-1], f"{path[-1]}[{key}]"))
                else:
                    collect(inner, (*path, str(key)))
        else:
            reasons[".".join(path[depth:])] = " ".join(messages)

    collect(error.messages, ())
    return InvalidParams(reasons)
