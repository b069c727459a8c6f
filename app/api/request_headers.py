"""The OpenAPI document of the headers that a client may send, and of what they make us answer.

An operation that can answer the code of a header reads that header.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from app.api.openapi import Document, references


def _header(name: str, description: str, **schema: Any) -> Document:
    described = {"type": "string", **schema}
    return {"in": "header", "name": name, "description": description, "schema": described}


_OF_CODE = {
    "shop_api_precondition_failed": [
        _header("If-Match", "Only if the record has one of these entity tags; `*` is any."),
        _header("If-None-Match", "Only if the record has none of these entity tags; `*` is any."),
    ],
    "shop_api_idempotency_key_reused": [
        _header(
            "Idempotency-Key",
            "Names this request: sent again with the same key and body within 24 hours, it gets "
            "the first answer and does nothing.",
            pattern="^[!-~]{1,255}$",
        ),
    ],
}


def describe(operation: Document, method: str, codes: Collection[str]) -> None:
    """Add to an operation the headers that it reads, and the ones that they bring.

    Args:
        operation: with its successful responses.
        method: in lower case.
        codes: what it can answer.
    """
    for code in codes:
        if code in _OF_CODE:
            operation.setdefault("parameters", []).extend(deepcopy(_OF_CODE[code]))
    responses = operation.setdefault("responses", {})
    if "shop_api_idempotency_key_reused" in codes:
        _add(responses, "Idempotent-Replayed")
    if method == "get" and "shop_api_precondition_failed" in codes:
        _add(responses, "ETag")
        responses[304] = {
            "description": "The record still has an entity tag that `If-None-Match` names.",
            "headers": references("ETag"),
        }


def _add(responses: dict[Any, Any], header: str) -> None:
    """Add a header to the successful responses."""
    for status in {200, 201} & responses.keys():
        responses[status].setdefault("headers", {}).update(references(header))
