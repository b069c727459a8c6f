"""What an order accepts after its personal data was erased (people 5)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flask import current_app

from app.errors import Sentence, ShopError
from app.models.order import OrderRow
from app.models.personal_data import POSTCODE_LENGTH, Remains, emptied
from app.services.common.bulk import Data
from app.services.common.metadata import METADATA
from app.services.common.metadata_rules import added_keys
from app.services.orders.columns import columns_of
from app.services.orders.downloads import DOWNLOAD_PERMISSIONS
from app.services.orders.items import KINDS

EMPTIED = frozenset({"customer_id", *emptied("orders", Remains.EMPTY)})
"""Columns that stay empty."""

_SHORTENED = emptied("orders", Remains.BEGINNING)


def require_no_personal_data(data: Mapping[str, object]) -> None:
    """Raise ShopError if an update would fill what an erasure has emptied.

    Empty values are accepted, so that a program can send back what it has read.
    """
    if filled := next(_filled(data), None):
        raise _must_stay_empty(filled)


def _must_stay_empty(filled: str) -> ShopError:
    reason = Sentence("its personal data was erased, so {0} must stay empty.", filled)
    return ShopError("shop_api_cannot_update_order", reason=reason)


def require_no_personal_refund(order: OrderRow, data: Mapping[str, object]) -> None:
    """Do the same for what a request writes into a refund of an order, which can be erased."""
    if order["erased_at"] is None:
        return
    if data.get("reason"):
        raise _must_stay_empty("reason")
    items: Any = data.get("line_items") or ()
    if _has_erased_keys(data, *items):
        raise _must_stay_empty(METADATA)


def _has_erased_keys(*given: Data) -> bool:
    """Return whether a request adds keys of metadata that an erasure removes."""
    metadata = (each[METADATA] for each in given if each.get(METADATA))
    return not is_kept(key for each in metadata for key in added_keys(each))


def _filled(data: Data) -> Iterator[str]:
    for name, value in columns_of(data).items():
        if value and name in EMPTIED:
            yield name
        if name in _SHORTENED and len(value.strip()) > POSTCODE_LENGTH:
            yield f"{name} after its first {POSTCODE_LENGTH} characters"
    items = [item for name in KINDS for item in data.get(name) or ()]
    if any(item.get("meta") for item in items):
        yield "meta"
    if _has_erased_keys(data, *items):
        yield METADATA
    if data.get(DOWNLOAD_PERMISSIONS):
        yield DOWNLOAD_PERMISSIONS


def is_kept(keys: Iterable[str]) -> bool:
    """Return whether an erasure keeps all of these keys of metadata."""
    return set(keys) <= {*current_app.config["SHOP_ERASURE_KEEPS_METADATA"]}
