"""Responses of this dialect as they are stored for retries: with the names of their records.

Objects of this dialect stand alone, and ``_fields`` can omit their IDs. Without names and IDs, the
erasure of a customer would not find what belongs to the customer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named(body: Any, resource: str, record_id: int) -> Any:
    """Return a body with a name and an ID, by which persons are found.

    Args:
        body: an object.
        resource: the resource of the route, such as ``orders``.
        record_id: the ID of the object, or of the order of a note or refund.
    """
    return {resource: {"id": record_id, "part": body}}


def bare(stored: Mapping[str, Any]) -> Any:
    """Return the body that ``named`` was given."""
    (record,) = stored.values()
    return record["part"]


def named_batch(body: Any, resource: str) -> Any:
    """Return the results of a batch, each list with the name of its records."""
    return {name: {resource: items} for name, items in body.items()} if body else {}


def bare_batch(stored: Mapping[str, Any]) -> Any:
    """Return the body that ``named_batch`` was given."""
    return {name: next(iter(items.values())) for name, items in stored.items()} or []
