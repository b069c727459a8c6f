"""Conditional requests on single resources: ``ETag``, ``If-None-Match``, ``If-Match`` (RFC 9110).

An entity tag is a hash of the complete response, so it changes with everything in the response.
The tag of a customer also changes with a new order. A write compares the tag with the response of a
read without ``fields``, within the transaction of the write.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from hashlib import blake2b
from typing import Any

from flask import Response, request

from app.api.blueprint import Blueprint
from app.api.metadata import RecordSerializer
from app.api.responses import json_bytes, json_response
from app.db.records import Row
from app.errors import ShopError
from app.services.common.bulk import Precondition

Record = Mapping[str, Any]

FAILED = "shop_api_precondition_failed"
_CONDITIONS = frozenset({"HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"})


def with_etag(view: Callable[..., Response]) -> Callable[..., Response]:
    """Add an ``ETag`` to the responses of a read, and respond with 304 if it matches.

    Errors of the read take precedence over conditions (RFC 9110, section 13.2.1).
    """

    @wraps(view)
    def read(*args: object, **kwargs: object) -> Response:
        response = view(*args, **kwargs)
        if "ETag" not in response.headers:
            response.set_etag(_hash(response.get_data()))
        if _CONDITIONS.isdisjoint(request.environ):
            return response
        tag = response.get_etag()[0] or ""
        if not _if_match_holds(tag):
            raise ShopError(FAILED)
        if not _if_none_match_holds(tag):
            response.status_code = 304
            response.set_data(b"")
        return response

    return Blueprint.errors(FAILED)(read)


def precondition(represent: Callable[[Record], Record]) -> Precondition | None:
    """Return the check of the request's conditions before a write, or None without conditions.

    Args:
        represent: function that converts a record to the response body of a read.
    """
    if _CONDITIONS.isdisjoint(request.environ):
        return None

    def check(record: Record) -> None:
        tag = _tag(represent(record), record.get("revision", 0))
        if not _if_match_holds(tag) or not _if_none_match_holds(tag):
            raise ShopError(FAILED)

    return check


def record_response(name: str, serializer: RecordSerializer, row: Row) -> Response:
    """Return the response to the read of a record, with its entity tag.

    The tag is that of a read without metadata. It changes with the metadata, too.

    Args:
        name: the wrapper key.
        row: the row, which ends with the revision of the record and with its ID.
    """
    (plain,) = serializer.plain([row])
    tag = _tag({name: plain}, row[-2])
    (complete,) = serializer.completed([plain], [row])  # may add to the same object
    response = json_response({name: complete})
    response.set_etag(tag)
    return response


def _tag(body: Mapping[str, object], revision: int) -> str:
    return _hash(json_bytes([body, revision] if revision else body))


def _hash(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()


def _if_match_holds(tag: str) -> bool:
    # A malformed If-Match never holds, because the client asked for a condition.
    return "HTTP_IF_MATCH" not in request.environ or tag in request.if_match


def _if_none_match_holds(tag: str) -> bool:
    given = "HTTP_IF_NONE_MATCH" in request.environ
    return not given or not request.if_none_match.contains_weak(tag)
