"""Input: what is JSON, what a query means, and how validation errors become ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import Any

import marshmallow as ma
import orjson
from flask import request
from marshmallow import ValidationError
from webargs.flaskparser import FlaskParser
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.api.authentication import current_principal
from app.api.versions import current_api_version
from app.auth.principals import Capability
from app.errors import InvalidParams, ShopError
from app.schemas.inputs import without_cleaning
from app.schemas.queries import Query
from app.services.bulk import BulkItem

MAX_QUERIES, MAX_QUERY_LENGTH = 1000, 500
"""Of how many queries, and of how many bytes, it is remembered what they mean."""


class ArgumentParser(FlaskParser):
    """Seam: ``Blueprint.ARGUMENTS_PARSER``."""

    DEFAULT_VALIDATION_STATUS = 400

    def __init__(self) -> None:
        super().__init__()
        self.needs: dict[type[ma.Schema], Capability] = {}
        """The capability without which every body of a schema is refused, whatever it says."""

    def parse(self, argmap: Any, *args: Any, **kwargs: Any) -> Any:
        """Load input by a schema, or by the one that takes its place in the dialect.

        For a caller who will be refused, the record is checked, so that errors come in the
        specified order, and is then empty: nothing is spent on cleaning it (decisions 13 and 17).
        """
        substitute = current_api_version().schemas.get(type(argmap))
        needed = self.needs.get(type(argmap))
        if needed and not current_principal().can(needed):
            kind: type[ma.Schema] = substitute or type(argmap)
            checked = super().parse(checker_of(kind), *args, **kwargs)
            return {name: {} for name in checked}
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
            loaded = _parsed(body)
        except RecursionError:  # Python's own message would tell how the service is made
            raise ShopError("shop_api_invalid_json", reason="it is nested too deeply") from None
        except ValueError as error:
            raise ShopError("shop_api_invalid_json", reason=str(error)) from None
        return current_api_version().body(schema, loaded) if isinstance(loaded, dict) else {}

    def handle_error(
        self,
        error: ValidationError,
        req: Any,
        schema: Any,
        **_: Any,
    ) -> Any:
        """Raise the one exception, with an entry for each refused input."""
        raise invalid_params(error, depth=1)


def _parsed(body: bytes) -> Any:
    """Return what a body says that orjson has accepted, with the digits of its numbers."""
    try:
        return json.loads(body, parse_float=Decimal)
    except InvalidOperation:
        return json.loads(body, parse_float=_number)


def _number(text: str) -> Decimal:
    """Return a number; one whose exponent no Decimal has is zero, or orjson had refused it."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal(float(text))


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


@cache
def checker_of(schema: type[ma.Schema]) -> ma.Schema:
    """Return the one instance of a schema that checks input and does not clean it."""
    return without_cleaning(schema())


def item_loader(
    create: type[ma.Schema],
    edit: type[ma.Schema],
    *,
    create_needs: Capability,
    edit_needs: Capability,
) -> Callable[[BulkItem], BulkItem]:
    """Return what converts a bulk item as the single operation converts its body.

    Args:
        create: the schema of a create.
        edit: the schema of an edit.
        create_needs: without this capability a create is refused: it is checked, then empty.
        edit_needs: the same for an edit.
    """
    may_create, may_edit = (
        current_principal().can(create_needs),
        current_principal().can(edit_needs),
    )

    def load(draft: BulkItem) -> BulkItem:
        schema, allowed = (create, may_create) if draft.id is None else (edit, may_edit)
        try:
            data = (instance_of if allowed else checker_of)(schema).load(draft.data)
        except ValidationError as error:
            raise invalid_params(error) from None
        return replace(draft, data=data if allowed else {})

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
                if key == "_schema":  # the object itself is none
                    collect(inner, path)
                elif isinstance(key, int):  # a place in a list: items[2]
                    collect(inner, (*path[:-1], f"{path[-1]}[{key}]"))
                else:
                    collect(inner, (*path, str(key)))
        else:
            reasons[".".join(path[depth:])] = " ".join(messages)

    collect(error.messages, ())
    return InvalidParams(reasons)
