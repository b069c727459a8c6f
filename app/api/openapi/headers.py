"""Request headers in the OpenAPI document, and the response headers that depend on them.

An operation reads a header if its ``@blp.errors`` contain the error code of this header.
"""

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from app.api.openapi.document import Document, references


def _header(name: str, description: str, **schema: Any) -> Document:
    described = {"type": "string", **schema}
    return {"in": "header", "name": name, "description": description, "schema": described}


_OF_CODE = {
    "shop_api_precondition_failed": [
        _header(
            "If-Match", "Process the request only if the resource has one of these entity tags."
        ),
        _header(
            "If-None-Match",
            "Process the request only if the resource has none of these entity tags.",
        ),
    ],
    "shop_api_idempotency_key_reused": [
        _header(
            "Idempotency-Key",
            "Unique key that makes the request safe to retry for 24 hours.",
            pattern="^[!-~]{1,255}$",
        ),
    ],
}


_POSITION = _header(
    "X-Shop-Position",
    "`X-Shop-Position` of an earlier response. A replica of the database may then serve the "
    "request, and the response shows that write, or a state that is not earlier than that of the "
    "read. Ignored by a service without replicas.",
)
_STRICT = (
    "`handling=strict` rejects unknown names, and values that would be converted to other values."
)
_STALE = (
    "`stale-while=<seconds>` lets a replica of the database serve the request, with data that is "
    "at most that old. Ignored by a service without replicas."
)


def describe(
    operation: Document,
    method: str,
    codes: Collection[str],
    *,
    may_be_strict: bool,
    may_use_replica: bool,
    writes: bool,
) -> None:
    """Add the request headers of an operation, and the response headers that they add.

    Args:
        operation: the operation with its successful responses.
        method: the method in lower case.
        may_be_strict: whether the client can ask for strict handling.
        may_use_replica: whether a replica can serve the operation if the client allows it.
        writes: whether the operation can write.
    """
    headers = [header for code in codes for header in _OF_CODE.get(code, ())]
    if may_use_replica:
        headers.append(_POSITION)
    preferences = [_STRICT] * may_be_strict + [_STALE] * may_use_replica
    if preferences:
        headers.append(_header("Prefer", " ".join(preferences)))
    if headers:
        operation.setdefault("parameters", []).extend(deepcopy(headers))
    responses = operation.setdefault("responses", {})
    if writes or may_use_replica:
        _add(responses, "X-Shop-Position")
    if "shop_api_idempotency_key_reused" in codes:
        _add(responses, "Idempotent-Replayed")
    if method == "get" and "shop_api_precondition_failed" in codes:
        _add(responses, "ETag")
        responses[304] = {
            "description": "Not modified: the resource has an entity tag in `If-None-Match`.",
            "headers": references("ETag"),
        }


def _add(responses: dict[Any, Any], header: str) -> None:
    """Add a header to the successful responses."""
    for status in {200, 201} & responses.keys():
        responses[status].setdefault("headers", {}).update(references(header))
