"""The OpenAPI document of the headers that a client may send, and of what they make us answer.

An operation that can answer the code of a header reads that header.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from app.openapi import Document, references


def _header(name: str, description: str, **schema: Any) -> Document:
    described = {"type": "string", **schema}
    return {"in": "header", "name": name, "description": description, "schema": described}


_OF_CODE = {
    "shop_api_precondition_failed": [
        _header("If-Match", "Only if the record has one of these entity tags; `*` is any."),
        _header("If-None-Match", "Only if the record has none of these entity tags; `*` is any."),
    ],
}


def describe(operation: Document, method: str, codes: Collection[str]) -> None:
    """Add to an operation the headers that it reads.

    Args:
        operation: with its successful responses.
        method: in lower case.
        codes: what it can answer.
    """
    for code in codes:
        if code in _OF_CODE:
            operation.setdefault("parameters", []).extend(deepcopy(_OF_CODE[code]))
    if method == "get" and "shop_api_precondition_failed" in codes:
        headers = references("ETag")
        operation["responses"][200].setdefault("headers", {}).update(headers)
        description = "The record still has an entity tag that `If-None-Match` names."
        operation["responses"][304] = {"description": description, "headers": headers}
