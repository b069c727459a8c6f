"""Bulk requests: items and their results, in the same order (spec 4.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.errors import InvalidParams, ShopError
from app.numbers import int_if_integral

Precondition = Callable[[Mapping[str, Any]], None]
"""Function that takes the stored record and raises ShopError if it must not be changed."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A record to create or update.

    Args:
        id: ID of the record to update, or None to create a record.
        data: the fields of the record.
        precondition: check of the stored record before an update, or None.
    """

    id: int | None
    data: Mapping[str, Any] = field(repr=False)  # can contain a password
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The results of a bulk request, in the order of its items.

    Args:
        items: the written record as the API returns it, or the error, of each item.
        created: whether at least one record was created.
    """

    items: Sequence[Any]
    created: bool


WriteResult = Mapping[str, Any] | ShopError
"""A written record by its column names, or the error that prevented it."""


def require_size(record: str, items: Sequence[Any], limit: int) -> None:
    """Raise ShopError if a bulk request of a kind of record has more than ``limit`` items."""
    if len(items) > limit:
        raise ShopError(f"shop_api_{record}s_request_entity_too_large", limit=limit)


def run(
    record: str,
    items: Sequence[Any],
    *,
    load: Callable[[BulkItem], BulkItem],
    save: Callable[[Sequence[BulkItem]], Sequence[WriteResult]],
    dump: Callable[[Mapping[str, Any]], Any],
    name: Callable[[str], str],
) -> BulkResult:
    """Write the items of a bulk request and return their results in the same order.

    An item that cannot be loaded or written does not affect the other items.

    Args:
        record: the name of the records in error codes, such as ``coupon``.
        items: the items, of any type.
        load: converts the data of an item, or raises ShopError.
        save: writes the loaded items in one transaction and returns one result per item, in order.
        dump: converts a written record to its result.
        name: returns the name of an error code in the API version.
    """
    results: list[Any] = [None] * len(items)
    accepted: dict[int, BulkItem] = {}
    for position, item in enumerate(items):
        bulk_item = BulkItem(None, {})
        try:
            bulk_item = _bulk_item(item)
            if bulk_item.id is not None and bulk_item.id < 0:
                raise ShopError(f"shop_api_invalid_{record}_id")
            accepted[position] = load(bulk_item)
        except ShopError as error:
            results[position] = _failure(bulk_item, error, name)
    created = False
    written = save(list(accepted.values())) if accepted else ()
    for (position, bulk_item), result in zip(accepted.items(), written, strict=True):
        if isinstance(result, ShopError):
            results[position] = _failure(bulk_item, result, name)
        else:
            results[position] = dump(result)
            created |= bulk_item.id is None
    return BulkResult(results, created)


def single_result(results: Sequence[WriteResult]) -> dict[str, Any]:
    """Return the record of the only result, or raise its error."""
    (result,) = results
    if isinstance(result, ShopError):
        raise result
    return dict(result)


def _bulk_item(item: Any) -> BulkItem:
    """Return the item. An ID other than 0 means an update (spec 4.3 rule 3, decisions 13)."""
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
