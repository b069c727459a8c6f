"""Strict handling of requests: ``Prefer: handling=strict`` (RFC 7240, decisions 15).

``app.schemas.strict`` checks the input. This module decides which requests are strict, rejects the
parameters of operations without parameters, and sets ``Preference-Applied``.
"""

import re

from flask import Response, after_this_request, current_app, request

from app.api.dialect import current_dialect
from app.api.view_docs import current_view, has_query
from app.errors import InvalidParams
from app.schemas.strict import unknown_names

_HANDLING = re.compile(r'(?:^|,)\s*handling\s*=\s*"?(strict|lenient)"?\s*(?:[,;]|$)', re.IGNORECASE)


def is_strict() -> bool:
    """Return whether the current request is strict.

    The preference of the request takes precedence over SHOP_STRICT. Some dialects are never
    strict. Some blueprints are strict regardless of both.
    """
    if getattr(current_app.blueprints.get(request.blueprint or ""), "always_strict", False):
        return True
    prefer = request.environ.get("HTTP_PREFER")
    if prefer is None:
        by_default: bool = current_app.config["SHOP_STRICT"]
        return by_default and current_dialect().has_strict_requests
    return _handling(prefer) == "strict" and current_dialect().has_strict_requests


def _handling(prefer: str) -> str:
    """Return ``strict`` or ``lenient``. The first of several preferences applies."""
    found = _HANDLING.search(prefer)
    if found:
        return found[1].lower()
    return "strict" if current_app.config["SHOP_STRICT"] else "lenient"


def apply_handling() -> None:
    """Reject the unknown parameters of a strict request to an operation that has no parameters.

    The schema of the parameters checks all other operations.

    Raises:
        InvalidParams: the request has parameters.
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
