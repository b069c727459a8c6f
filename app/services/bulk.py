"""The one way of a bulk request: items in, results out, in the order of the items (spec 4.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import InvalidParams, ShopError
from app.numbers import int_if_integral

Precondition = Callable[[Mapping[str, Any]], None]
"""Looks at a record as it is before it is written, and raises ShopError if that must not be."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """What a caller wants written: a new record (no id), or changes to the one with this id."""

    id: int | None
    data: Mapping[str, Any] = field(repr=False)  # it may hold a password
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The results of a bulk request, in the order of its items.

    Args:
        items: a written record, as the API shows it, or the error of its item.
        created: whether at least one record was created.
    """

    items: Sequence[Any]
    created: bool


WriteResult = Mapping[str, Any] | ShopError
"""A written record, or why it was refused."""


def run(
    items: Sequence[Any],
    *,
    limit: int,
    too_large: str,
    invalid_id: str,
    load: Callable[[BulkItem], BulkItem],
    save: Callable[[Sequence[BulkItem]], Sequence[WriteResult]],
    dump: Callable[[Mapping[str, Any]], Any],
    name: Callable[[str], str],
) -> BulkResult:
    """Write bulk items and return the result of each, in their order.

    Args:
        items: the items as the client sent them, whatever they are.
        limit: how many items are accepted.
        too_large: the code when there are more.
        invalid_id: the code for a negative id.
        load: converts the data of a draft, or raises ShopError.
        save: writes all drafts in one transaction and answers one outcome for each, in order.
        dump: turns a written record into its result.
        name: says what an error code is called.

    Raises:
        ShopError: there are too many items; nothing was written.
    """
    if len(items) > limit:
        raise ShopError(too_large, limit=limit)
    results: list[Any] = [None] * len(items)
    accepted: dict[int, BulkItem] = {}
    for position, item in enumerate(items):
        bulk_item = BulkItem(None, {})
        try:
            bulk_item = _bulk_item(item)
            if bulk_item.id is not None and bulk_item.id < 0:
                raise ShopError(invalid_id)
            accepted[position] = load(bulk_item)
        except ShopError as error:
            results[position] = _failure(bulk_item, error, name)
    created = False
    outcomes = save(list(accepted.values())) if accepted else ()
    for (position, bulk_item), outcome in zip(accepted.items(), outcomes, strict=True):
        if isinstance(outcome, ShopError):
            results[position] = _failure(bulk_item, outcome, name)
        else:
            results[position] = dump(outcome)
            created |= bulk_item.id is None
    return BulkResult(results, created)


def single_result(outcomes: Sequence[WriteResult]) -> dict[str, Any]:
    """Return the one record of a single write, or raise its error."""
    (outcome,) = outcomes
    if isinstance(outcome, ShopError):
        raise outcome
    return dict(outcome)


def _bulk_item(item: Any) -> BulkItem:
    """Tell an edit from a create (spec 4.3 rule 3, decisions 13)."""
    if not isinstance(item, dict):
        raise InvalidParams({"item": "must be an object."})
    given = int_if_integral(item.get("id"))
    if isinstance(given, str) and re.fullmatch("[0-9]{0,4000}", given):
        given = int(given or 0)
    if isinstance(given, bool) or not isinstance(given, int | None):
        raise InvalidParams({"id": "must be an integer."})
    return BulkItem(given or None, item)


def _failure(bulk_item: BulkItem, error: ShopError, name: Callable[[str], str]) -> dict[str, Any]:
    described: dict[str, Any] = {"code": name(error.code), "message": error.message}
    if error.reasons:
        described["reasons"] = error.reasons
    return {"id": bulk_item.id or 0, "error": described}
