"""Requests as sent, before a method override and other changes."""

from collections.abc import Sequence
from typing import NamedTuple

ORIGINAL_REQUEST = "shop_api.original_request"
"""WSGI environ key for the OriginalRequest, if the request was changed."""


class OriginalRequest(NamedTuple):
    """A request as sent.

    Args:
        path: the decoded path.
        query: the query string.
        overrides: the values of ``_method`` in the query that are not empty. The last one overrides
            the method.
    """

    method: str
    path: str
    query: str
    overrides: Sequence[str] = ()
