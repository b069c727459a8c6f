"""Shared instances of schemas, and conversion of their validation errors."""

from functools import cache
from typing import Any

import marshmallow as ma
from marshmallow import ValidationError

from app.errors import InvalidParams, Sentence, joined
from app.schemas.fields.input import without_cleaning
from app.schemas.strict import MAX_UNKNOWN, UnknownName, make_strict


@cache
def instance_of(
    schema: type[ma.Schema], *, strict: bool = False, names_only: bool = False, cleans: bool = True
) -> ma.Schema:
    """Return the shared instance of a schema, for strict or lenient requests.

    Args:
        names_only: whether a strict request reports only unknown names, because its caller lacks
            the right, which is the next error.
        cleans: whether values get their stored form, which a caller without the right cannot let
            the service do.
    """
    instance = schema() if cleans else without_cleaning(schema())
    return make_strict(instance, names_only=names_only) if strict else instance


def invalid_params(
    error: ValidationError, depth: int = 0, reported: list[UnknownName] | None = None
) -> InvalidParams:
    """Convert the nested messages of marshmallow to InvalidParams.

    Args:
        depth: the number of outer levels to drop from names, such as the location in webargs.
        reported: the unknown names that the response already reports, for a response with several
            errors. Names are added to this list. Beyond MAX_UNKNOWN names, an error reports an
            unknown name only if it has no other reason, and without a suggestion.
    """
    reasons: dict[str, str | Sentence] = {}
    reported = [] if reported is None else reported

    def collect(messages: Any, path: tuple[str, ...]) -> None:
        if isinstance(messages, dict):
            for key, inner in messages.items():
                if key == "_schema":  # the value is not an object
                    collect(inner, path)
                elif isinstance(key, int):  # the index in a list: items[2]
                    collect(inner, (*path[:-1], f"{path[-1]}[{key}]"))
                else:
                    collect(inner, (*path, str(key)))
        elif isinstance(messages[0], UnknownName):
            suggest = len(reported) < MAX_UNKNOWN
            if suggest or not reasons:
                reasons[".".join(path[depth:])] = messages[0].reason(suggest=suggest)
                reported.append(messages[0])
        else:
            reasons[".".join(path[depth:])] = joined(messages)

    collect(error.messages, ())
    return InvalidParams(reasons)
