"""Shared instances of schemas, and conversion of their validation errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import marshmallow as ma
from marshmallow import ValidationError

from app.errors import InvalidParams
from app.schemas.inputs import without_cleaning
from app.schemas.strict import make_strict


@cache
def instance_of(schema: type[ma.Schema], *, strict: bool = False) -> ma.Schema:
    """Return the shared instance of a schema, for strict or lenient requests."""
    return make_strict(schema()) if strict else schema()


@cache
def checker_of(schema: type[ma.Schema], *, strict: bool = False) -> ma.Schema:
    """Return the shared instance of a schema that checks input without cleaning."""
    checker = without_cleaning(schema())
    return make_strict(checker) if strict else checker


def invalid_params(error: ValidationError, depth: int = 0) -> InvalidParams:
    """Convert the nested messages of marshmallow to InvalidParams.

    Args:
        error: the exception from ``Schema.load``.
        depth: the number of outer levels to drop from names, such as the location in webargs.
    """
    reasons: dict[str, str] = {}

    def collect(messages: Any, path: tuple[str, ...]) -> None:
        if isinstance(messages, dict):
            for key, inner in messages.items():
                if key == "_schema":  # the value is not an object
                    collect(inner, path)
                elif isinstance(key, int):  # the index in a list: items[2]
                    collect(inner, (*path[:-1], f"{path[-1]}[{key}]"))
                else:
                    collect(inner, (*path, str(key)))
        else:
            reasons[".".join(path[depth:])] = " ".join(messages)

    collect(error.messages, ())
    return InvalidParams(reasons)
