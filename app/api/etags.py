"""Conditional requests on single resources: ``ETag``, ``If-None-Match``, ``If-Match`` (RFC 9110).

An entity tag is a hash of the whole answer, so it changes with everything that the answer shows: a
customer's also when an order comes in. A write compares with what a read without ``fields`` would
answer, inside the transaction that holds the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import blake2b
from typing import Any

from flask import Response, request

from app.api.responses import json_response
from app.api.smorest import Blueprint
from app.errors import ShopError
from app.services.bulk import Precondition

FAILED = "shop_api_precondition_failed"


def with_etag(view: Callable[..., Response]) -> Callable[..., Response]:
    """Give the answers of a read an ``ETag``, and answer 304 to whoever has the same one already.

    What the read refuses, it refuses before conditions count (RFC 9110, section 13.2.1).
    """

    @wraps(view)
    def read(*args: Any, **kwargs: Any) -> Response:
        response = view(*args, **kwargs)
        tag = _tag_of(response)
        if not _holds_if_match(tag):
            raise ShopError(FAILED)
        if not _holds_if_none_match(tag):
            response.status_code = 304
            response.set_data(b"")
        response.headers.add("ETag", f'"{tag}"')
        return response

    return Blueprint.errors(FAILED)(read)  # type: ignore[no-any-return] # the view again


def precondition(
    represent: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Precondition | None:
    """Return what the request demands of a record before it is written; None when nothing.

    Args:
        represent: turns a record into the body that a read of it answers.
    """
    if not any(header in request.headers for header in ("If-Match", "If-None-Match")):
        return None

    def check(record: Mapping[str, Any]) -> None:
        tag = _tag_of(json_response(represent(record)))
        if not _holds_if_match(tag) or not _holds_if_none_match(tag):
            raise ShopError(FAILED)

    return check


def _tag_of(response: Any) -> str:
    return blake2b(response.get_data(), digest_size=16).hexdigest()


def _holds_if_match(tag: str) -> bool:
    # One that cannot be read holds for nothing: whoever sends it wants to be refused.
    return "HTTP_IF_MATCH" not in request.environ or tag in request.if_match


def _holds_if_none_match(tag: str) -> bool:
    given = "HTTP_IF_NONE_MATCH" in request.environ
    return not given or not request.if_none_match.contains_weak(tag)
